//! Computes the norm (size of the elements) that the evaluator must estimate for a tile before it computes the tile. The estimate depends on the norm
//! `s` of the operand's tile, or on `s1` and `s2` for two operands. It is `s1 + s2` for a sum of two tiles, `s1 s2 V` for an elementwise product of
//! tiles with V elements, `s1 s2 K^2 B` for a matrix product of tiles (summed over K indices, in each of B batches), and `s K sqrt(K)` if each
//! element is a sum over K elements. A tile whose estimate is below the threshold must be absent.

use super::meaning::walk;
use cembra::tensor::{Labels, Reduction};
use cembra_ops::id;
use cembra_tensor::{Axis, Node, Operation};
use cembra_tiles::{Tiled, Tiling, Tiling1};
use std::collections::BTreeMap;

/// Returns the estimated norms of the tiles of `node`, by tile number; `None` for operations without known estimates.
pub(super) fn of_node(node: &Node, operands: &[&Tiled]) -> Option<BTreeMap<u64, f64>> {
    match (&node.operation, operands) {
        (Operation::Map(op), [a, b]) if a.tiling() == b.tiling() => {
            let tiling = a.tiling();
            let norms = |number: u64| [a, b].map(|of| of.shape().norm(number));
            let estimate = |number: u64| match (op.id(), norms(number)) {
                (id::ADD | id::SUBTRACT, [a, b]) => Some(a.unwrap_or(0.0) + b.unwrap_or(0.0)),
                (id::MULTIPLY, [Some(a), Some(b)]) => Some(a * b * tiling.volume(number)),
                _ => None,
            };
            Some((0..tiling.tiles()).filter_map(|number| Some((number, estimate(number)?))).collect())
        }
        (Operation::Map(op), [of]) if op.id() == id::NEG => Some(of.shape().iter().collect()),
        (Operation::Reduce(Reduction::Sum, axes), [of]) => {
            let labels: Vec<Axis> = (0..of.tiling().rank() as Axis).collect();
            let output = labels.iter().copied().filter(|axis| !axes.contains(axis)).collect();
            Some(summed(&Labels { operands: vec![labels.into_iter().collect()], output }, operands))
        }
        (Operation::Contract(labels), [a, b]) => {
            let [left, right] = [0, 1].map(|of: usize| labels.operands[of].clone());
            let is_repeated = |own: &[Axis]| (1..own.len()).any(|at| own[..at].contains(&own[at]));
            let is_alone = |own: &[Axis], other: &[Axis]| {
                own.iter().any(|label| !other.contains(label) && !labels.output.contains(label))
            };
            let is_staged =
                is_repeated(&left) || is_repeated(&right) || is_alone(&left, &right) || is_alone(&right, &left);
            (!is_staged).then(|| summed(labels, &[a, b]))
        }
        _ => None,
    }
}

/// Returns the estimates for sums of products of tiles.
fn summed(labels: &Labels, operands: &[&Tiled]) -> BTreeMap<u64, f64> {
    // For each label, an axis that has it.
    let mut axes: Vec<(Axis, &Tiling1)> = Vec::new();
    for (own, of) in labels.operands.iter().zip(operands) {
        for (label, axis) in own.iter().zip(of.tiling().axes()) {
            match axes.iter().find(|(known, _)| known == label) {
                // Axes of one index may have different tilings.
                Some((_, known)) if *known != axis => return BTreeMap::new(),
                Some(_) => {}
                None => axes.push((*label, axis)),
            }
        }
    }
    let tiles: Vec<usize> = axes.iter().map(|(_, axis)| axis.tiles() as usize).collect();
    let over = |own: &[Axis], tiling: &Tiling| -> Vec<usize> {
        let strides = tiling.strides();
        let of = |label: &Axis| own.iter().position(|known| known == label).map_or(0, |at| strides[at] as usize);
        axes.iter().map(|(label, _)| of(label)).collect()
    };
    let output = labels.output.iter().filter_map(|label| axes.iter().find(|(known, _)| known == label));
    let Ok(result) = Tiling::new(output.map(|(_, axis)| *axis)) else { return BTreeMap::new() };
    let mut by: Vec<Vec<usize>> =
        labels.operands.iter().zip(operands).map(|(own, of)| over(own, of.tiling())).collect();
    by.push(over(&labels.output, &result));
    let mut estimates = BTreeMap::new();
    walk(&tiles, &by, |positions| {
        let numbers = positions.iter().zip(operands);
        let norms: Option<Vec<f64>> = numbers.map(|(at, of)| of.shape().norm(*at as u64)).collect();
        let (Some(norms), Some(number)) = (norms, positions.last().copied()) else { return };
        let volumes: Vec<f64> = positions.iter().zip(operands).map(|(at, of)| of.tiling().volume(*at as u64)).collect();
        let of_result = result.volume(number as u64);
        let estimate = match (&norms[..], &volumes[..]) {
            ([norm], [volume]) => norm * (volume / of_result) * (volume / of_result).sqrt(),
            // With V1 = B R K, V2 = B K C and B R C elements, V1 V2 divided by the last is K^2 B.
            ([a, b], [left, right]) => a * b * (left * right / of_result),
            _ => return,
        };
        *estimates.entry(number as u64).or_insert(0.0) += estimate;
    });
    estimates
}
