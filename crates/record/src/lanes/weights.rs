//! Estimates about a plan's blocks that are made before recording: the cost of each block, and whether it contains the call
//! of a kernel or of a memo (steps that depend on one dictionary alone), which ends the tape.

use crate::lanes::classes::find_reads;
use crate::lanes::memos::Memos;
use cembra_ops::Lower;
use cembra_plan::{Action, BlockId, Plan, StepId, ValueId};
use rustc_hash::FxHashSet;
use std::borrow::Cow;

/// The least cost of a branch that becomes a stretch, which can be skipped. Cheaper branches are evaluated for all rows:
/// testing whether a row of a vector needs the branch costs a few cycles, and twenty after a wrong branch prediction. In
/// units of `Tape::cost`; an exponential costs about this much.
const COSTLY: u32 = 40;

/// The estimated cost of each block of a plan, and whether the block contains the call of a kernel or of a memo (steps that
/// depend on one dictionary alone), which ends the tape.
#[derive(Debug, Default)]
pub(super) struct Weights {
    /// The cost of each block. Empty if there is only one block.
    costs: Vec<u32>,
    cuts: Vec<bool>,
}

/// Returns true if a step is recorded as a call of its kernel. `unplayable` has the steps with instructions that the backend
/// does not support.
pub(super) fn is_kernel(plan: &Plan, step: StepId, unplayable: &FxHashSet<StepId>) -> bool {
    match plan.step(step).action {
        Action::Operator { op, overload, .. } => {
            let overload = &plan.registry().get(op).overloads()[usize::from(overload)];
            matches!(overload.lower, Lower::Kernel) || unplayable.contains(&step)
        }
        _ => false,
    }
}

impl Weights {
    pub(super) fn of(plan: &Plan, memos: &Memos, unplayable: &FxHashSet<StepId>) -> Weights {
        let mut weights = Weights::default();
        if plan.block_count() > 1 {
            weights.weigh(plan, memos, unplayable);
        }
        weights
    }

    /// The estimated cost of a block, including the blocks inside it.
    pub(super) fn cost(&self, block: BlockId) -> u32 {
        self.costs.get(block.index()).copied().unwrap_or_default()
    }

    /// Returns true if a block, or a block inside it, contains the call of a kernel or of a memo (steps that depend on one
    /// dictionary alone), which ends the tape.
    pub(super) fn is_cut(&self, block: BlockId) -> bool {
        self.cuts.get(block.index()).copied().unwrap_or_default()
    }

    /// Returns true if the branch `block` should become a stretch (a range of instructions that can be skipped), inside a
    /// stretch whose cost is `around`. A branch that costs more than 3/4 of `around` is skipped together with the enclosing
    /// stretch, so that a hundred nested conditionals have a few stretches and not a hundred.
    pub(super) fn is_worth_skipping(&self, block: BlockId, around: u32) -> bool {
        let cost = self.cost(block);
        cost >= COSTLY && cost <= around / 4 * 3
    }

    /// The steps of the top block in the order in which they are recorded. Kernels that do not need each other's results are
    /// adjacent, so that there are few tapes. Steps that no kernel needs come after the last kernel, so that few values are
    /// stored between tapes.
    pub(super) fn order<'p>(&self, plan: &'p Plan, memos: &Memos, unplayable: &FxHashSet<StepId>) -> Cow<'p, [StepId]> {
        let steps = &plan.block(BlockId::TOP).steps;
        let cuts = |id: StepId| match plan.step(id).action {
            // Memos come before all others.
            _ if memos.has(id) => false,
            Action::Where { on, off } => self.is_cut(on) || self.is_cut(off),
            _ => is_kernel(plan, id, unplayable),
        };
        if !steps.iter().any(|id| cuts(*id)) {
            return Cow::Borrowed(steps);
        }
        // The number of cuts before a value, each of which needs the previous one.
        let mut depths: Vec<u32> = vec![0; plan.value_count()];
        let mut reads: Vec<ValueId> = Vec::new();
        let mut most = 0;
        for id in steps {
            find_reads(plan, *id, &mut reads);
            let depth = reads.iter().map(|value| depths[value.index()]).max().unwrap_or(0) + u32::from(cuts(*id));
            depths[plan.step(*id).out.index()] = depth;
            most = most.max(depth);
        }
        // The number of cuts before a step: steps that cut are recorded as early as possible, others as late as possible.
        let mut latest: Vec<u32> = vec![most; plan.value_count()];
        let mut keyed: Vec<(u32, bool, StepId)> = Vec::with_capacity(steps.len());
        for id in steps.iter().rev() {
            let out = plan.step(*id).out.index();
            let is_cut = cuts(*id);
            let key = if is_cut { depths[out] - 1 } else { latest[out] };
            find_reads(plan, *id, &mut reads);
            reads.iter().for_each(|value| latest[value.index()] = latest[value.index()].min(key));
            keyed.push((key, is_cut, *id));
        }
        keyed.reverse();
        keyed.sort_by_key(|(key, is_cut, _)| (*key, *is_cut));
        Cow::Owned(keyed.into_iter().map(|(_, _, id)| id).collect())
    }

    fn weigh(&mut self, plan: &Plan, memos: &Memos, unplayable: &FxHashSet<StepId>) {
        self.costs.resize(plan.block_count(), 0);
        self.cuts.resize(plan.block_count(), false);
        // Blocks, each after the block that contains it.
        let mut order: Vec<(BlockId, BlockId)> = vec![(BlockId::TOP, BlockId::TOP)];
        let mut at = 0;
        while let Some((block, _)) = order.get(at).copied() {
            at += 1;
            for id in plan.block(block).steps.iter().filter(|id| !memos.has(**id)) {
                let cost = match plan.step(*id).action {
                    Action::Operator { op, overload, .. } => {
                        let effects = plan.registry().effects(op, overload);
                        effects.cost.unwrap_or(effects.rule_length as u32)
                    }
                    Action::Where { on, off } => {
                        order.extend([(on, block), (off, block)]);
                        4
                    }
                    _ => 0,
                };
                self.costs[block.index()] = self.costs[block.index()].saturating_add(cost);
                self.cuts[block.index()] |= is_kernel(plan, *id, unplayable);
            }
            self.cuts[block.index()] |= memos.in_block(block).next().is_some();
        }
        for (block, around) in order.into_iter().skip(1).rev() {
            self.costs[around.index()] = self.costs[around.index()].saturating_add(self.cost(block));
            self.cuts[around.index()] |= self.is_cut(block);
        }
    }
}
