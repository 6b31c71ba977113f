//! `cembra test`: runs the tests in models, and reports differences from the expected results.

use super::print;
use crate::arguments::WarningArgs;
use crate::deadline::{Deadline, parse_seconds};
use crate::failure::{Failure, usage};
use crate::source::ModelText;
use cembra::errors::{Code, Span};
use cembra::program::Sources;
use cembra::testing::{Mismatch, TestFailure};
use cembra::{Backend, Limits, Model, OnError, Options, RunOptions};
use cembra_runtime::visible;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

const NAME: &str = "test";

/// Runs the tests of models, in both backends
///
/// A test is a statement of the model: `test "adult" { age = 31 } => { score = 0.5 }`. Differences are shown as a diff, `-` for the
/// expected value and `+` for the actual one. The report ends with the number of branches that the cases take: sides of conditionals,
/// `??`, `and` and `or`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Exit status: 0 all passed, 1 a test failed or a model is wrong, 2 a wrong command line.")]
pub(crate) struct Args {
    /// The models; without any, all regular `.cem` files of this folder
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,

    /// List the branches that no case takes
    #[arg(long)]
    coverage: bool,

    /// The most seconds that the tests of a model and their report may take
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    time_limit: Option<Duration>,

    /// The meaning of a failed evaluation for a case that expects values
    #[arg(long, value_enum, default_value_t)]
    on_error: FailedCases,

    #[command(flatten)]
    warnings: WarningArgs,
}

/// The choices of `--on-error`.
#[derive(clap::ValueEnum, Clone, Copy, Debug, Default)]
enum FailedCases {
    /// The case fails
    #[default]
    Fail,
    /// The outputs are missing, as they are with `cembra eval --on-error missing`
    Missing,
}

/// Runs `cembra test`.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let is_named = !args.files.is_empty();
    let files = if is_named { args.files.clone() } else { models_here()? };
    let mut failed = false;
    for file in &files {
        let (text, model) = match read(file) {
            Ok(read) => read,
            // Without file names, files that other models use are found too; they have no outputs.
            Err(Failure::Model { problems, .. })
                if !is_named && problems.iter().all(|problem| problem.code() == Code::NoOutput) =>
            {
                continue;
            }
            Err(failure) => {
                failure.report();
                failed = true;
                continue;
            }
        };
        let on_error = match args.on_error {
            FailedCases::Fail => OnError::Fail,
            FailedCases::Missing => OnError::Missing,
        };
        let deadline = Deadline::start(args.time_limit);
        let run = RunOptions::new().on_error(on_error).cancellation(deadline.token().clone());
        args.warnings.tell_of(&text, || model.test_warnings(&Options::default().limits(text.limits()), &run));
        let (mut report, passed) = tested(&text, &model, &run, &deadline);
        report += &covered(&text, &model, args.coverage, &run, &deadline);
        print(&report)?;
        failed |= !passed;
    }
    if failed { Err(Failure::Reported) } else { Ok(()) }
}

fn read(file: &Path) -> Result<(ModelText, Model), Failure> {
    let text = ModelText::read(file, Limits::default())?;
    let model = text.parse()?;
    Ok((text, model))
}

/// The models of the current folder, by name.
fn models_here() -> Result<Vec<PathBuf>, Failure> {
    let entries = std::fs::read_dir(".").into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
    // A pipe would block, and a folder is not a model.
    let names = entries.filter(|path| path.is_file()).filter_map(|path| path.file_name().map(PathBuf::from));
    let mut found: Vec<PathBuf> = names.filter(|name| name.extension().is_some_and(|end| end == "cem")).collect();
    found.sort();
    if found.is_empty() { Err(usage(NAME, "there is no `.cem` file in this folder")) } else { Ok(found) }
}

