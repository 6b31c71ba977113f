//! Which steps are done once for each value of a dictionary, and not for each row: those that depend on one dictionary alone. A
//! memo is all of a block that depends on the same dictionary, and computes what others need of it.

use crate::lanes::classes::{Class, Classes, find_reads};
use cembra_plan::{Action, BlockId, Plan, StepId, ValueId};
use rustc_hash::{FxHashMap, FxHashSet};

/// The most memos of a program: each is recorded with a walk of its own. A plan with more has none.
const MOST_MEMOS: usize = 64;

/// What a block computes of a dictionary's values.
#[derive(Debug)]
pub(super) struct Memo {
    /// The block, whose rows ask for it.
    pub(super) block: BlockId,
    /// The dictionary.
    pub(super) input: u32,
    /// What is needed of it.
    pub(super) results: Vec<ValueId>,
    /// The steps that this takes, those of blocks around it included, in order.
    pub(super) steps: Vec<StepId>,
}

/// The memos of a plan.
#[derive(Debug, Default)]
pub(super) struct Memos {
    pub(super) list: Vec<Memo>,
    /// The steps that are done for values, outermost ones only.
    steps: FxHashSet<StepId>,
}

impl Memos {
    pub(super) fn of(plan: &Plan, classes: &Classes) -> Memos {
        let mut memos = Memos::default();
        let mut needed: FxHashSet<ValueId> = plan.outputs().iter().map(|output| output.value).collect();
        let mut around: FxHashMap<BlockId, BlockId> = FxHashMap::default();
        let mut found: Vec<(BlockId, u32)> = Vec::new();
        let mut blocks = vec![BlockId::TOP];
        while let Some(block) = blocks.pop() {
            for id in &plan.block(block).steps {
                let step = plan.step(*id);
                if let Class::Of(input) = classes.step(*id) {
                    memos.steps.insert(*id);
                    if !found.contains(&(block, input)) {
                        found.push((block, input));
                    }
                    continue;
                }
                needed.extend(plan.args(step));
                if let Action::Where { on, off } = step.action {
                    for inside in [on, off] {
                        needed.extend(plan.block(inside).result);
                        around.insert(inside, block);
                        blocks.push(inside);
                    }
                }
            }
            if found.len() > MOST_MEMOS {
                return Memos::default();
            }
        }
        for (block, input) in found {
            let of_input = |id: &StepId| classes.step(*id) == Class::Of(input);
            let outs = plan.block(block).steps.iter().filter(|id| of_input(id)).map(|id| plan.step(*id).out);
            let results: Vec<ValueId> = outs.filter(|out| needed.contains(out)).collect();
            if results.is_empty() {
                continue;
            }
            // From the last step to the first, from the block outwards.
            let mut wanted: FxHashSet<ValueId> = results.iter().copied().collect();
            let (mut steps, mut reads) = (Vec::new(), Vec::new());
            let mut at = Some(block);
            while let Some(block) = at {
                for id in plan.block(block).steps.iter().rev() {
                    let is_one = of_input(id) || classes.step(*id) == Class::Shared;
                    if is_one && wanted.contains(&plan.step(*id).out) {
                        find_reads(plan, *id, &mut reads);
                        wanted.extend(&reads);
                        steps.push(*id);
                    }
                }
                at = around.get(&block).copied();
            }
            steps.reverse();
            memos.list.push(Memo { block, input, results, steps });
        }
        memos
    }

    /// True for a step that is done for values.
    pub(super) fn has(&self, step: StepId) -> bool {
        self.steps.contains(&step)
    }

    /// The memos of a block.
    pub(super) fn in_block(&self, block: BlockId) -> impl Iterator<Item = &Memo> {
        self.list.iter().filter(move |memo| memo.block == block)
    }
}
