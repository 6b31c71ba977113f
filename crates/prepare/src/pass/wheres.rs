//! The `where` pass: assigns every node a region, the part of the model (top, branch or loop body) in which the node is evaluated. A conditional
//! becomes lazy (only the chosen branch is evaluated) if some operator is needed only in one of its branches. Any other conditional is evaluated like
//! an operator on both values.
//!
//! A loop opens a region too, for the nodes that are computed anew in each round. A node that does not depend on the loop's
//! state is evaluated once, before the loop: always, if it cannot stop the evaluation; otherwise if every round would
//! evaluate it. (A loop that is reached runs at least once.) A node that may stop the evaluation, and that only a branch
//! inside of the loop needs, stays in that branch.
//!
//! Before regions are assigned, a node that several branches share, and that nothing outside of branches needs, gets a guard if it can fail or is
//! expensive: see `guard`. Inputs that are loaded on demand are loaded in the regions that use them: see `asked`.

mod asked;
mod guard;
mod invariant;

use crate::pass::Options;
use crate::{Id, Kind, RegionId, RegionModel, RegionTree, Regions, TypedGraph, TypedModel};
use cembra_expr::Program;
use cembra_value::Diagnostics;
use guard::GuardReason;
pub(super) use guard::placeholder_value;
use invariant::Invariants;
use rustc_hash::FxHashMap;

/// The most rounds of adding guards. Each round can uncover sharing between nodes that the previous round moved into
/// branches.
const GUARD_ROUNDS: usize = 8;

pub(super) fn run(mut model: TypedModel, program: &Program, options: &Options) -> Result<RegionModel, Diagnostics> {
    let mut analysis = Analysis::of(&model);
    let mut is_asked = asked::is_any_asked(&model.graph);
    if is_asked && asked::keep_needed(&mut model, &analysis) {
        analysis = Analysis::of(&model);
        is_asked = asked::is_any_asked(&model.graph);
    }
    // Guards for nodes that may fail do not depend on inputs on demand. Guards for such inputs alone come later.
    let reasons = [GuardReason::Effects, GuardReason::Inputs];
    for reason in reasons.into_iter().take(1 + usize::from(is_asked)) {
        for _ in 0..GUARD_ROUNDS {
            options.budget.check_time()?;
            if !guard::add(&mut model, program, reason, &analysis) {
                break;
            }
            analysis = Analysis::of(&model);
        }
    }
    if is_asked {
        asked::repeat(&mut model, &analysis);
        analysis = Analysis::of(&model);
    }
    let Analysis { tree, regions, mut branches, loops, population, .. } = analysis;
    branches.retain(|node, [on, off]| {
        model.graph.is_always_lazy(*node) || population[on.index()] + population[off.index()] > 0
    });
    let of_nodes = regions.into_iter().map(|region| region.unwrap_or(RegionId::TOP)).collect();
    Ok(RegionModel { model, regions: Regions { of_nodes, tree, branches, loops } })
}

/// The region of every node if every conditional were lazy.
struct Analysis {
    tree: RegionTree,
    /// The region of each node that outputs need; `None` for other nodes.
    regions: Vec<Option<RegionId>>,
    /// For each node, true if a node of the same region uses it, or if it is an output.
    used_at_home: Vec<bool>,
    /// The regions of each conditional's branches.
    branches: FxHashMap<Id, [RegionId; 2]>,
    /// The region of each loop's rounds.
    loops: FxHashMap<Id, RegionId>,
    invariants: Invariants,
    /// For each region other than the top region and those of loops: its conditional, and whether it is the branch for a
    /// present condition.
    opened_by: Vec<Option<(Id, bool)>>,
    /// The number of operators in each region.
    population: Vec<usize>,
}

impl Analysis {
    fn of(model: &TypedModel) -> Analysis {
        let graph = &model.graph;
        let mut found = Analysis {
            tree: RegionTree::default(),
            regions: vec![None; graph.len()],
            used_at_home: vec![false; graph.len()],
            branches: FxHashMap::default(),
            loops: FxHashMap::default(),
            invariants: Invariants::of(model),
            opened_by: vec![None],
            population: vec![0],
        };
        for (_, output) in &model.outputs {
            found.regions[output.index()] = Some(RegionId::TOP);
            found.used_at_home[output.index()] = true;
        }
        // Users come after operands, so in reverse order all uses of a node are known when it is visited.
        for node in graph.ids().rev() {
            if let (Some(region), Kind::Operator { .. } | Kind::Where { .. } | Kind::Loop(_)) =
                (found.regions[node.index()], graph.kind(node))
            {
                let home = found.invariants.region_of_use(&found.tree, node, region);
                if home != region {
                    found.regions[node.index()] = Some(home);
                    found.used_at_home[node.index()] = false;
                }
                found.visit(graph, node, home);
            }
        }
        found
    }

    fn open(&mut self, inside: RegionId, by: Option<(Id, bool)>) -> RegionId {
        self.population.push(0);
        self.opened_by.push(by);
        self.invariants.open(inside);
        self.tree.open(inside)
    }

    /// Opens the regions of a conditional's branches.
    fn open_branches(&mut self, node: Id, region: RegionId) {
        let branches = [true, false].map(|on| self.open(region, Some((node, on))));
        self.branches.insert(node, branches);
    }

    /// The regions in which the node `node`, which is in `region`, uses its first three operands. It uses further operands in `region`.
    fn used_in(&self, graph: &TypedGraph, node: Id, region: RegionId) -> [RegionId; 3] {
        match graph.kind(node) {
            Kind::Where { .. } => self.branches.get(&node).map_or([region; 3], |[on, off]| [region, *on, *off]),
            Kind::Loop(_) => self.loops.get(&node).map_or([region; 3], |round| [region, *round, *round]),
            _ => [region; 3],
        }
    }

    /// The region in which `operand` is evaluated for a use in the region `used`. It is outside of the loops whose states the operand does not depend
    /// on.
    fn home_of_use(&self, operand: Id, used: RegionId) -> RegionId {
        self.invariants.region_of_use(&self.tree, operand, used)
    }

    /// Returns true if `region` is the region `around` or inside of it.
    fn is_inside(&self, region: RegionId, around: RegionId) -> bool {
        self.tree.common(region, around) == around
    }

    fn visit(&mut self, graph: &TypedGraph, node: Id, region: RegionId) {
        self.population[region.index()] += 1;
        match graph.kind(node) {
            Kind::Where { .. } => self.open_branches(node, region),
            Kind::Loop(id) => {
                let round = self.open(region, None);
                self.invariants.enter(round, id);
                self.loops.insert(node, round);
            }
            _ => {}
        }
        let uses = self.used_in(graph, node, region);
        for (at, operand) in graph.operands(node).iter().enumerate() {
            let used = *uses.get(at).unwrap_or(&region);
            let known = &mut self.regions[operand.index()];
            let home = known.map_or(used, |known| self.tree.common(known, used));
            // If the home region moves outwards, a use in the old one is not in the home region any more.
            let at_home = &mut self.used_at_home[operand.index()];
            *at_home = (*at_home && *known == Some(home)) || used == home;
            *known = Some(home);
        }
    }
}