/// Runs the tests of a model. Returns the report, and true if all tests passed. The report states the number of failures that it leaves out because
/// of the time limit.
pub(crate) fn tested(text: &ModelText, model: &Model, run: &RunOptions, deadline: &Deadline) -> (String, bool) {
    let by = |backend| model.run_tests_with(&Options::default().limits(text.limits()).backend(backend), run);
    let (interpreted, native) = (by(Backend::Interpreter), by(Backend::Native));
    // The failures by place in the text: the report of each, and the backend if only one of them fails.
    let mut all: BTreeMap<Span, Vec<(String, &str)>> = BTreeMap::new();
    // The places of failures that there is no time to report.
    let mut untold: BTreeSet<Span> = BTreeSet::new();
    for (failures, only) in [(&interpreted.failures, " (interpreter)"), (&native.failures, " (machine code)")] {
        for failure in failures {
            if deadline.ends_reports() {
                untold.insert(failure.span);
                continue;
            }
            let text = told(failure, text.sources());
            let here = all.entry(failure.span).or_default();
            match here.iter_mut().find(|(same, _)| *same == text) {
                Some((_, by)) => *by = "",
                None => here.push((text, only)),
            }
        }
    }
    let mut out = String::new();
    for (text, by) in all.values().flatten() {
        let (head, rest) = text.split_once('\n').unwrap_or((text, ""));
        let _never_fails = writeln!(out, "{head}{by}\n{rest}");
    }
    untold.retain(|span| !all.contains_key(span));
    if !untold.is_empty() {
        let _never_fails = writeln!(out, "{} more failures are not shown: the time limit is over\n", untold.len());
    }
    let failed = all.len() + untold.len();
    let (cases, name) = (interpreted.cases, visible(text.name()));
    let plural = if cases == 1 { "case" } else { "cases" };
    let _never_fails = match (cases, failed) {
        (0, _) => writeln!(out, "{name}: no tests"),
        (_, 0) => writeln!(out, "{name}: {cases} {plural} passed"),
        (_, failed) => writeln!(out, "{name}: {cases} {plural}, {failed} failed"),
    };
    (out, failed == 0)
}

/// The report of how many branches the tests take and, with `is_detailed`, which they do not; empty if there are no tests or no branches.
fn covered(text: &ModelText, model: &Model, is_detailed: bool, run: &RunOptions, deadline: &Deadline) -> String {
    if model.test_names().len() == 0 {
        return String::new();
    }
    let branches = model.test_coverage_with(&Options::default().limits(text.limits()), run);
    if branches.is_empty() {
        return String::new();
    }
    let taken = branches.iter().filter(|branch| branch.is_taken).count();
    let mut out = format!("branches: {taken} of {} taken\n", branches.len());
    for branch in branches.iter().filter(|branch| is_detailed && !branch.is_taken) {
        if deadline.ends_reports() {
            out += "more branches are not shown: the time limit is over\n";
            break;
        }
        let place = text.sources().place(branch.span);
        let (line, column) = place.line_and_column();
        // Several sides may begin at the same place, as in two `or` in a row.
        let side = place.quoted().map(|side| side.to_string()).unwrap_or_default();
        let _never_fails = writeln!(out, "{}:{line}:{column}: {}: `{side}`", visible(place.name), branch.untaken);
    }
    out
}

/// The report of a failure: its place and name, then a diff.
fn told(failure: &TestFailure, sources: &Sources) -> String {
    let place = sources.place(failure.span);
    let (line, _) = place.line_and_column();
    let mut out = format!("{}:{line}: test \"{}\" failed\n", visible(place.name), visible(&failure.test));
    for mismatch in &failure.mismatches {
        let _never_fails = match mismatch {
            Mismatch::Output { name, expected, found } => {
                let name = visible(name);
                writeln!(out, "- {name} = {expected}\n+ {name} = {found}")
            }
            Mismatch::Error { expected, found } => {
                let expected =
                    expected.as_ref().map_or("no error".to_owned(), |code| format!("error \"{}\"", visible(code)));
                let found = found
                    .as_ref()
                    .map_or("no error".to_owned(), |error| format!("error \"{}\": {}", error.code(), error.message()));
                writeln!(out, "- {expected}\n+ {found}")
            }
            Mismatch::Unfit(problem) => writeln!(out, "  error[{}]: {problem}", problem.code()),
            other => writeln!(out, "  {other:?}"),
        };
    }
    out
}
