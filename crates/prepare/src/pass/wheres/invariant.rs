//! Loop invariants: what a loop's round uses without depending on the loop's state belongs before the loop.

use crate::graph::LoopId;
use crate::{Id, Kind, RegionId, RegionTree, TypedModel};

/// What is known about loops, regions and nodes; empty for a graph without loops.
#[derive(Default)]
pub(super) struct Invariants {
    /// For each node, the bits of the loops whose states it is made of.
    states: Vec<u64>,
    /// For each node, whether evaluating it can fail.
    fails: Vec<bool>,
    /// For each region, the innermost loop around it and that loop's own region.
    loops: Vec<Option<(LoopId, RegionId)>>,
}

impl Invariants {
    pub(super) fn of(model: &TypedModel) -> Invariants {
        let graph = &model.graph;
        if !graph.ids().any(|node| matches!(graph.kind(node), Kind::Loop(_))) {
            return Invariants::default();
        }
        let mut found = Invariants { states: vec![0; graph.len()], fails: vec![false; graph.len()], loops: vec![None] };
        for node in graph.ids() {
            let (mut states, mut fails) = (0, false);
            for operand in graph.operands(node) {
                states |= found.states[operand.index()];
                fails |= found.fails[operand.index()];
            }
            match graph.kind(node) {
                Kind::State(id) => states |= id.bit(),
                Kind::Loop(id) => (states, fails) = (states & !id.bit(), true),
                Kind::Operator { op, .. } => fails |= !model.registry.get(op).is_total(),
                _ => {}
            }
            (found.states[node.index()], found.fails[node.index()]) = (states, fails);
        }
        found
    }

    /// Notes that a region was opened inside another.
    pub(super) fn open(&mut self, inside: RegionId) {
        if let Some(around) = self.loops.get(inside.index()).copied() {
            self.loops.push(around);
        }
    }

    /// Notes that a region, the last one opened, is that of a loop's rounds.
    pub(super) fn enter(&mut self, round: RegionId, id: LoopId) {
        if let Some(around) = self.loops.get_mut(round.index()) {
            *around = Some((id, round));
        }
    }

    /// The bit of the loop whose rounds a region is; none for any other region.
    pub(super) fn entered(&self, region: RegionId) -> u64 {
        match self.loops.get(region.index()) {
            Some(Some((id, round))) if *round == region => id.bit(),
            _ => 0,
        }
    }

    /// True if a node depends on the state of one of these loops.
    pub(super) fn depends(&self, node: Id, loops: u64) -> bool {
        self.states.get(node.index()).is_some_and(|states| states & loops != 0)
    }

    /// Where a node is evaluated that all its users have in `region`.
    pub(super) fn home(&self, tree: &RegionTree, node: Id, region: RegionId) -> RegionId {
        let mut region = region;
        while let Some((id, round)) = self.loops.get(region.index()).copied().flatten() {
            let depends = self.states[node.index()] & id.bit() != 0;
            if depends || (self.fails[node.index()] && region != round) {
                break;
            }
            region = tree.parent(round);
        }
        region
    }
}
