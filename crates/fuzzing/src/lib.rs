//! Random programs for cembra: a generator, the laws every program must obey, and a shrinker for those that break one.
//! `cembra fuzz`, the tests and the libFuzzer shells in `fuzz/` all run what is here.
//!
//! The generator walks the operator registry, so that an operator is fuzzed from the day it is registered. Of every
//! program the judge demands, on every row: the interpreter, native code, an executor that changes from the one to the other
//! and direct evaluation of the graph give the same bits, or the backends the same fault at the same place; no row, pass or
//! other output changes an answer, but optimisation may make an evaluation lazier; the text reads back as the program; the
//! plan passes the verifier; what is ill-typed is refused in the same words by all backends; and nothing panics.
//!
//! A share of the programs compute on arrays, a third of these on requests, which are also run on JSON and on structs of Rust: of them the judge demands that every way to run them fused gives what the interpreter
//! gives, which evaluates one operator after the other, to the element that fails.
//!
//! ```
//! let config = cembra_fuzzing::Config { programs: Some(20), ..Default::default() };
//! let report = cembra_fuzzing::run(&config, &mut |_| {});
//! assert!(report.mismatch().is_none(), "{report}");
//! ```

mod any_value;
mod arrays;
mod batches;
mod catalogue;
mod config;
mod damage;
mod direct;
mod edit;
mod generator;
mod in_place;
mod judge;
mod layout;
mod loaded;
mod panics;
mod report;
mod requests;
mod shrink;
mod subject;
mod tensors;
mod values;

pub use config::Config;
pub use layout::{Laid, Layout, Lists, Shape};
pub use report::{Mismatch, Report};
pub use subject::{Answer, Failure, Row, Subject, Subjects};
pub use tensors::{TensorMismatch, TensorReport, TileReport, run_tensors, run_tiles};

use cembra::{Tier, print};
use cembra_expr::Program;
use cembra_value::Limits;
use config::{chance, pick};
use judge::{Case, Finding, Variant, judge};
use std::time::Instant;

/// Tries programs on the backends until there are enough or one breaks a law. `progress` is told how many were tried, after
/// each.
pub fn run(config: &Config, progress: &mut dyn FnMut(u64)) -> Report {
    run_on(config, Subjects::default(), progress)
}

/// Tries programs on other subjects than the backends.
pub fn run_on(config: &Config, subjects: Subjects<'_>, progress: &mut dyn FnMut(u64)) -> Report {
    let mut report = Report::default();
    let mismatch = first_found(config, progress, |number| try_program(config, number, subjects, &mut report));
    report.end(mismatch);
    report
}

/// Tries one number after the other until `config` has enough of them, or `one` finds something. `progress` is told the number of tries after each.
fn first_found<F>(config: &Config, progress: &mut dyn FnMut(u64), mut one: impl FnMut(u64) -> Option<F>) -> Option<F> {
    let begun = Instant::now();
    for tried in 0..config.programs.unwrap_or(u64::MAX) {
        if config.time().is_some_and(|time| begun.elapsed() >= time) {
            break;
        }
        let found = one(config.start.wrapping_add(tried));
        if found.is_some() {
            return found;
        }
        progress(tried + 1);
    }
    None
}

/// The program with this number, before anything is done to it, if it is one on scalars.
#[must_use]
pub fn program(config: &Config, number: u64) -> Program {
    generator::program(&mut config.random(number), config)
}

/// Programs of one operator each, by its name: for each overload and lifting one that has inputs for operands; of operators that take
/// anything, some. Functions and what takes them are left out, and what cannot be computed at run time.
#[must_use]
pub fn operators(config: &Config) -> Vec<(&'static str, Vec<Program>)> {
    let config = Config { max_inputs: 12, max_depth: 3, ..config.clone() };
    let all = catalogue::Catalogue::standard().entries.iter().zip(0..);
    let programs = |(entry, at)| generator::alone(&mut config.random(at), &config, entry);
    all.map(|(entry, at)| (entry.def.name, programs((entry, at)))).collect()
}

/// Rows for the program with this number.
#[must_use]
pub fn rows(config: &Config, number: u64, program: &Program) -> Vec<Row> {
    generator::rows(&mut config.random(number), config, &program.inputs)
}

/// Judges text from anywhere as a program: it may be refused, but by an error, and by all backends alike.
#[must_use]
pub fn try_text(text: &str) -> Option<Mismatch> {
    let config = Config { rows: 2, tiered: 1.0, ..Config::default() };
    let subjects = Subjects::default();
    let mut random = config.random(0);
    match case_of_text(&mut random, &config, text) {
        Ok(None) => None,
        Ok(Some(case)) => {
            let verdict = judge(&case, subjects);
            verdict.finding.map(|finding| shrunk(&config, 0, case, finding, subjects))
        }
        Err(finding) => Some(unreadable(&config, 0, text, finding)),
    }
}

