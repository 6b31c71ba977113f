//! The fuzzer for tensors: it tries random graphs, derivatives of smooth graphs, and random statements (assignments in text), also on tiled
//! tensors. A graph depends only on the seed and the graph's number.

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

/// A broken law, and the graph or statement that breaks it.
#[derive(Clone, PartialEq, Debug)]
struct Finding {
    what: String,
    /// The text of the graph or statement.
    text: String,
}

/// A law (property that must hold) that a tensor graph or a statement breaks, and the command that tries the same graph or statement again.
#[derive(Clone, PartialEq, Debug)]
pub struct TensorMismatch {
    finding: Finding,
    replay: String,
}

/// The statistics of a run on tensors, and the mismatch found, if any. `Display` prints one line of statistics, and the mismatch.
#[derive(Clone, Debug, Default)]
pub struct TensorReport {
    /// The number of random graphs that were tried.
    pub graphs: u64,
    /// The number of nodes in all graphs that were tried.
    pub nodes: u64,
    /// The number of times that rewrite rules were applied to the graphs.
    pub applied: u64,
    /// The number of graphs in which the evaluation of an element fails.
    pub failing: u64,
    /// The number of graphs whose derivatives were compared with central differences.
    pub derivatives: u64,
    /// The number of graphs whose derivatives were not compared, because central differences were too inaccurate.
    pub rough: u64,
    /// The number of random statements that were tried.
    pub statements: u64,
    mismatch: Option<TensorMismatch>,
}

impl TensorReport {
    /// Returns the mismatch that ended the run; `None` if there was none.
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

/// Tries tensor graphs and statements until the number that `config` asks for was tried, or a law is broken. Of ten tries, seven are graphs with
/// any operators, two are graphs that are differentiated, and one is a statement. Calls `progress` after each try, with the number tried so far.
pub fn run_tensors(config: &Config, progress: &mut dyn FnMut(u64)) -> TensorReport {
    let mut judge = Judge::new();
    let mismatch = mismatch(config, "--tensors", progress, |number, random| one(number, random, &mut judge));
    TensorReport { mismatch, ..judge.report }
}

/// Calls `one` with consecutive numbers until there are enough, or it returns a finding or panics. `option` is the option of `cembra fuzz` to
/// reproduce it.
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
