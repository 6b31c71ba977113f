//! Merges steps that share their leading axes, such as the three steps of a softmax, into one step. The merged step is
//! run for a few rows at a time, so that the values between its steps stay in the cache and are not temporaries. The
//! number of rows at a time depends only on extents. It changes no bit, because the computation of a row does not
//! depend on the other rows.

use super::guards::Guards;
use super::{Step, ViewedNode, Work};
use crate::{Axis, Extents, TensorGraph, TensorNodeId};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};

/// The most steps that are merged into one.
const MOST_STEPS: usize = 16;

/// The approximate number of elements of a step that are computed at a time.
const STRIP: usize = 1 << 15;

impl Step {
    /// The extents of the index space over which the step computes, and the number of leading axes of this space that the result has too. `None` if
    /// the step is not computed row by row.
    #[must_use]
    pub fn space(&self) -> Option<(&Extents, usize)> {
        match &self.work {
            Work::Map(region) => Some((&region.extents, region.extents.len())),
            Work::Reduce { axes, of, .. } => {
                let is_kept = |axis: &usize| !axes.contains(&(*axis as Axis));
                Some((&of.extents, (0..of.extents.len()).take_while(is_kept).count()))
            }
            _ => None,
        }
    }

    /// The nodes that a map or a reduction reads, each with the view (the map of indices) through which the step's
    /// index space reads it. Empty for steps that are neither.
    pub(super) fn seen(&self) -> impl Iterator<Item = &ViewedNode> {
        let (first, second): (&[_], &[_]) = match &self.work {
            Work::Map(region) => (&region.inputs, &[]),
            Work::Reduce { of, then, .. } => (&of.inputs, then.as_ref().map_or(&[], |then| &then.inputs[1..])),
            _ => (&[], &[]),
        };
        first.iter().chain(second)
    }
}

/// The number of rows that are computed at a time, where rows are indexed by the `depth` leading axes. 0 if a row has
/// more than 32,768 elements, which is too large to run steps by rows.
#[must_use]
pub fn rows_at_a_time(steps: &[Step], depth: usize) -> usize {
    let inner = |step: &Step| step.space().map_or(1, |(extents, _)| extents[depth..].iter().product());
    STRIP / steps.iter().map(inner).max().unwrap_or(1).max(1)
}

/// Returns `steps` with some of them merged: steps that share rows become one step, in the position of the last of them.
pub(super) fn with_rows(graph: &TensorGraph, outputs: &[TensorNodeId], steps: Vec<Step>, guards: &Guards) -> Vec<Step> {
    let by_node: FxHashMap<TensorNodeId, usize> = steps.iter().enumerate().map(|(at, step)| (step.node, at)).collect();
    // The number of times that each step's result is read. The caller reads outputs too.
    let mut reads = vec![0_usize; steps.len()];
    for node in outputs.iter().copied().chain(steps.iter().flat_map(|step| step.reads(graph))) {
        if let Some(at) = by_node.get(&node) {
            reads[*at] += 1;
        }
    }
    let mut steps: Vec<Option<Step>> = steps.into_iter().map(Some).collect();
    let mut found: BTreeMap<usize, (usize, BTreeSet<usize>)> = BTreeMap::new();
    let mut is_taken = vec![false; steps.len()];
    for last in (0..steps.len()).rev() {
        let Some((extents, shared)) = steps[last].as_ref().and_then(Step::space) else { continue };
        if is_taken[last] || extents.contains(&0) {
            continue;
        }
        // The last axis is within a row.
        let deepest = shared.min(extents.len().saturating_sub(1));
        let group = |depth: usize| (depth, group(&steps, &by_node, &reads, guards, last, depth));
        let best = (1..=deepest).map(group).max_by_key(|(depth, group)| (group.len(), *depth));
        if let Some((depth, group)) = best.filter(|(_, group)| group.len() > 1) {
            group.iter().for_each(|at| is_taken[*at] = true);
            found.insert(last, (depth, group));
        }
    }
    for (last, (depth, group)) in found {
        let inner: Vec<Step> = group.iter().filter_map(|at| steps[*at].take()).collect();
        if let Some(node) = inner.last().map(|step| step.node) {
            steps[last] = Some(Step::new(node, Work::Rows { depth, steps: inner }));
        }
    }
    steps.into_iter().flatten().collect()
}

/// Returns the positions of the steps that can be computed for the same rows as the step `last`, and under the same
/// conditions. Results of the steps other than `last` are read only by steps of this group, which compute a row only
/// from the same row of these results.
fn group(
    steps: &[Option<Step>],
    by_node: &FxHashMap<TensorNodeId, usize>,
    reads: &[usize],
    guards: &Guards,
    last: usize,
    depth: usize,
) -> BTreeSet<usize> {
    let mut group = BTreeSet::from([last]);
    let Some((rows, _)) = steps[last].as_ref().and_then(Step::space) else { return group };
    let rows = &rows[..depth];
    let guard = |at: usize| steps[at].as_ref().map_or(&[][..], |step| guards.get(step.node));
    // The number of times that the group reads each step that may join it. The last in the order are tried first.
    let mut open: BTreeMap<usize, usize> = BTreeMap::new();
    let mut next = Some(last);
    while let Some(at) = next {
        for (node, view) in steps[at].iter().flat_map(Step::seen) {
            if let Some(read) = by_node.get(node).filter(|_| view.keeps_rows(rows)) {
                *open.entry(*read).or_default() += 1;
            }
        }
        next = None;
        while let Some((at, count)) = open.pop_last() {
            let fits = |(extents, shared): (&Extents, usize)| {
                shared >= depth && extents[..depth] == *rows && !extents.contains(&0)
            };
            if count == reads[at]
                && guard(at) == guard(last)
                && group.len() < MOST_STEPS
                && steps[at].as_ref().and_then(Step::space).is_some_and(fits)
            {
                group.insert(at);
                next = Some(at);
                break;
            }
        }
    }
    group
}
