//! Divides a run of a fused loop over elements among threads. The share of a thread is a range of elements. No boundary
//! between shares is inside a group, or inside a block of elements that are summed together. So results do not depend
//! on the number of shares. Each share has a workspace of its own; the arrays that the run makes are in the first
//! workspace.

use super::host::ArrayHost;
use super::runner::Workspace;
use super::sweep::{Bounds, SweepRun};
use crate::rows::threads::on_threads;
use cembra_array::{GroupScope, Origin, Side, Storage, SweepColumn};
use cembra_runtime::SUM_BLOCK;
use smallvec::{SmallVec, smallvec};

/// The most groups that are examined to find one that a share can begin with. If none of these is suitable, the
/// previous share takes all remaining groups.
const NEAR: usize = 1 << 14;

impl SweepRun<'_> {
    /// Splits the run into shares (ranges of elements) for at most `threads` threads, in the order of the elements. There is only one share if there
    /// are few elements, or if one share would need results of another share.
    pub(super) fn shares(&self, threads: usize) -> SmallVec<[Bounds; 1]> {
        let groups = self.points.map_or(0, |points| points.len() - 1);
        let all = Bounds { elements: 0..self.elements, groups: 0..groups };
        let threads = threads.min(self.elements / SUM_BLOCK);
        if threads < 2 || !self.is_divisible() {
            return smallvec![all];
        }
        let Some(points) = self.points else {
            let each = self.elements.div_ceil(SUM_BLOCK).div_ceil(threads) * SUM_BLOCK;
            let share = |start| Bounds { elements: start..self.elements.min(start + each), groups: 0..0 };
            return (0..self.elements).step_by(each).map(share).collect();
        };
        let each = self.elements.div_ceil(threads);
        let mut shares = SmallVec::new();
        let mut first = 0;
        for share in 1..=threads {
            let reached = points.partition_point(|point| (*point as usize) < share * each);
            let mut near = reached..groups.min(reached + NEAR);
            let end = near.find(|group| share < threads && self.is_between_words(points, *group)).unwrap_or(groups);
            if first < end {
                shares.push(Bounds { elements: points[first] as usize..points[end] as usize, groups: first..end });
                first = end;
            }
        }
        shares
    }

    /// Returns true if a share can begin with the group `group`, because the results from this group on do not share a
    /// word of memory with the results of earlier groups.
    fn is_between_words(&self, points: &[i64], group: usize) -> bool {
        let starts_word = |lane: &SweepColumn| match lane.over {
            Side::Elements => points[group] % 64 == 0,
            Side::Groups => group.is_multiple_of(64),
        };
        let has_bits =
            |lane: &&SweepColumn| lane.origin == Origin::Kept && (lane.has_bits || lane.storage == Storage::Bits);
        self.layout().lanes().iter().filter(has_bits).all(starts_word)
    }

    /// Returns true if no share depends on results of another share.
    fn is_divisible(&self) -> bool {
        let is_apart = |over: GroupScope| match self.points {
            None => over == GroupScope::Whole,
            Some(_) => self.is_strip_grouping(over),
        };
        self.layout().scanners().is_empty()
            && self.layout().accumulators().iter().all(|of| of.side == Side::Elements && is_apart(of.over))
    }

    /// Runs all strips (blocks of elements) of all shares, each share on a thread of its own if possible. Returns false if an element failed, or the
    /// run was cancelled.
    pub(super) fn strips_of_shares(&self, workspace: &mut Workspace, shares: &[Bounds], host: &ArrayHost<'_>) -> bool {
        let mut others = std::mem::take(&mut workspace.others);
        while others.len() + 1 < shares.len() {
            let Some(other) = self.runner.workspace(host, self.with_bits) else { return false };
            others.push(*other);
        }
        for other in &mut others {
            other.bases.clone_from(&workspace.bases);
            host.ready(&mut other.context);
        }
        host.ready(&mut workspace.context);
        let workspaces = std::iter::once(&mut *workspace).chain(&mut others);
        let done = on_threads(workspaces.zip(shares), |(workspace, share)| {
            self.begin_share(workspace, share);
            self.strips(workspace, share)
        });
        if self.points.is_none() {
            for other in &others[..shares.len() - 1] {
                workspace
                    .accumulators
                    .iter_mut()
                    .zip(&other.accumulators)
                    .for_each(|(first, next)| first.join(&**next));
            }
        }
        workspace.others = others;
        done.into_iter().all(|succeeds| succeeds)
    }
}
