//! The fuzzer for tiled tensors: random graphs and statements in random tilings, and functions on tiled tensors that are not operations of graphs.
//! Results are compared with the expected values. The bits of a result must not depend on the number of threads, blocks and ranks, on the backend, or
//! on whether tiles are lazy (computed on demand). A program depends only on the seed and the program's number.

mod estimates;
mod functions;
mod judge;
mod meaning;
mod on_ranks;
mod operands;
mod program;
mod statements;

use super::{Finding, TensorMismatch, graphs, mismatch};
use crate::Config;
use cembra::Error;
use cembra_tiles::link::Link;
use fastrand::Rng;
use judge::TileJudge;
use operands::Sparsity;
use program::{Program, Settings};
use std::fmt;
use std::sync::Arc;

/// The statistics of a run on tiled tensors, and the mismatch found, if any. `Display` prints one line of statistics, and the mismatch.
#[derive(Clone, Debug, Default)]
pub struct TileReport {
    /// The number of random graphs that were tried.
    pub graphs: u64,
    /// The number of random statements that were tried.
    pub statements: u64,
    /// The number of tensors on which the functions that are not operations of graphs were tested.
    pub functions: u64,
    /// The number of graphs and statements that were evaluated without an error.
    pub evaluated: u64,
    /// The number of graphs and statements that the evaluator rejected because they are invalid.
    pub refused: u64,
    /// The number of rejected graphs in which an operation combines axes with different tilings.
    pub unlike: u64,
    /// The number of tiled values that were compared with the expected values.
    pub values: u64,
    mismatch: Option<TensorMismatch>,
}

impl TileReport {
    /// Returns the mismatch that ended the run; `None` if there was none.
    #[must_use]
    pub fn mismatch(&self) -> Option<&TensorMismatch> {
        self.mismatch.as_ref()
    }
}

impl fmt::Display for TileReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(mismatch) = &self.mismatch {
            writeln!(f, "{mismatch}")?;
        }
        let TileReport { graphs, statements, functions, evaluated, refused, unlike, values, .. } = self;
        write!(
            f,
            "{graphs} graphs and {statements} statements, of which {evaluated} were evaluated to {values} values in tiles and {refused} refused, \
             {unlike} for axes that are cut in two ways; functions of {functions} tensors; {} mismatches",
            u32::from(self.mismatch.is_some())
        )
    }
}

/// Tries programs on tiled tensors until the number that `config` asks for was tried, or a law is broken. Of ten programs, seven are graphs, two
/// are statements, and one calls functions that are not operations of graphs. Calls `progress` after each program, with the number tried so far.
///
/// With `link`, the processes that it connects try the same programs together, as ranks. Without `link`, ranks are threads.
pub fn run_tiles(config: &Config, link: Option<Arc<dyn Link>>, progress: &mut dyn FnMut(u64)) -> TileReport {
    let mut judge = TileJudge::new(link);
    let mismatch = mismatch(config, "--tiles", progress, |number, random| one(number, random, &mut judge));
    TileReport { mismatch, ..judge.report }
}

fn one(number: u64, random: &mut Rng, judge: &mut TileJudge) -> Option<Finding> {
    let found = match number % 10 {
        0..7 => {
            judge.report.graphs += 1;
            graph(random, judge)
        }
        7 | 8 => {
            judge.report.statements += 1;
            statements::check(random, judge)
        }
        _ => {
            judge.report.functions += 1;
            functions::check(random)
        }
    };
    found.unwrap_or_else(|error| Some(Finding { what: "no program".to_owned(), text: error.to_string() }))
}

fn graph(random: &mut Rng, judge: &mut TileJudge) -> Result<Option<Finding>, Error> {
    let (case, mut tilings) = graphs::tiled_case(random)?;
    let settings = Settings::new(random);
    let sparsity = Sparsity::new(random, settings.least() > 0.0);
    let mut inputs = Vec::with_capacity(case.inputs.len());
    for tensor in &case.inputs {
        inputs.push(sparsity.tiled(random, tensor, &tilings.tiling(tensor.extents())?)?);
    }
    judge.judge(&Program { graph: case.graph, inputs, outputs: case.outputs, tilings, settings })
}
