//! Loop invariants: nodes in a loop's body that do not depend on the loop's state are moved before the loop. A node that only a branch in the loop
//! needs may not be needed in any round. It is moved nevertheless, even if it is expensive, because moving costs at most one evaluation, while
//! staying costs one per round. Two kinds of nodes in such a branch are not moved: nodes that may stop the evaluation, and opaque nodes (without a
//! lowering rule), whose cost is not known.

use crate::graph::LoopId;
use crate::{Id, Kind, RegionId, RegionTree, TypedGraph, TypedModel};
use cembra_ops::Effects;

/// The data from which loop invariants (nodes that do not change between rounds) are computed: loops, regions and nodes. Empty for a graph without
/// loops.
#[derive(Default)]
pub(super) struct Invariants {
    /// For each node, the bits of the loops whose states it depends on.
    states: Vec<u64>,
    /// For each node, whether evaluating it may stop the evaluation.
    stops: Vec<bool>,
    /// For each region, the innermost loop around it, and the region of that loop's rounds.
    loops: Vec<Option<(LoopId, RegionId)>>,
}

/// Returns true for an operator with arrays, array shapes or edges among its operands or as its result.
fn has_arrays(graph: &TypedGraph, node: Id) -> bool {
    matches!(graph.kind(node), Kind::Operator { .. } | Kind::Where { .. })
        && graph.operands(node).iter().chain([&node]).any(|part| graph.qtype(*part).is_beside_frames())
}

impl Invariants {
    pub(super) fn of(model: &TypedModel) -> Invariants {
        let graph = &model.graph;
        if !graph.ids().any(|node| matches!(graph.kind(node), Kind::Loop(_))) {
            return Invariants::default();
        }
        let mut found = Invariants { states: vec![0; graph.len()], stops: vec![false; graph.len()], loops: vec![None] };
        for node in graph.ids() {
            let (mut states, mut stops) = (0, false);
            for operand in graph.operands(node) {
                states |= found.states[operand.index()];
                stops |= found.stops[operand.index()];
            }
            match graph.kind(node) {
                Kind::State(id) => states |= id.bit(),
                Kind::Loop(id) => (states, stops) = (states & !id.bit(), true),
                // Arrays may have different sizes, whatever the operator.
                _ if has_arrays(graph, node) => stops = true,
                _ => stops |= graph.effects(model.registry, node).is_some_and(Effects::may_stop),
            }
            (found.states[node.index()], found.stops[node.index()]) = (states, stops);
        }
        found
    }

    /// Records that a new region (a branch or loop body) was opened inside of the region `inside`.
    pub(super) fn open(&mut self, inside: RegionId) {
        if let Some(around) = self.loops.get(inside.index()).copied() {
            self.loops.push(around);
        }
    }

    /// Records that the region opened last, `round`, contains the body of the loop `id`.
    pub(super) fn enter(&mut self, round: RegionId, id: LoopId) {
        if let Some(around) = self.loops.get_mut(round.index()) {
            *around = Some((id, round));
        }
    }

    /// The bit that stands for a loop in sets of loops, if `region` is the body of the loop; 0 for any other region.
    pub(super) fn entered(&self, region: RegionId) -> u64 {
        match self.loops.get(region.index()) {
            Some(Some((id, round))) if *round == region => id.bit(),
            _ => 0,
        }
    }

    /// Returns true if the node depends on the state of one of the loops in the bit set `loops`.
    pub(super) fn depends(&self, node: Id, loops: u64) -> bool {
        self.states.get(node.index()).is_some_and(|states| states & loops != 0)
    }

    /// Returns the region in which to evaluate a node whose users are all in `region`: the outermost region reached by leaving loops that do not
    /// change the node's value, or `region` itself.
    pub(super) fn region_of_use(&self, tree: &RegionTree, node: Id, region: RegionId) -> RegionId {
        let mut region = region;
        while let Some((id, round)) = self.loops.get(region.index()).copied().flatten() {
            let depends = self.states[node.index()] & id.bit() != 0;
            if depends || (self.stops[node.index()] && region != round) {
                break;
            }
            region = tree.parent(round);
        }
        region
    }
}
