//! What is known of a plan's blocks before any is recorded: what a branch costs, whether a kernel cuts it, and which steps
//! work on what all rows share.

use crate::lanes::InputFact;
use cembra_ops::Lower;
use cembra_plan::{Action, BlockId, Plan, StepId, ValueId};
use rustc_hash::FxHashSet;
use smallvec::SmallVec;
use std::borrow::Cow;

/// A branch that costs less than this is evaluated for all rows: to ask whether a row of a vector needs it costs a few
/// cycles, and twenty where the processor guesses wrong. In the units of `Tape::cost`; an exponential is about that much.
const COSTLY: u32 = 40;

/// What is known of a plan's blocks.
#[derive(Debug, Default)]
pub(super) struct Weights {
    /// By block. Empty if there is but one.
    costs: Vec<u32>,
    cuts: Vec<bool>,
    /// By step: whether rows may differ in its result. Empty if no input is shared.
    varies: Vec<bool>,
}

/// True for a step that is recorded as a call of its kernel.
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
    pub(super) fn of(plan: &Plan, facts: &[InputFact], unplayable: &FxHashSet<StepId>) -> Weights {
        let mut weights = Weights::default();
        if plan.block_count() > 1 {
            weights.weigh(plan, unplayable);
        }
        if facts.iter().any(|fact| fact.is_shared) {
            weights.find_shared(plan, facts);
        }
        weights
    }

    /// What a block costs, those inside of it included.
    pub(super) fn cost(&self, block: BlockId) -> u32 {
        self.costs.get(block.index()).copied().unwrap_or_default()
    }

    /// True if a step of a block, or of one inside of it, is a kernel.
    pub(super) fn is_cut(&self, block: BlockId) -> bool {
        self.cuts.get(block.index()).copied().unwrap_or_default()
    }

    /// True if a branch is worth a stretch of its own in one that costs so much: what is little less than the stretch around it
    /// is skipped with that, so that a nest of a hundred conditionals has a few stretches and not a hundred.
    pub(super) fn is_worth_skipping(&self, block: BlockId, around: u32) -> bool {
        let cost = self.cost(block);
        cost >= COSTLY && cost <= around / 4 * 3
    }

    /// True if all rows share the result of a step of the top block.
    pub(super) fn is_shared(&self, step: StepId) -> bool {
        self.varies.get(step.index()).is_some_and(|varies| !varies)
    }

    /// The steps of the top block in the order in which they are recorded. Kernels that do not need each other come together,
    /// so that there are few cuts; what no kernel needs comes behind the last one, so that little crosses them.
    pub(super) fn order<'p>(&self, plan: &'p Plan, unplayable: &FxHashSet<StepId>) -> Cow<'p, [StepId]> {
        let steps = &plan.block(BlockId::TOP).steps;
        let cuts = |id: StepId| match plan.step(id).action {
            Action::Where { on, off } => self.is_cut(on) || self.is_cut(off),
            _ => is_kernel(plan, id, unplayable),
        };
        if !steps.iter().any(|id| cuts(*id)) {
            return Cow::Borrowed(steps);
        }
        // How many cuts a value is behind, each needing the one before.
        let mut depths: Vec<u32> = vec![0; plan.value_count()];
        let mut reads: Vec<ValueId> = Vec::new();
        let mut most = 0;
        for id in steps {
            find_reads(plan, *id, &mut reads);
            let depth = reads.iter().map(|value| depths[value.index()]).max().unwrap_or(0) + u32::from(cuts(*id));
            depths[plan.step(*id).out.index()] = depth;
            most = most.max(depth);
        }
        // The number of cuts before which a step is recorded: those that cut, as early as they can, others as late.
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

    fn weigh(&mut self, plan: &Plan, unplayable: &FxHashSet<StepId>) {
        self.costs.resize(plan.block_count(), 0);
        self.cuts.resize(plan.block_count(), false);
        // Blocks, each behind the one that it is in.
        let mut order: Vec<(BlockId, BlockId)> = vec![(BlockId::TOP, BlockId::TOP)];
        let mut at = 0;
        while let Some((block, _)) = order.get(at).copied() {
            at += 1;
            for id in &plan.block(block).steps {
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
        }
        for (block, around) in order.into_iter().skip(1).rev() {
            self.costs[around.index()] = self.costs[around.index()].saturating_add(self.cost(block));
            self.cuts[around.index()] |= self.is_cut(block);
        }
    }

    fn find_shared(&mut self, plan: &Plan, facts: &[InputFact]) {
        self.varies.resize(plan.step_count(), false);
        let mut of_value = vec![false; plan.value_count()];
        for (input, fact) in
            plan.inputs().iter().zip(facts.iter().copied().chain(std::iter::repeat(InputFact::default())))
        {
            of_value[input.value.index()] = !fact.is_shared;
        }
        enum Todo {
            Steps(BlockId, usize),
            /// A conditional is done; before it, so many steps varied.
            Join(StepId, usize),
        }
        let mut varying = 0;
        let mut stack = vec![Todo::Steps(BlockId::TOP, 0)];
        while let Some(todo) = stack.pop() {
            let (id, inside) = match todo {
                Todo::Steps(block, at) => {
                    let Some(&id) = plan.block(block).steps.get(at) else { continue };
                    stack.push(Todo::Steps(block, at + 1));
                    if let Action::Where { on, off } = plan.step(id).action {
                        stack.extend([Todo::Join(id, varying), Todo::Steps(off, 0), Todo::Steps(on, 0)]);
                        continue;
                    }
                    (id, false)
                }
                Todo::Join(id, before) => {
                    let Action::Where { on, off } = plan.step(id).action else { continue };
                    let results = [on, off].into_iter().filter_map(|block| plan.block(block).result);
                    (id, varying > before || results.into_iter().any(|result| of_value[result.index()]))
                }
            };
            let step = plan.step(id);
            let varies = inside || plan.args(step).iter().any(|arg| of_value[arg.index()]);
            varying += usize::from(varies);
            self.varies[id.index()] = varies;
            of_value[step.out.index()] = varies;
        }
    }
}

/// Finds all values that a step reads, those of the steps inside of it included.
fn find_reads(plan: &Plan, id: StepId, reads: &mut Vec<ValueId>) {
    reads.clear();
    let mut inside: SmallVec<[BlockId; 8]> = SmallVec::new();
    let mut read = |id: StepId, inside: &mut SmallVec<[BlockId; 8]>| {
        let step = plan.step(id);
        reads.extend(plan.args(step));
        if let Action::Where { on, off } = step.action {
            inside.extend([on, off]);
        }
    };
    read(id, &mut inside);
    let mut results: SmallVec<[ValueId; 8]> = SmallVec::new();
    while let Some(block) = inside.pop() {
        let block = plan.block(block);
        results.extend(block.result);
        block.steps.iter().for_each(|id| read(*id, &mut inside));
    }
    reads.extend(results);
}
