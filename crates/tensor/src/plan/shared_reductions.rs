//! Merges reductions into one step if they read one tensor, and reduce the same axes of one index space. The merged
//! step reads the tensor's memory once, for example for a sum and a sum of squares, or for a minimum and a maximum.
//! Elements are combined as they would be without merging, so no bit changes. Steps that `rows` has merged before are
//! not merged again.

use super::guards::Guards;
use super::{Step, ViewedNode, Work};
use crate::{Axis, Extents, TensorGraph, TensorNodeId};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The most reductions that are merged into one step.
const MOST: usize = 8;

/// The properties that all reductions of one step share.
#[derive(PartialEq, Eq, Hash)]
struct Key {
    /// The largest number of steps, each of which reads the result of the previous one, that must run before the
    /// reductions.
    level: usize,
    /// The extents of the index space.
    extents: Extents,
    axes: SmallVec<[Axis; 8]>,
    /// A tensor that the reductions read, with its view.
    seen: ViewedNode,
}

/// Returns `steps` with some reductions merged: reductions that can share a loop become one step, in the position of
/// the last of them. Each step comes after the steps that compute the conditions of its guard.
pub(super) fn with_shared_loops(graph: &TensorGraph, mut steps: Vec<Step>, guards: &Guards) -> Vec<Step> {
    if !guards.are_none() {
        steps.iter_mut().for_each(|step| step.guard = guards.get(step.node).into());
        let places: Vec<usize> = (0..steps.len()).collect();
        let by_node = by_node(&steps);
        steps = ordered(graph, steps, &by_node, &places);
    }
    let by_node = by_node(&steps);
    let groups = groups(graph, &steps, &by_node);
    // A reduction that is alone keeps its place.
    let mut places: Vec<usize> = (0..steps.len()).collect();
    let mut is_any = false;
    for group in groups.iter().filter(|group| group.len() > 1) {
        let last = group.iter().copied().max().unwrap_or(0);
        group.iter().for_each(|at| places[*at] = last);
        is_any = true;
    }
    if is_any { ordered(graph, steps, &by_node, &places) } else { steps }
}

/// The number of the step that makes each node.
fn by_node(steps: &[Step]) -> FxHashMap<TensorNodeId, usize> {
    steps.iter().enumerate().map(|(at, step)| (step.node, at)).collect()
}

/// Groups reductions that can share a loop, by their positions. Reductions of one group have the same level, so none of
/// them reduces elements that depend on another one.
fn groups(graph: &TensorGraph, steps: &[Step], by_node: &FxHashMap<TensorNodeId, usize>) -> Vec<Vec<usize>> {
    let mut levels = vec![0_usize; steps.len()];
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut group_of: Vec<Option<usize>> = vec![None; steps.len()];
    let mut known: FxHashMap<Key, usize> = FxHashMap::default();
    for (at, step) in steps.iter().enumerate() {
        let before = |node: TensorNodeId| by_node.get(&node).map(|at| levels[*at]);
        let after =
            |nodes: &mut dyn Iterator<Item = TensorNodeId>| nodes.filter_map(before).max().map_or(0, |most| most + 1);
        let own = after(&mut step.reads(graph).into_iter().chain(step.conditions()));
        if let Work::Reduce { axes, of, then, .. } = &step.work
            && !axes.is_empty()
            && !of.extents.contains(&0)
        {
            let level = after(&mut of.inputs.iter().map(|(node, _)| *node).chain(step.conditions()));
            let key =
                |seen: &ViewedNode| Key { level, extents: of.extents.clone(), axes: axes.clone(), seen: seen.clone() };
            let found = of.inputs.iter().find_map(|seen| known.get(&key(seen)).copied());
            let is_alike = |group: &usize| steps[groups[*group][0]].guard == step.guard;
            let found = found.filter(|group| groups[*group].len() < MOST && is_alike(group));
            // The maps that follow a reduction may read results of its own group, which are known by then, but nothing that is computed
            // from them.
            let fits = |(node, _): &ViewedNode| {
                by_node.get(node).is_none_or(|at| levels[*at] < level || (found.is_some() && group_of[*at] == found))
            };
            if then.as_ref().is_none_or(|then| then.inputs[1..].iter().all(fits)) {
                let group = found.unwrap_or_else(|| {
                    groups.push(Vec::new());
                    groups.len() - 1
                });
                groups[group].push(at);
                group_of[at] = Some(group);
                of.inputs.iter().for_each(|seen| _ = known.insert(key(seen), group));
            }
        }
        levels[at] = own;
    }
    groups
}

/// Orders the steps so that operands come before their readers. Steps with the same entry in `places` become one step.
/// Otherwise the steps keep the given order as far as possible.
fn ordered(
    graph: &TensorGraph,
    steps: Vec<Step>,
    by_node: &FxHashMap<TensorNodeId, usize>,
    places: &[usize],
) -> Vec<Step> {
    let mut readers: Vec<Vec<usize>> = vec![Vec::new(); steps.len()];
    let mut waits = vec![0_usize; steps.len()];
    for (at, step) in steps.iter().enumerate() {
        let to = places[at];
        let before = step.reads(graph).into_iter().chain(step.conditions());
        for from in before.filter_map(|node| by_node.get(&node)).map(|from| places[*from]) {
            if from != to {
                readers[from].push(to);
                waits[to] += 1;
            }
        }
    }
    let mut members: Vec<Vec<Step>> = vec![Vec::new(); steps.len()];
    for (step, place) in steps.into_iter().zip(places) {
        members[*place].push(step);
    }
    let is_ready = |place: &usize| waits[*place] == 0 && !members[*place].is_empty();
    let mut ready: BinaryHeap<Reverse<usize>> = (0..members.len()).filter(is_ready).map(Reverse).collect();
    let mut made = Vec::with_capacity(members.len());
    while let Some(Reverse(place)) = ready.pop() {
        for reader in &readers[place] {
            waits[*reader] -= 1;
            if waits[*reader] == 0 {
                ready.push(Reverse(*reader));
            }
        }
        let mut steps = std::mem::take(&mut members[place]);
        match (steps.len(), steps.last().map(|step| step.node)) {
            (2.., Some(node)) => {
                // The steps of a group are run under the same conditions.
                let guard = steps[0].guard.clone();
                steps.iter_mut().for_each(|step| step.guard.clear());
                made.push(Step { guard, ..Step::new(node, Work::SharedReductions(steps)) });
            }
            _ => made.append(&mut steps),
        }
    }
    made
}
