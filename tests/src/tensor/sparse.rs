//! Golden cases of block sparsity: dense operands that are cut into tiles, a text on them, and the tiles and elements of the result.

use super::array::{array, numbers};
use super::check::{Expected, floats};
use super::{Fields, TensorEngine, TensorEngines, Wrong, text};
use crate::problem::{Defect, Malformed};
use cembra::tiles::{Options, Run, Screening, Tiled, Tiling, Tiling1};
use cembra::{Error, Tensor};
use serde_json::Value as Json;

/// The names of operands in texts.
const NAMES: [&str; 2] = ["a", "b"];

/// A golden case, before its operands are cut into tiles.
struct Case {
    operands: Vec<(Tensor, Tiling)>,
    /// For each operand the norm of each tile, 0 where it is absent.
    norms: Vec<Tensor>,
    /// The tolerance of norms, relative to the larger one.
    tolerance: f64,
    threshold: f64,
    text: String,
    /// The coordinates of the tiles that the result has.
    kept: Vec<Vec<u64>>,
    expected: Expected,
}

impl Case {
    fn of(fields: &Fields) -> Result<Case, Malformed> {
        let number = |field: &'static str| fields.get(field).and_then(Json::as_f64).ok_or(Malformed::Field(field));
        let list = |field: &'static str| fields.get(field).and_then(Json::as_array).ok_or(Malformed::Field(field));
        let labels: Option<Vec<&str>> = list("indices")?.iter().map(Json::as_str).collect();
        let labels = labels.ok_or(Malformed::Field("indices"))?;
        let axis = |label: char| {
            let bounds = fields.get("tile_bounds").and_then(|bounds| bounds.get(label.to_string()));
            let bounds = numbers::<i64>(bounds.ok_or(Malformed::Field("tile_bounds"))?, "tile_bounds")?;
            Tiling1::new(bounds).map_err(|_| Malformed::Field("tile_bounds"))
        };
        let tiling = |labels: &&str| {
            let axes = labels.chars().map(axis).collect::<Result<Vec<Tiling1>, Malformed>>()?;
            Tiling::new(axes).map_err(|_| Malformed::Field("tile_bounds"))
        };
        let operand = |(tensor, labels)| Ok((array(tensor)?, tiling(labels)?));
        let factor = number("factor")?;
        let commas = |labels: &str| labels.chars().map(String::from).collect::<Vec<String>>().join(",");
        let read: Vec<String> =
            NAMES.iter().zip(&labels).map(|(name, labels)| format!("{name}(\"{}\")", commas(labels))).collect();
        let value = match text(fields, "op")? {
            "add" => read.join(" + "),
            "scale" => format!("{factor:?} * {}", read.join("")),
            _ => read.join(" * "),
        };
        let kept = list("result_nonzero_tiles")?.iter().map(|tile| numbers(tile, "result_nonzero_tiles"));
        Ok(Case {
            operands: list("operands")?.iter().zip(&labels).map(operand).collect::<Result<_, Malformed>>()?,
            norms: list("operand_norms")?.iter().map(array).collect::<Result<_, Malformed>>()?,
            tolerance: number("norm_rtol")?,
            threshold: number("threshold")?,
            text: format!("r(\"{}\") = {value}", commas(text(fields, "result")?)),
            kept: kept.collect::<Result<_, Malformed>>()?,
            expected: Expected::of(fields)?,
        })
    }

    /// Evaluates the case by an engine.
    ///
    /// # Errors
    /// Those of the evaluation, or an operand or the result has other tiles than it should have.
    fn run(&self, on: &TensorEngine) -> Result<Tensor, Error> {
        let mut tiled: Vec<Tiled> = Vec::new();
        for ((tensor, tiling), norms) in self.operands.iter().zip(&self.norms) {
            let operand = Tiled::from_tensor(tensor, tiling, &Screening::threshold(self.threshold))?;
            for (tile, expected) in (0..).zip(floats(norms)) {
                let found = operand.shape().norm(tile).unwrap_or(0.0);
                if (found - expected).abs() > self.tolerance * expected {
                    return Err(super::differs(format!("tile {tile} has the norm {found}, not {expected}")));
                }
            }
            tiled.push(operand);
        }
        let mut run = Run::new(Options::default().threshold(self.threshold), &on.options);
        let made = run.statement(&self.text, NAMES.into_iter().zip(&tiled))?;
        let kept: Option<Vec<u64>> = self.kept.iter().map(|tile| made.tiling().number_of(tile)).collect();
        if kept.is_none_or(|kept| made.shape().tiles() != kept) {
            return Err(super::differs(format!("the tiles {:?}, not {:?}", made.shape().tiles(), self.kept)));
        }
        made.to_tensor()
    }
}

/// Runs a case on each engine.
pub(super) fn run(engines: &TensorEngines, fields: &Fields) -> Result<Result<(), Wrong>, Defect> {
    let case = Case::of(fields)?;
    Ok(engines.on_each(&case.expected, &|on| case.run(on)))
}
