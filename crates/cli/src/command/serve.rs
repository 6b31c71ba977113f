//! `cembra serve`: starts the server of models, which is a program of its own, `cembra-serve`. This command has none of the server's dependencies; it
//! looks for the program in the folder of `cembra`, then in the folders of `PATH`.

use crate::failure::Failure;
use cembra_table::error::DataError;
use std::env;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::Command;

/// The name of the program.
const PROGRAM: &str = "cembra-serve";

/// Serves the models of a folder over HTTP, by the program `cembra-serve`
///
/// The arguments are those of `cembra-serve`: `cembra serve FOLDER`, or `cembra serve -- --help`.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Get the program with: cargo install --path crates/serve. Exit status: that of `cembra-serve`; 1 if it cannot be started."
)]
pub(crate) struct Args {
    /// The arguments of `cembra-serve`: a folder with models, and options
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true, value_name = "ARGUMENT")]
    arguments: Vec<OsString>,
}

/// Runs `cembra serve`. The server replaces this process where the system can do that.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let beside = env::current_exe().ok().and_then(|path| Some(path.parent()?.join(PROGRAM)));
    let program = beside.filter(|path| path.is_file()).unwrap_or_else(|| PathBuf::from(PROGRAM));
    let mut server = Command::new(program);
    server.args(&args.arguments);
    let cause = start(&mut server);
    let is_absent = cause.kind() == io::ErrorKind::NotFound;
    let error = DataError::io("cannot start the program `cembra-serve`", cause);
    let error = if is_absent {
        error.hint("install it with `cargo install --path crates/serve`, from a checkout of cembra")
    } else {
        error
    };
    Err(error.into())
}

/// Replaces this process by the server. Returns the error if that fails.
#[cfg(unix)]
fn start(server: &mut Command) -> io::Error {
    std::os::unix::process::CommandExt::exec(server)
}

/// Runs the server and ends with its status. Returns the error if it cannot be started.
#[cfg(not(unix))]
fn start(server: &mut Command) -> io::Error {
    match server.status() {
        Ok(status) => std::process::exit(status.code().unwrap_or(1)),
        Err(error) => error,
    }
}
