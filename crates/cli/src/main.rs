//! The executable of the `cembra` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    cembra_cli::run()
}
