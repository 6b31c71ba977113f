//! Guards: the conditions under which a run of a plan executes a step. In `if c then a @ b else x`, for example, the
//! product is computed only if `c` is true. A guard is a list of conditions. Guards are computed for every node, from
//! the outputs to the leaves. An elementwise map that is fused into the step that reads it has no guard of its own: an
//! elementwise expression evaluates only the branch that it chooses.

use crate::node::{Node, Operation};
use crate::{TensorGraph, TensorNodeId};
use cembra_ops::id;
use smallvec::SmallVec;

/// A condition for running a step: a node whose value is a single truth value, and the value that it must have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Condition {
    /// The node whose value is tested; it has no axes.
    pub node: TensorNodeId,
    /// The truth value that the condition's node must have.
    pub holds: bool,
}

/// The conditions that must all hold for a step to run. A condition is computed only if the conditions before it hold.
pub type Guard = SmallVec<[Condition; 1]>;

/// The most conditions of a guard. Conditionals that are nested deeper compute both branches.
const MOST: usize = 8;

/// The branches of the conditional `node`, each with the condition under which it is chosen. `None` if `node` is not a conditional, or if its
/// condition has axes.
pub fn branches(graph: &TensorGraph, node: &Node) -> Option<[(TensorNodeId, Condition); 2]> {
    let (Operation::Map(op), &[condition, chosen, other]) = (&node.operation, &node.operands[..]) else { return None };
    let is_lazy = op.id() == id::TENSOR_WHERE && graph.extents(condition).is_empty();
    let branch = |node, holds| (node, Condition { node: condition, holds });
    is_lazy.then(|| [branch(chosen, true), branch(other, false)])
}

/// The guards of all nodes of a graph: the conditions under which each node is computed.
pub(super) struct Guards {
    /// The guard of each node, by position; `None` for a node that no output needs. The list is empty if the graph has
    /// no conditional that computes only one branch.
    all: Vec<Option<Guard>>,
}

impl Guards {
    /// Computes the guards of the nodes that `outputs` need, which `needed` marks.
    pub(super) fn of(graph: &TensorGraph, outputs: &[TensorNodeId], needed: &[bool]) -> Guards {
        let mut all: Vec<Option<Guard>> = Vec::new();
        if !graph.nodes().any(|(id, node)| needed[id.index()] && branches(graph, node).is_some()) {
            return Guards { all };
        }
        all.resize(graph.len(), None);
        outputs.iter().for_each(|output| all[output.index()] = Some(Guard::new()));
        for at in (0..graph.len()).rev() {
            let Some(guard) = all[at].clone() else { continue };
            let node = graph.node(graph.id(at as u32));
            let Some(branches) = branches(graph, node) else {
                node.read().iter().for_each(|operand| read(&mut all[operand.index()], &guard));
                continue;
            };
            read(&mut all[node.operands[0].index()], &guard);
            for (branch, condition) in branches {
                let mut guard = guard.clone();
                if guard.len() < MOST {
                    guard.push(condition);
                }
                read(&mut all[branch.index()], &guard);
            }
        }
        Guards { all }
    }

    /// The guard (list of conditions) under which a node is computed; empty if the node is always computed.
    pub(super) fn get(&self, node: TensorNodeId) -> &[Condition] {
        self.all.get(node.index()).and_then(Option::as_ref).map_or(&[], |guard| &guard[..])
    }

    /// The nodes tested by the guards of the nodes for which `is_of` returns true.
    pub(super) fn conditions(&self, graph: &TensorGraph, is_of: impl Fn(TensorNodeId) -> bool) -> Vec<TensorNodeId> {
        let guarded = graph.nodes().map(|(id, _)| id).filter(|id| !self.get(*id).is_empty() && is_of(*id));
        let mut nodes: Vec<TensorNodeId> =
            guarded.flat_map(|id| self.get(id).iter().map(|condition| condition.node)).collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    }

    /// Shortens each guard (list of conditions): drops its first condition whose node has no value in memory, and all conditions after that. With
    /// fewer conditions, a step is only run more often.
    pub(super) fn keep(&mut self, has_value: impl Fn(TensorNodeId) -> bool) {
        for guard in self.all.iter_mut().flatten() {
            let kept = guard.iter().take_while(|condition| has_value(condition.node)).count();
            guard.truncate(kept);
        }
    }

    /// Returns true if all guards (lists of conditions) are empty, so that no step is ever skipped.
    pub(super) fn are_none(&self) -> bool {
        self.all.iter().flatten().all(|guard| guard.is_empty())
    }
}

/// Records that a node is read where `guard` holds. `own` becomes the guard of the node: the conditions with which the
/// guards of all its readers begin.
fn read(own: &mut Option<Guard>, guard: &Guard) {
    match own {
        None => *own = Some(guard.clone()),
        Some(own) => {
            let common = own.iter().zip(guard).take_while(|(own, other)| own == other).count();
            own.truncate(common);
        }
    }
}
