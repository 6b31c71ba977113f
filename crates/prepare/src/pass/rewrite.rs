//! Rewriting of a graph node by node, into a new graph or in place, for most passes.

use crate::{Id, TypedGraph, TypedModel};
use cembra_value::{Budget, Diagnostics};

/// Builds a new graph: `f` makes the new node for each needed node, given the new operands. Nodes that are not needed are dropped.
pub(super) fn rebuild(
    model: &mut TypedModel,
    budget: &Budget,
    mut f: impl FnMut(&mut TypedGraph, &TypedGraph, Id, &[Id]) -> Result<Id, Diagnostics>,
) -> Result<(), Diagnostics> {
    let old = std::mem::take(&mut model.graph);
    let needed = old.reachable(model.outputs.iter().map(|(_, id)| *id));
    let mut new = old.empty_like();
    let mut map = vec![Id::from_index(0); old.len()];
    let mut operands: Vec<Id> = Vec::new();
    for id in old.ids() {
        budget.check_visit(id.index())?;
        if needed[id.index()] {
            operands.clear();
            operands.extend(old.operands(id).iter().map(|operand| map[operand.index()]));
            map[id.index()] = f(&mut new, &old, id, &operands)?;
        }
    }
    for (_, id) in &mut model.outputs {
        *id = map[id.index()];
    }
    model.graph = new;
    Ok(())
}

/// Rewrites the graph in place, for passes that keep most nodes. `f` is called with two nodes: each needed node, and a copy of it on the rewritten
/// operands. If the operands did not change, the copy is the node itself. `f` returns the replacement. Nodes that are no longer needed stay in the
/// graph.
pub(super) fn replace(
    model: &mut TypedModel,
    budget: &Budget,
    mut f: impl FnMut(&mut TypedGraph, Id, Id) -> Result<Id, Diagnostics>,
) -> Result<(), Diagnostics> {
    let graph = &mut model.graph;
    let needed = graph.reachable(model.outputs.iter().map(|(_, id)| *id));
    let mut map: Vec<Id> = graph.ids().collect();
    let mut operands: Vec<Id> = Vec::new();
    for (at, needed) in needed.into_iter().enumerate() {
        budget.check_visit(at)?;
        if needed {
            let id = Id::from_index(at);
            operands.clear();
            operands.extend(graph.operands(id).iter().map(|operand| map[operand.index()]));
            let node = graph.with_operands(id, &operands);
            map[at] = f(graph, id, node)?;
        }
    }
    for (_, id) in &mut model.outputs {
        *id = map[id.index()];
    }
    Ok(())
}
