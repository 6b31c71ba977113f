//! Tensors: random graphs, what must hold of them, derivatives of smooth ones, and random statements; and the same on tiled tensors. A graph depends
//! on the seed and its number alone.

mod cuts;
mod derivatives;
mod direct;
mod graphs;
mod judge;
mod leaves;
mod statements;
mod tiles;
mod user;

pub use tiles::{TileReport, run_tiles};

use crate::Config;
use crate::panics::caught;
use judge::Judge;
use std::fmt;
use std::time::Instant;

/// What does not hold, and of what.
#[derive(Clone, PartialEq, Debug)]
struct Finding {
    what: String,
    /// The graph, or the statement.
    text: String,
}

/// What does not hold of a graph or a statement, and how to make it again.
#[derive(Clone, PartialEq, Debug)]
pub struct TensorMismatch {
    finding: Finding,
    replay: String,
}

/// What trying graphs of tensors came to. Shown as a line, and the mismatch if there is one.
#[derive(Clone, Debug, Default)]
pub struct TensorReport {
    /// Graphs of any operators.
    pub graphs: u64,
    /// Their nodes.
    pub nodes: u64,
    /// How often rules were applied to them.
    pub applied: u64,
    /// Graphs of which an element fails.
    pub failing: u64,
    /// Graphs whose derivatives were held against differences.
    pub derivatives: u64,
    /// Graphs whose differences were too rough to tell.
    pub rough: u64,
    /// Statements.
    pub statements: u64,
    mismatch: Option<TensorMismatch>,
}

impl TensorReport {
    /// What was found; the run ended there.
    #[must_use]
    pub fn mismatch(&self) -> Option<&TensorMismatch> {
        self.mismatch.as_ref()
    }
}

impl fmt::Display for TensorMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n{}\nagain: {}", self.finding.what, self.finding.text, self.replay)
    }
}

impl fmt::Display for TensorReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(mismatch) = &self.mismatch {
            writeln!(f, "{mismatch}")?;
        }
        let TensorReport { graphs, nodes, applied, failing, derivatives, rough, statements, .. } = self;
        write!(
            f,
            "{graphs} graphs of {nodes} nodes, {applied} rewrites, {failing} failing; {derivatives} graphs differentiated, {rough} \
             too rough; {statements} statements; {} mismatches",
            u32::from(self.mismatch.is_some())
        )
    }
}

/// Tries graphs of tensors and statements until there are enough, or something does not hold. Of ten, seven are graphs of any operators, two
/// are differentiated, and one is a statement. `progress` is told how many were tried, after each.
pub fn run_tensors(config: &Config, progress: &mut dyn FnMut(u64)) -> TensorReport {
    let mut report = TensorReport::default();
    let mut judge = Judge::new();
    report.mismatch = mismatch(config, "--tensors", progress, |number| {
        let found = caught(|| one(config, number, &mut judge, &mut report));
        (report.nodes, report.applied, report.failing) = (judge.nodes as u64, judge.applied as u64, judge.failing);
        found
    });
    report
}

/// Tries one number after the other until there are enough, or something does not hold of one, or it panics. `option` is that of the command.
fn mismatch(
    config: &Config,
    option: &str,
    progress: &mut dyn FnMut(u64),
    mut one: impl FnMut(u64) -> Result<Option<Finding>, String>,
) -> Option<TensorMismatch> {
    let begun = Instant::now();
    for tried in 0..config.programs.unwrap_or(u64::MAX) {
        if config.time().is_some_and(|time| begun.elapsed() >= time) {
            break;
        }
        let number = config.start.wrapping_add(tried);
        let found = one(number);
        if let Some(finding) =
            found.unwrap_or_else(|message| Some(Finding { what: "a panic".to_owned(), text: message }))
        {
            let replay = format!("cembra fuzz {option} 1 --seed {} --start {number}", config.seed);
            return Some(TensorMismatch { finding, replay });
        }
        progress(tried + 1);
    }
    None
}

fn one(config: &Config, number: u64, judge: &mut Judge, report: &mut TensorReport) -> Option<Finding> {
    let random = &mut config.random(number);
    let failed = |error: cembra::Error| Finding { what: "no graph".to_owned(), text: error.to_string() };
    match number % 10 {
        0..7 => {
            report.graphs += 1;
            graphs::case(random).map_or_else(|error| Some(failed(error)), |case| judge.judge(&case))
        }
        7 | 8 => match derivatives::check(random, judge) {
            Ok(derivatives::Verdict::Rough) => {
                report.rough += 1;
                None
            }
            Ok(derivatives::Verdict::Holds) => {
                report.derivatives += 1;
                None
            }
            Ok(derivatives::Verdict::Broken(finding)) => Some(finding),
            Err(error) => Some(failed(error)),
        },
        _ => {
            report.statements += 1;
            statements::check(random)
        }
    }
}
