//! Rewriting a graph node by node into a new one: what most passes are made of.

use crate::{Id, Prepared, TypedGraph};
use cembra_expr::{Budget, Diagnostics};
use smallvec::SmallVec;

/// Rebuilds the graph: `f` makes each needed node from its copy's operands. Nodes nobody needs are dropped.
pub(super) fn rebuild(
    prepared: &mut Prepared,
    budget: &Budget,
    mut f: impl FnMut(&mut TypedGraph, &TypedGraph, Id, &[Id]) -> Result<Id, Diagnostics>,
) -> Result<(), Diagnostics> {
    let old = std::mem::take(&mut prepared.graph);
    let needed = old.reachable(prepared.outputs.iter().map(|(_, id)| *id));
    let mut new = old.empty_like();
    let mut map = vec![Id::from_index(0); old.len()];
    let mut operands: SmallVec<[Id; 4]> = SmallVec::new();
    for id in old.ids() {
        budget.check_visit(id.index())?;
        if needed[id.index()] {
            operands.clear();
            operands.extend(old.operands(id).iter().map(|operand| map[operand.index()]));
            map[id.index()] = f(&mut new, &old, id, &operands)?;
        }
    }
    for (_, id) in &mut prepared.outputs {
        *id = map[id.index()];
    }
    prepared.graph = new;
    Ok(())
}
