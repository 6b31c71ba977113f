//! The `where` pass: each conditional becomes lazy if one of its branches then holds an operator of its own, and every
//! node gets the region it is evaluated in. Unlazy conditionals stay operators, evaluated like any other.
//!
//! Before that, what several branches share, and nothing outside of branches needs, is put under a guard of its own if it
//! can fail or costs much: see `guard`.

mod guard;

use crate::pass::{Options, Prepared};
use crate::{Id, Kind, RegionId, RegionTree, TypedGraph};
use cembra_expr::{Diagnostics, Program};
use cembra_ops::id;
use rustc_hash::FxHashMap;

/// How often guards may be added to a graph: each round can uncover sharing between what the last one put into branches.
const GUARD_ROUNDS: usize = 8;

pub(super) fn run(prepared: &mut Prepared, _: &Program, options: &Options) -> Result<(), Diagnostics> {
    let mut analysis = Analysis::of(prepared);
    for _ in 0..GUARD_ROUNDS {
        if !guard::add(prepared, options.registry, &analysis) {
            break;
        }
        analysis = Analysis::of(prepared);
    }
    let Analysis { tree, regions, mut branches, population, .. } = analysis;
    branches.retain(|_, [on, off]| population[on.index()] + population[off.index()] > 0);
    for node in branches.keys() {
        prepared.graph.make_lazy(*node);
    }
    prepared.regions = regions.into_iter().map(|region| region.unwrap_or(RegionId::TOP)).collect();
    prepared.tree = tree;
    prepared.branches = branches;
    Ok(())
}

/// Where every node would be evaluated if every conditional were lazy.
struct Analysis {
    tree: RegionTree,
    /// The region of each needed node.
    regions: Vec<Option<RegionId>>,
    /// True for nodes that something in their own region uses, or an output is.
    used_at_home: Vec<bool>,
    /// The regions of each conditional's branches.
    branches: FxHashMap<Id, [RegionId; 2]>,
    /// For each region but the top one, its conditional, and true for the branch of a present condition.
    opened_by: Vec<Option<(Id, bool)>>,
    /// How many operators each region holds.
    population: Vec<usize>,
}

impl Analysis {
    fn of(prepared: &Prepared) -> Analysis {
        let graph = &prepared.graph;
        let mut found = Analysis {
            tree: RegionTree::default(),
            regions: vec![None; graph.len()],
            used_at_home: vec![false; graph.len()],
            branches: FxHashMap::default(),
            opened_by: vec![None],
            population: vec![0],
        };
        for (_, output) in &prepared.outputs {
            found.regions[output.index()] = Some(RegionId::TOP);
            found.used_at_home[output.index()] = true;
        }
        // Users come after operands: when a node is met from behind, all its uses are known.
        for node in graph.ids().rev() {
            if let (Some(region), Kind::Operator { .. }) = (found.regions[node.index()], graph.kind(node)) {
                found.visit(graph, node, region);
            }
        }
        found
    }

    fn visit(&mut self, graph: &TypedGraph, node: Id, region: RegionId) {
        self.population[region.index()] += 1;
        let mut uses = [region; 3];
        if graph.op(node) == Some(id::WHERE) {
            uses = [region, self.tree.open(region), self.tree.open(region)];
            self.population.extend([0, 0]);
            self.opened_by.extend([Some((node, true)), Some((node, false))]);
            self.branches.insert(node, [uses[1], uses[2]]);
        }
        for (at, operand) in graph.operands(node).iter().enumerate() {
            let used = *uses.get(at).unwrap_or(&region);
            let known = &mut self.regions[operand.index()];
            let home = known.map_or(used, |known| self.tree.common(known, used));
            // A use at the old home is no longer at home if the home moved outwards.
            let at_home = &mut self.used_at_home[operand.index()];
            *at_home = (*at_home && *known == Some(home)) || used == home;
            *known = Some(home);
        }
    }
}
