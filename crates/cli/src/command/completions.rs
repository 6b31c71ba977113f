//! `cembra completions`: prints the script that makes a shell complete the command.

use super::print_data;
use crate::failure::Failure;
use clap::CommandFactory;
use clap_complete::Shell;

/// Prints the script that makes a shell complete this command
///
/// For bash: `cembra completions bash > ~/.local/share/bash-completion/completions/cembra`
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Runs `cembra completions`.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut crate::Arguments::command(), "cembra", &mut script);
    print_data(&String::from_utf8_lossy(&script))
}
