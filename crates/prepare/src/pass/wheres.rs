//! The `where` pass: each conditional becomes lazy if one of its branches then holds an operator of its own, and every
//! node gets the region it is evaluated in. Other conditionals are evaluated like any operator.
//!
//! A loop opens a region too, for what is made anew in each round. What does not depend on the loop's state is evaluated
//! once, before the loop: always, if it cannot stop the evaluation; else if every round would evaluate it. (A loop is only
//! reached if it runs at least once.) What may stop it and only a branch inside of the loop needs stays in that branch.
//!
//! Before that, what several branches share, and nothing outside of branches needs, is put under a guard of its own if it
//! can fail or costs much: see `guard`. Inputs that the caller is asked for are asked for where they are used: see `asked`.

mod asked;
mod guard;
mod invariant;

use crate::pass::Options;
use crate::{Id, Kind, Placed, RegionId, RegionTree, Regions, TypedGraph, TypedModel};
use cembra_expr::Program;
use cembra_value::Diagnostics;
use guard::GuardReason;
pub(super) use guard::unseen;
use invariant::Invariants;
use rustc_hash::FxHashMap;

/// How often guards may be added to a graph: each round can uncover sharing between what the last one put into branches.
const GUARD_ROUNDS: usize = 8;

pub(super) fn run(mut model: TypedModel, program: &Program, options: &Options) -> Result<Placed, Diagnostics> {
    let mut analysis = Analysis::of(&model);
    let mut is_asked = asked::is_any_asked(&model.graph);
    if is_asked && asked::keep_needed(&mut model, &analysis) {
        analysis = Analysis::of(&model);
        is_asked = asked::is_any_asked(&model.graph);
    }
    // What may fail has the same guards whatever the caller is asked for. Guards for inputs alone come after them.
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
    Ok(Placed { model, regions: Regions { of_nodes, tree, branches, loops } })
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
    /// The region of each loop's rounds.
    loops: FxHashMap<Id, RegionId>,
    invariants: Invariants,
    /// For each region but the top one and those of loops, its conditional, and true for the branch of a present condition.
    opened_by: Vec<Option<(Id, bool)>>,
    /// How many operators each region holds.
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
        // Users come after operands: when a node is met from behind, all its uses are known.
        for node in graph.ids().rev() {
            if let (Some(region), Kind::Operator { .. } | Kind::Where { .. } | Kind::Loop(_)) =
                (found.regions[node.index()], graph.kind(node))
            {
                let home = found.invariants.home(&found.tree, node, region);
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

    /// The regions that a node in `region` uses its first three operands in; it uses all others in `region`.
    fn used_in(&self, graph: &TypedGraph, node: Id, region: RegionId) -> [RegionId; 3] {
        match graph.kind(node) {
            Kind::Where { .. } => self.branches.get(&node).map_or([region; 3], |[on, off]| [region, *on, *off]),
            Kind::Loop(_) => self.loops.get(&node).map_or([region; 3], |round| [region, *round, *round]),
            _ => [region; 3],
        }
    }

    /// The region that an operand has for a use in `used`: around the loops that it is an invariant of.
    fn home_of_use(&self, operand: Id, used: RegionId) -> RegionId {
        self.invariants.home(&self.tree, operand, used)
    }

    /// True if a region is `around`, or inside of it.
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
            // A use at the old home is no longer at home if the home moved outwards.
            let at_home = &mut self.used_at_home[operand.index()];
            *at_home = (*at_home && *known == Some(home)) || used == home;
            *known = Some(home);
        }
    }
}
