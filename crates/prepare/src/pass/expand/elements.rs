//! Checks composite operators that are applied to each element of arrays. Their expressions are made for one element of each array, long after type
//! inference. The check makes these expressions once in advance, in a separate graph. So an expression that cannot be made is reported like any other
//! problem of a model, even if the caller asks only for types.

use super::{Builder, Expand};
use crate::{Id, Kind, TypedGraph, TypedModel};
use cembra_expr::NodeId;
use cembra_ops::{Meaning, NodeHandle, OverArrays, Registry, TypeFault};
use cembra_value::{Budget, Diagnostics, Value};
use smallvec::SmallVec;
use std::cell::Cell;
use std::sync::Arc;

/// Checks all composite operators that a model applies to elements of arrays, directly or in functions that are mapped over arrays. `problem` makes
/// the diagnostic for a node whose operator cannot be expanded.
pub(super) fn check(
    model: &TypedModel,
    budget: &Budget,
    problem: impl Fn(NodeId, TypeFault) -> Diagnostics,
) -> Result<(), Diagnostics> {
    let (graph, registry) = (&model.graph, model.registry);
    if !model.has_arrays() {
        return Ok(());
    }
    for (at, needed) in model.needed().into_iter().enumerate() {
        budget.check_visit(at)?;
        let id = Id::from_index(at);
        if !needed {
            continue;
        }
        if let Some(body) = graph.body(id) {
            for (at, needed) in body.graph.reachable([body.result]).into_iter().enumerate() {
                budget.check_visit(at)?;
                let inner = Id::from_index(at);
                if let Some(expand) = composite(&body.graph, registry, inner).filter(|_| needed) {
                    of_elements(&body.graph, registry, inner, expand)
                        .map_err(|fault| problem(body.graph.origin(inner), fault))?;
                }
            }
        }
        let is_of_elements = graph.is_elementwise(registry, id)
            && graph.op(id).is_some_and(|op| matches!(registry.get(op).over_arrays, OverArrays::Elementwise));
        if let Some(expand) = composite(graph, registry, id).filter(|_| is_of_elements) {
            of_elements(graph, registry, id, expand).map_err(|fault| problem(graph.origin(id), fault))?;
        }
    }
    Ok(())
}

/// The function that makes the expression of a composite operator; `None` for other nodes.
fn composite(graph: &TypedGraph, registry: &Registry, id: Id) -> Option<Expand> {
    match registry.get(graph.op(id)?).meaning {
        Meaning::Expand(expand) => Some(expand),
        _ => None,
    }
}

/// Makes the expression of a node for one element of each array, in a separate graph.
fn of_elements(graph: &TypedGraph, registry: &'static Registry, id: Id, expand: Expand) -> Result<(), TypeFault> {
    let origin = graph.origin(id);
    let mut one = TypedGraph::new(Arc::default(), graph.operands(id).len());
    let mut args: SmallVec<[NodeHandle; 4]> = SmallVec::new();
    for (at, operand) in graph.operands(id).iter().enumerate() {
        let made = match graph.value(*operand) {
            Some(value) if !matches!(value, Value::Array(..)) => one.literal(value.of_each(), origin),
            _ => one.add(Kind::Leaf(at as u32), &[], &graph.qtype(*operand).of_each(), origin),
        };
        args.push(NodeHandle(made.index() as u32));
    }
    let room = Cell::new(Some(usize::MAX));
    expand(&mut Builder { graph: &mut one, registry, origin, used_once: &[], room: &room }, &args).map(|_| ())
}
