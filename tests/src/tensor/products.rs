//! Products of two operands the fast way: as they are, in the other order, and copied into the order of their indices; by the library of
//! matrices and by plain loops. Each comes to what the case expects, each time to the same bits.

use super::check::Expected;
use super::{Wrong, wrong};
use cembra::tensor::{Labels, Layout, TensorGraph, TensorNodeId, same_bits};
use cembra::{Error, Tensor};
use cembra_engine::{Evaluator, MatrixProduct, PlainProduct, contract, matrices};
use cembra_tensor::Operation;

/// Checks the product that a node is, if it is one of two.
pub(super) fn check(
    on: &Evaluator,
    graph: &TensorGraph,
    product: TensorNodeId,
    tensors: &[Tensor],
    expected: &Expected,
) -> Result<(), Wrong> {
    let node = graph.node(product);
    let Operation::Contract(labels) = &node.operation else { return Ok(()) };
    let [left, right] = node.operands[..] else { return Ok(()) };
    let operands = on.evaluate(graph, &[left, right], tensors).map_err(|refused| wrong("operands", &refused))?;
    let [a, b] = &operands[..] else { return Ok(()) };
    let swapped = Labels { operands: labels.operands.iter().rev().cloned().collect(), output: labels.output.clone() };
    let ways = [
        ("as they are", &**labels, [a.clone(), b.clone()]),
        ("swapped", &swapped, [b.clone(), a.clone()]),
        ("copied", labels, [a.row_major(), b.row_major()]),
        ("swapped copies", &swapped, [b.row_major(), a.row_major()]),
    ];
    let players: [(&str, &dyn MatrixProduct); 2] = [("matrices", matrices()), ("plain", &PlainProduct)];
    for (player, matrices) in players {
        for (way, labels, [a, b]) in &ways {
            let run = || made(labels, [a, b], &node.extents, matrices);
            let found = run();
            let engine = || format!("products by {player}, {way}");
            expected.check(&found).map_err(|(expected, found)| Wrong { engine: engine(), expected, found })?;
            if let (Ok(first), Ok(second)) = (found, run())
                && !same_bits(&first, &second)
            {
                let (expected, found) = (format!("{first:?}"), format!("{second:?}"));
                return Err(Wrong { engine: engine(), expected, found });
            }
        }
    }
    Ok(())
}

fn made(
    labels: &Labels,
    operands: [&Tensor; 2],
    extents: &[usize],
    matrices: &dyn MatrixProduct,
) -> Result<Tensor, Error> {
    let (data, _) = contract(labels, operands, extents, matrices)?;
    Tensor::from_parts(data, Layout::row_major(extents)?)
}
