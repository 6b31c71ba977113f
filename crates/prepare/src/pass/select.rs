//! The `select` pass: replaces cheap conditionals by selections, which compute both branches and then select one value. A conditional is replaced if
//! its branches cannot fail, call nothing, and cost less than an average branch misprediction. Inner conditionals are considered first. So of many
//! nested conditionals, the innermost become selections, and the outer ones stay and can skip them.

use crate::pass::Options;
use crate::{Id, Kind, RegionId, RegionModel, Regions, TypedGraph};
use cembra_expr::Program;
use cembra_ops::{OpId, id};
use cembra_value::{Diagnostics, Value};
use smallvec::{SmallVec, smallvec};
use std::cmp::Reverse;

/// The largest total cost of the branches of a selection, per conditional that the selection replaces, in units of `Effects::cost`. A misprediction
/// costs about 20 cycles, and at worst about every second branch is mispredicted.
const MOST: u32 = 12;

/// The largest total cost of the branches of a selection, for any number of conditionals, in units of `Effects::cost`. For four or more conditionals
/// it is less than `MOST` per conditional, because inner conditionals are reached less often. The benchmark S5 (twelve nested conditionals) runs
/// fastest if its innermost eight to eleven conditionals are selections.
const MOST_NESTED: u32 = 40;

/// The cost of the nodes in a region, and the number of conditionals in it that become selections (operators that compute both branches).
#[derive(Clone, Copy, Default)]
struct Weight {
    cost: u32,
    selections: u32,
}

pub(super) fn run(placed: &mut RegionModel, _: &Program, options: &Options) -> Result<(), Diagnostics> {
    let RegionModel { model, regions } = placed;
    let Regions { of_nodes, tree, branches: conditionals, .. } = regions;
    if conditionals.is_empty() {
        return Ok(());
    }
    let graph = &mut model.graph;
    let registry = model.registry;
    // The weight of each region without the conditionals in it; `None` if it cannot be part of a selection.
    let mut weights = vec![Some(Weight::default()); tree.count()];
    for node in graph.ids() {
        let region = of_nodes[node.index()];
        if region == RegionId::TOP {
            continue;
        }
        let cost = match graph.kind(node) {
            // Plans have no values outside of frames.
            _ if graph.operands(node).iter().chain([&node]).any(|part| !graph.qtype(*part).is_framed()) => None,
            // For a lazy conditional the cost of its branches is counted instead.
            Kind::Where { .. } if conditionals.contains_key(&node) => Some(0),
            Kind::Operator { .. } | Kind::Where { .. } => graph.effects(registry, node).map_or(Some(0), |of| of.cost),
            Kind::Leaf(_) | Kind::Literal(_) => Some(0),
            Kind::Loop(_) | Kind::State(_) | Kind::CompileTime(_) => None,
        };
        add(&mut weights[region.index()], cost.map(|cost| Weight { cost, selections: 0 }));
    }
    // From the innermost regions outwards: regions are numbered from the outermost inwards.
    let mut inwards: Vec<_> = conditionals.iter().map(|(node, branches)| (*node, *branches)).collect();
    inwards.sort_unstable_by_key(|(_, [on, _])| Reverse(on.index()));
    let mut goes_into: Vec<Option<RegionId>> = vec![None; tree.count()];
    for (node, branches) in inwards {
        let around = tree.parent(branches[0]);
        let mut weight = Some(Weight { cost: 0, selections: 1 });
        branches.iter().for_each(|branch| add(&mut weight, weights[branch.index()]));
        let resolved = match weight {
            Some(weight) if weight.cost <= MOST_NESTED.min(MOST.saturating_mul(weight.selections)) => {
                let (op, operands) = selection(graph, node);
                graph.resolve(options.registry, op, &operands).ok().map(|resolved| (op, operands, resolved))
            }
            _ => None,
        };
        weight = resolved.and_then(|(op, operands, resolved)| {
            let at = resolved.overload?;
            graph.recompute(node, Kind::bound(op, &resolved), &operands);
            conditionals.remove(&node);
            branches.iter().for_each(|branch| goes_into[branch.index()] = Some(around));
            add(&mut weight, registry.effects(op, at).cost.map(|cost| Weight { cost, selections: 0 }));
            weight
        });
        add(&mut weights[around.index()], weight);
    }
    for at in 0..goes_into.len() {
        // The enclosing region has a smaller index, so its final region is known.
        if let Some(around) = goes_into[at] {
            goes_into[at] = Some(goes_into[around.index()].unwrap_or(around));
        }
    }
    for region in of_nodes {
        *region = goes_into[region.index()].unwrap_or(*region);
    }
    Ok(())
}

/// The operator that selects the value of a conditional, and its operands. If the branch for a missing condition is a missing literal, the operator
/// is `core.presence_and` on the other branch and the condition; a conversion of that branch to an optional is omitted.
fn selection(graph: &TypedGraph, node: Id) -> (OpId, SmallVec<[Id; 3]>) {
    match *graph.operands(node) {
        [condition, on, off] if graph.value(off).is_some_and(|value| matches!(value, Value::Missing(_))) => {
            let plain = match (graph.kind(on), graph.operands(on)) {
                (Kind::Operator { op: id::TO_OPTIONAL, .. }, [plain]) => *plain,
                _ => on,
            };
            (id::PRESENCE_AND, smallvec![plain, condition])
        }
        ref operands => (id::WHERE, operands.into()),
    }
}

fn add(sum: &mut Option<Weight>, more: Option<Weight>) {
    *sum = sum.zip(more).map(|(sum, more)| Weight {
        cost: sum.cost.saturating_add(more.cost),
        selections: sum.selections.saturating_add(more.selections),
    });
}
