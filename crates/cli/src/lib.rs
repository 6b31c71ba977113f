//! The `cembra` command, which evaluates, checks, explains, compiles and measures models. The command is written as a library, and `main` only
//! calls [`run`], so that its unit tests are linked only once.

mod arguments;
mod command;
mod data_files;
mod deadline;
mod diagnose;
mod effects;
mod evaluate;
mod failed_rows;
mod failure;
mod inputs;
mod pipeline;
mod progress;
mod ranks;
mod source;
mod turns;

use clap::{Parser, Subcommand};
use command::{
    bench, build, check, completions, eval, eval_arguments, explain, fmt, fuzz, lsp, ops, repl, serve, test,
};
use failure::Failure;
use std::panic::{catch_unwind, resume_unwind};
use std::process::ExitCode;
use std::sync::LazyLock;

/// The version of cembra, and the release of the time zone database.
static VERSION: LazyLock<String> =
    LazyLock::new(|| format!("{} (time zones {})", env!("CARGO_PKG_VERSION"), cembra::operators::time_zones()));

/// Evaluates typed expressions with missing values
#[derive(Parser)]
#[command(
    name = "cembra",
    version = VERSION.as_str(),
    arg_required_else_help = true,
    after_help = "Try: cembra eval -e 'x * 2 + 1' -s x=20"
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Eval(Box<eval_arguments::Args>),
    Check(check::Args),
    Explain(explain::Args),
    Build(build::Args),
    Ops(ops::Args),
    Repl(repl::Args),
    Fuzz(fuzz::Args),
    Bench(bench::Args),
    Test(test::Args),
    Fmt(fmt::Args),
    Lsp(lsp::Args),
    Serve(serve::Args),
    Completions(completions::Args),
}

/// Runs the command that the process was started with, and returns its exit status.
#[must_use]
pub fn run() -> ExitCode {
    be_quiet_about_errors();
    let ended = catch_unwind(|| match Arguments::try_parse() {
        Ok(arguments) => dispatch(arguments.command),
        // Help and the version are not failures.
        Err(told) if !told.use_stderr() => told.exit(),
        Err(error) => Err(Failure::Usage(Box::new(error))),
    });
    let code = match ended {
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(failure)) => failure.report(),
        Err(panic) => {
            ranks::end_all();
            resume_unwind(panic);
        }
    };
    if code != ExitCode::SUCCESS {
        ranks::end_all();
    }
    code
}

/// Runs a command.
fn dispatch(command: Command) -> Result<(), Failure> {
    // These two commands decide themselves whether ranks share their work.
    let may_share = matches!(command, Command::Eval(_) | Command::Fuzz(_));
    if !may_share && !ranks::works_alone("only the commands `eval` and `fuzz --tiles` can be distributed to ranks") {
        return Ok(());
    }
    match command {
        Command::Eval(args) => eval::run(&args),
        Command::Check(args) => check::run(&args),
        Command::Explain(args) => explain::run(&args),
        Command::Build(args) => build::run(&args),
        Command::Ops(args) => ops::run(&args),
        Command::Repl(args) => repl::run(&args),
        Command::Fuzz(args) => fuzz::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Test(args) => test::run(&args),
        Command::Fmt(args) => fmt::run(&args),
        Command::Lsp(args) => lsp::run(&args),
        Command::Serve(args) => serve::run(&args),
        Command::Completions(args) => completions::run(&args),
    }
}

/// Suppresses the output of panics of libraries that become errors.
fn be_quiet_about_errors() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if !cembra_table::is_guarded() {
            usual(info);
        }
    }));
}
