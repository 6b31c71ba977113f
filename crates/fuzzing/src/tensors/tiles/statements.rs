//! The random statements of `--tensors` on tiled tensors: read and compiled as users do it, held against the sums over all labels that they stand
//! for, and judged as graphs are. Their numbers are small and whole, so all is exact.

use super::judge::{TileJudge, differs_from};
use super::operands::Sparsity;
use super::program::{Asked, Program, Settings};
use crate::tensors::Finding;
use crate::tensors::cuts::Tilings;
use crate::tensors::statements::{given, statement};
use cembra::{Error, Model, Options};
use cembra_tiles::{Evaluator, Tiled};
use fastrand::Rng;

/// Tries a statement.
pub(super) fn check(random: &mut Rng, judge: &mut TileJudge) -> Result<Option<Finding>, Error> {
    let mut statement = statement(random)?;
    let mut settings = Settings::new(random);
    // Only without a threshold all elements are there.
    if random.bool() {
        settings.threshold = 0.0;
    }
    let sparsity = Sparsity::new(random, settings.least() > 0.0);
    let mut tilings = Tilings::new(random.u64(..));
    let mut tiled = std::collections::BTreeMap::new();
    for (name, tensor) in &mut statement.tensors {
        let own = sparsity.tiled(random, tensor, &tilings.tiling(tensor.extents())?)?;
        *tensor = own.to_tensor()?;
        tiled.insert(name.clone(), own);
    }
    let text = statement.text();
    let executor = Model::parse(&text)?.compile(&Options::default())?;
    let dense = given(&executor, &statement.tensors).unwrap_or_default();
    let extents: Vec<&[usize]> = dense.iter().map(|tensor| tensor.extents()).collect();
    let (graph, outputs) = executor.graph_for(&extents)?;
    let inputs: Vec<Tiled> = executor.inputs().iter().filter_map(|field| tiled.get(&*field.name).cloned()).collect();
    let program = Program { graph, inputs, outputs, tilings, settings };
    if let Some(mut finding) = judge.judge(&program)? {
        finding.text = format!("{text}\n{}", finding.text);
        return Ok(Some(finding));
    }
    if settings.least() > 0.0 {
        return Ok(None);
    }
    let inputs: Vec<&Tiled> = program.inputs.iter().collect();
    let run = Evaluator::new(settings.options());
    let made = match program.evaluate(&run, &program.asked(Asked::Outputs), &inputs, &judge.host()) {
        Ok(made) => made,
        // All that statements are made of is there for tiled tensors.
        Err(error) => return Ok(Some(Finding { what: format!("a statement on tiles fails: {error}"), text })),
    };
    let Some(made) = made.first() else { return Ok(None) };
    let wrong = differs_from(made, &statement.expected()?)?;
    Ok(wrong.map(|wrong| Finding {
        what: format!("a statement on tiles: {}", wrong.what),
        text: format!("{text}\nof {:?}\nin {tiled:?}\n{}\n{settings:?}", statement.tensors, wrong.detail),
    }))
}
