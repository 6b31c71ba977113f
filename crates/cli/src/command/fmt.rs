//! `cembra fmt`: writes models in their canonical layout.

use super::{print, print_data, write_file};
use crate::failure::{Failure, usage};
use crate::source::{ModelText, STANDARD};
use cembra::Limits;
use cembra_runtime::visible;
use std::path::{Path, PathBuf};

const NAME: &str = "fmt";

/// Formats models: rewrites files, or standard input to standard output
///
/// The model and its comments stay the same. A file that is formatted already is not written, and if writing fails, the old file stays.
#[derive(clap::Args, Debug)]
#[command(after_help = "Exit status: 0 all is formatted, 1 a file would change (with --check) or cannot be read, \
                        2 a wrong command line.")]
pub(crate) struct Args {
    /// The files; without any, or with `-`, standard input is written to standard output
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Changes nothing: lists the files that would change, and fails if there are any
    #[arg(long)]
    check: bool,
}

/// Runs `cembra fmt`.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let stdin = [PathBuf::from(STANDARD)];
    let files = if args.files.is_empty() { &stdin } else { &*args.files };
    let inputs = files.iter().filter(|file| is_stdin(file)).count();
    if inputs > 0 && files.len() > 1 {
        return Err(usage(NAME, "standard input cannot be formatted together with files"));
    }
    let mut failed = false;
    for file in files {
        match formatted(file, args.check) {
            Ok(is_formatted) => failed |= args.check && !is_formatted,
            // The other files are formatted anyway.
            Err(failure) if files.len() > 1 => {
                failure.report();
                failed = true;
            }
            Err(failure) => return Err(failure),
        }
    }
    if failed { Err(Failure::Reported) } else { Ok(()) }
}

fn is_stdin(file: &Path) -> bool {
    file.as_os_str() == STANDARD
}

/// Formats a file, or only checks it; returns true if it was formatted already.
fn formatted(file: &Path, check: bool) -> Result<bool, Failure> {
    let text = ModelText::read_alone(file, Limits::default())?;
    let made = text.format()?;
    let is_formatted = made == text.sources().main();
    match (check, is_stdin(file)) {
        (true, _) if is_formatted => {}
        (true, _) => print(&format!("{}\n", visible(text.name())))?,
        (false, true) => print_data(&made)?,
        (false, false) if is_formatted => {}
        (false, false) => write_file(file, made.as_bytes(), "cannot write the model")?,
    }
    Ok(is_formatted)
}
