//! Random programs for cembra: a generator, the laws (properties) that must hold for every program, and a shrinker for programs that break a law.
//! `cembra fuzz`, the tests and the libFuzzer targets in `fuzz/` use this crate.
//!
//! The generator draws from the operator registry, so a new operator is fuzzed as soon as it is registered. For every program and row, the judge
//! checks these laws:
//!
//! - The interpreter, native code, an executor that changes between the two, and direct evaluation of the graph give the same bits; or all backends
//!   give the same fault at the same place.
//! - An answer does not depend on other rows, other outputs or passes, except that optimisation may make an evaluation lazier.
//! - The program's text parses to an equal program, and the plan passes the verifier.
//! - All backends reject an ill-typed program with the same error.
//! - Nothing panics.
//!
//! A share of the programs compute on arrays. A third of the programs on arrays compute on requests (lists of structs and a dictionary), and also
//! run on JSON and on Rust structs. For programs on arrays, every fused execution must equal the interpreter's, which evaluates one operator after
//! the other. Faults must name the same element.
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
pub use layout::{ColumnMemory, Layout, Lists, Shape};
pub use report::{Mismatch, Report};
pub use subject::{Answer, Failure, Row, Subject, Subjects};
pub use tensors::{TensorMismatch, TensorReport, TileReport, run_tensors, run_tiles};

use cembra::explain::print;
use cembra::native::Tier;
use cembra_expr::Program;
use cembra_value::Limits;
use config::{chance, pick};
use judge::{Case, Finding, Variant, judge};
use std::time::Instant;

/// Tries random programs on the backends, until the number of programs that `config` asks for was tried, or a program breaks a law. Calls
/// `progress` after each program, with the number tried so far.
pub fn run(config: &Config, progress: &mut dyn FnMut(u64)) -> Report {
    run_on(config, Subjects::default(), progress)
}

/// Tries random programs like [`run`], but compares `subjects` (implementations that run programs) instead of the backends.
pub fn run_on(config: &Config, subjects: Subjects<'_>, progress: &mut dyn FnMut(u64)) -> Report {
    let mut report = Report::default();
    let mismatch = first_found(config, progress, |number| try_program(config, number, subjects, &mut report));
    report.end(mismatch);
    report
}

/// Calls `one` with consecutive numbers until `config` has enough of them or `one` returns a finding. Calls `progress` after each, with the number of
/// tries.
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

/// Returns the program on scalars with the number `number`, before it is damaged.
#[must_use]
pub fn program(config: &Config, number: u64) -> Program {
    generator::program(&mut config.random(number), config)
}

/// Returns small programs with a single operator, by the operator's name. There is one program per overload, on scalars and lifted to optionals or
/// arrays, with inputs as operands; for an operator that accepts any types there are a few programs. Functions, operators on functions, and operators
/// without a value at run time are left out.
#[must_use]
pub fn operators(config: &Config) -> Vec<(&'static str, Vec<Program>)> {
    let config = Config { max_inputs: 12, max_depth: 3, ..config.clone() };
    let all = catalogue::Catalogue::standard().entries.iter().zip(0..);
    let programs = |(entry, at)| generator::alone(&mut config.random(at), &config, entry);
    all.map(|(entry, at)| (entry.def.name, programs((entry, at)))).collect()
}

/// Returns the rows for `program`, which has the number `number`.
#[must_use]
pub fn rows(config: &Config, number: u64, program: &Program) -> Vec<Row> {
    generator::rows(&mut config.random(number), config, &program.inputs)
}

/// Judges any text as a program, and returns the law that it breaks, if any. An invalid text must be rejected with the same error by all backends.
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
    // The first row of a program on arrays, or all rows of a program on requests.
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
    // For an empty list, the reference evaluates the parts of a function that do not depend on an element, and a plan with loops does not. So only
    // the reference would reach a limit on strings.
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

/// Returns limits for programs that must terminate quickly. Damaged programs may loop endlessly, and every backend would run ten million rounds for
/// each row.
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
