//! The `where` pass: each conditional becomes lazy if one of its branches then holds an operator of its own, and every
//! node gets the region it is evaluated in. Unlazy conditionals stay operators, evaluated like any other.

use crate::pass::{Options, Prepared};
use crate::{Id, Kind, RegionId, RegionTree};
use cembra_expr::{Diagnostics, Program};
use cembra_ops::id;
use rustc_hash::FxHashMap;

pub(super) fn run(prepared: &mut Prepared, _: &Program, _: &Options) -> Result<(), Diagnostics> {
    let graph = &mut prepared.graph;
    let mut tree = RegionTree::default();
    let mut regions: Vec<Option<RegionId>> = vec![None; graph.len()];
    let mut branches: FxHashMap<Id, [RegionId; 2]> = FxHashMap::default();
    // How many operators each region holds.
    let mut population = vec![0_usize];
    for (_, output) in &prepared.outputs {
        regions[output.index()] = Some(RegionId::TOP);
    }
    // Users come after operands: when a node is met from behind, all its uses are known.
    for node in graph.ids().rev() {
        let Some(region) = regions[node.index()] else { continue };
        if !matches!(graph.kind(node), Kind::Operator { .. }) {
            continue;
        }
        population[region.index()] += 1;
        let mut uses = [region; 3];
        if graph.op(node) == Some(id::WHERE) {
            uses = [region, tree.open(region), tree.open(region)];
            population.extend([0, 0]);
            branches.insert(node, [uses[1], uses[2]]);
        }
        for (at, operand) in graph.operands(node).iter().enumerate() {
            let used = *uses.get(at).unwrap_or(&region);
            let known = &mut regions[operand.index()];
            *known = Some(known.map_or(used, |known| tree.common(known, used)));
        }
    }
    branches.retain(|_, [on, off]| population[on.index()] + population[off.index()] > 0);
    for node in branches.keys() {
        graph.make_lazy(*node);
    }
    prepared.regions = regions.into_iter().map(|region| region.unwrap_or(RegionId::TOP)).collect();
    prepared.tree = tree;
    prepared.branches = branches;
    Ok(())
}
