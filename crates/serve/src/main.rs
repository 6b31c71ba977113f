//! The command `cembra-serve`: reads the arguments, starts the server, and ends it at a signal.

use cembra_serve::{Arguments, Server, Settings};
use clap::Parser;
use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use tracing_subscriber::EnvFilter;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("cembra_serve=info"));
    let ansi = std::io::stderr().is_terminal();
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(ansi).init();
    match run(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            // Nothing can be said if standard error is closed.
            let _closed = writeln!(std::io::stderr(), "error: {message}");
            ExitCode::from(2)
        }
    }
}

fn run(arguments: Arguments) -> Result<(), String> {
    let folder = arguments.folder.clone();
    let server = Server::start(Settings::of(arguments)?).map_err(|error| error.to_string())?;
    tracing::info!("serves the models of `{}` at http://{}", folder.display(), server.address());
    server.run_until_signal().map_err(|error| error.to_string())
}
