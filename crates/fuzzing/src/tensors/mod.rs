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
use crate::first_found;
use crate::panics::caught;
use fastrand::Rng;
use judge::Judge;
use std::fmt;

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
    let mut judge = Judge::new();
    let mismatch = mismatch(config, "--tensors", progress, |number, random| one(number, random, &mut judge));
    TensorReport { mismatch, ..judge.report }
}

/// Tries one number after the other until there are enough, or something does not hold of one, or it panics. `option` is that of the command.
fn mismatch(
    config: &Config,
    option: &str,
    progress: &mut dyn FnMut(u64),
    mut one: impl FnMut(u64, &mut Rng) -> Option<Finding>,
) -> Option<TensorMismatch> {
    first_found(config, progress, |number| {
        let found = caught(|| one(number, &mut config.random(number)));
        let finding = found.unwrap_or_else(|text| Some(Finding { what: "a panic".to_owned(), text }))?;
        let replay = format!("cembra fuzz {option} 1 --seed {} --start {number}", config.seed);
        Some(TensorMismatch { finding, replay })
    })
}

fn one(number: u64, random: &mut Rng, judge: &mut Judge) -> Option<Finding> {
    let found = match number % 10 {
        0..7 => {
            judge.report.graphs += 1;
            graphs::case(random).map(|case| judge.judge(&case))
        }
        7 | 8 => derivatives::check(random, judge),
        _ => {
            judge.report.statements += 1;
            Ok(statements::check(random))
        }
    };
    found.unwrap_or_else(|error| Some(Finding { what: "no graph".to_owned(), text: error.to_string() }))
}
