//! `cembra lsp`: the language server, for editors.

use crate::failure::Failure;
use cembra_lsp::{ServerError, run_stdio};
use cembra_table::error::DataError;
use std::io;

/// Serves an editor over standard input and output, by the Language Server Protocol
///
/// Editors start it; see `docs/editors`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Exit status: 0 if the editor shut the server down, 1 otherwise.")]
pub(crate) struct Args {
    /// Uses standard input and output, which is always the case; some editors pass this option
    #[arg(long)]
    stdio: bool,
}

/// Runs `cembra lsp`.
pub(crate) fn run(_: &Args) -> Result<(), Failure> {
    run_stdio().map_err(|error| {
        let cause = match error {
            ServerError::Stream(cause) => cause,
            other => io::Error::other(other),
        };
        DataError::io("cannot serve the editor", cause).into()
    })
}