fn try_program(config: &Config, number: u64, subjects: Subjects<'_>, report: &mut Report) -> Option<Mismatch> {
    let random = &mut config.random(number);
    // The first row of a program on arrays, or all rows of one on requests.
    let (mut program, mut begun) = if !config.takes_arrays(number) {
        (generator::program(random, config), Vec::new())
    } else if chance(random, config.requests) {
        generator::request_program(random, config)
    } else {
        let (program, first) = generator::array_program(random, config);
        (program, vec![first])
    };
    if chance(random, config.garbled) {
        let text = damage::garbled(random, &print(&program));
        match case_of_text(random, config, &text) {
            Ok(Some(case)) => return try_case(config, number, case, subjects, report),
            Ok(None) => report.note_unreadable(),
            Err(finding) => return Some(unreadable(config, number, &text, finding)),
        }
        return None;
    }
    if chance(random, config.ill_typed) {
        program = damage::damaged(random, &program, config);
    }
    let variant = chance(random, config.variants).then(|| *pick(random, &Variant::ALL));
    let alone = (random.u32(..4) == 0 && program.outputs.len() > 1).then(|| random.usize(..program.outputs.len()));
    let in_place = chance(random, config.in_place);
    let limits = chance(random, config.limited).then(|| {
        few_rounds()
            .arena_bytes(*pick(random, &[0, 1, 16, 60, 200]))
            .loop_iterations(random.u64(..12))
            .string_work(*pick(random, &[0, 10, 100, 1_000]))
    });
    // Over an empty list the reference evaluates what a function needs no element for, and a plan with loops does not: a limit on strings
    // would be met by the reference alone.
    let mut limits = limits.filter(|_| begun.len() < 2).unwrap_or_else(few_rounds);
    if chance(random, config.cut) {
        limits.native_steps = *pick(random, &[1, 2, 3, 5, 10, 25]);
    }
    let tier = if chance(random, config.quick) { Tier::Quick } else { Tier::Optimised };
    let rows = match begun.len() {
        0 => generator::rows(random, config, &program.inputs),
        1 => generator::array_rows(random, config, &program.inputs, begun.swap_remove(0)),
        _ => generator::request_rows(random, config, &program.inputs, begun),
    };
    let (tiered, batched) = (chance(random, config.tiered), chance(random, config.batched));
    let case = Case { program, rows, variant, alone, in_place, limits, tier, tiered, batched };
    try_case(config, number, case, subjects, report)
}

fn try_case(config: &Config, number: u64, case: Case, subjects: Subjects<'_>, report: &mut Report) -> Option<Mismatch> {
    let verdict = judge(&case, subjects);
    report.note(&case.program, &verdict, case.rows.len(), case.variant.is_some());
    verdict.finding.map(|finding| shrunk(config, number, case, finding, subjects))
}

fn case_of_text(random: &mut fastrand::Rng, config: &Config, text: &str) -> Result<Option<Case>, Finding> {
    let Some(program) = judge::read(text)? else { return Ok(None) };
    let rows = generator::rows(random, config, &program.inputs);
    let (tiered, batched) = (chance(random, config.tiered), chance(random, config.batched));
    let (limits, tier) = (few_rounds(), Tier::default());
    Ok(Some(Case { program, rows, variant: None, alone: None, in_place: true, limits, tier, tiered, batched }))
}

/// The limits of programs that are to be evaluated to their end. Damaged programs loop for ever: every backend and player would go all the
/// ten million rounds, on each row.
fn few_rounds() -> Limits {
    Limits::default().loop_iterations(10_000)
}

fn unreadable(config: &Config, number: u64, text: &str, finding: Finding) -> Mismatch {
    let program = Program::default();
    let (limits, tier) = (few_rounds(), Tier::default());
    let replay = config.replay(number);
    Mismatch { program, text: Some(text.to_owned()), row: None, limits, tier, finding, number, replay }
}

fn shrunk(config: &Config, number: u64, case: Case, finding: Finding, subjects: Subjects<'_>) -> Mismatch {
    let broken = |case: &Case| judge(case, subjects).finding;
    let (mut case, finding) = shrink::shrink(case, finding, config.shrink, &broken);
    let row = finding.row.filter(|at| *at < case.rows.len()).map(|at| case.rows.swap_remove(at));
    let row = row.or_else(|| case.rows.into_iter().next());
    let Case { program, limits, tier, .. } = case;
    Mismatch { program, text: None, row, limits, tier, finding, number, replay: config.replay(number) }
}
