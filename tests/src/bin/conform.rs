//! `conform`: runs golden cases on cembra's backends and says what passed, what failed and what was skipped. Cases are
//! operator calls, expressions with all their rows, and signatures; the last line counts them.

use cembra::Options;
use cembra_tests::backend::CembraEngine;
use cembra_tests::conformance::Conformance;
use cembra_tests::engine::Engine;
use cembra_tests::files;
use clap::{Parser, ValueEnum};
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;

/// Runs golden cases on cembra's backends.
///
/// Exits with 0 if none failed, 1 if some did, 2 if the data cannot be read.
#[derive(Parser, Debug)]
#[command(version)]
struct Arguments {
    /// The backend to test; a case passes on several only if it passes on each and they agree.
    #[arg(long, value_enum, default_value_t = Backends::Both)]
    backend: Backends,
    /// Rewrite as Arolla does, where that changes a zero's sign, a NaN or a rounding.
    #[arg(long)]
    compat: bool,
    /// Run only cases whose operator, expression, id or tag contains this.
    #[arg(long, value_name = "SUBSTRING")]
    only: Option<String>,
    /// List the skipped cases by operator and reason.
    #[arg(long)]
    why: bool,
    /// How many failures of each operator to show.
    #[arg(long, value_name = "N", default_value_t = 3)]
    show: usize,
    /// Golden files, or folders of them [default: cembra's own].
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum, Debug)]
enum Backends {
    Interp,
    Native,
    /// Each program's rows by the interpreter, by quick and by optimised machine code.
    Tiered,
    /// Interpreted and native.
    Both,
}

impl Backends {
    fn engines(self, options: Options) -> Vec<CembraEngine> {
        match self {
            Backends::Interp => vec![CembraEngine::interpreter(options)],
            Backends::Native => vec![CembraEngine::native(options)],
            Backends::Tiered => vec![CembraEngine::tiered(options)],
            Backends::Both => vec![CembraEngine::interpreter(options.clone()), CembraEngine::native(options)],
        }
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let paths = if arguments.paths.is_empty() { vec![files::own()] } else { arguments.paths };
    let engines = arguments.backend.engines(Options::default().compat(arguments.compat));
    let engines = engines.iter().map(|engine| engine as &dyn Engine).collect();
    let conformance = Conformance { engines, only: arguments.only, one_in: 1, show: arguments.show };
    let report = match files::find(&paths).and_then(|files| conformance.run(&files)) {
        Ok(report) => report,
        Err(problem) => {
            // With standard error closed there is nobody to tell.
            let _ = writeln!(io::stderr(), "conform: {problem}");
            return ExitCode::from(2);
        }
    };
    let mut out = BufWriter::new(io::stdout().lock());
    let written = report
        .write_failures(&mut out)
        .and_then(|()| if arguments.why { report.write_skips(&mut out) } else { Ok(()) })
        .and_then(|()| writeln!(out, "{report}"))
        .and_then(|()| out.flush());
    // A reader that closed the pipe has seen what it wanted: the exit status still says what was found.
    drop(written);
    if report.failed() == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
