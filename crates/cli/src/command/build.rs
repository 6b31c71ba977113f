//! `cembra build`: compiles a model ahead of time into an object file, with declarations for C and Rust.

use super::{options_with_types, write_file};
use crate::arguments::ModelArgs;
use crate::failure::Failure;
use cembra::native::Target;
use std::path::PathBuf;

const NAME: &str = "build";

/// The message for a file that cannot be written.
const WRONG: &str = "cannot write here";

/// Compiles a model ahead of time into an object file
///
/// The file is linked with `cembra-runtime` alone; the guide shows how, under "Ahead of time". Without `--cpu` the code
/// runs on every machine of the target's architecture. All choices give the same results, bit for bit.
#[derive(clap::Args, Debug)]
#[command(
    override_usage = "cembra build [OPTIONS] -o <FILE> <MODEL>\n       cembra build [OPTIONS] -o <FILE> -e <EXPR>"
)]
pub(crate) struct Args {
    #[command(flatten)]
    model: ModelArgs,

    /// The path of the object file
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    /// The path of the header for C and C++
    #[arg(long, value_name = "FILE")]
    header: Option<PathBuf>,

    /// The path of the module for Rust
    #[arg(long, value_name = "FILE")]
    rust: Option<PathBuf>,

    /// The name of the model in programs; by default the name of its file
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// The platform to compile for, as in `aarch64-unknown-linux-gnu`; by default this machine
    #[arg(long, value_name = "TRIPLE")]
    target: Option<String>,

    /// Extensions of the instruction set that the code may use: `native` for all of this machine, or names such as `x86-64-v3` and
    /// `has_fma`
    #[arg(long, value_name = "NAME,..", value_delimiter = ',')]
    cpu: Vec<String>,

    /// Allow the rewrites that may change the sign of a zero, a NaN or a rounding
    #[arg(long)]
    compat: bool,
}

/// Runs `cembra build`.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let text = args.model.load(NAME)?;
    let model = text.parse()?;
    let options = options_with_types(&text, &model, &args.model, NAME)?.compat(args.compat);
    let mut target = args.target.as_ref().map_or_else(Target::host, Target::triple);
    for name in &args.cpu {
        target = if name == "native" { target.native_features() } else { target.feature(name) };
    }
    let name = args.name.as_deref().or(args.model.file_stem()).unwrap_or("model");
    let object = model.object(name, &target, &options).map_err(|error| text.blame(&error))?;
    write_file(&args.output, object.bytes(), WRONG)?;
    if let Some(path) = &args.header {
        write_file(path, object.header().as_bytes(), WRONG)?;
    }
    if let Some(path) = &args.rust {
        write_file(path, object.rust().as_bytes(), WRONG)?;
    }
    Ok(())
}
