//! Finds the steps that depend on one dictionary alone, which run once per value of the dictionary and not once per row. A
//! memo consists of all such steps of a block for one dictionary, and computes the results that other steps need.

use crate::lanes::classes::{Class, Classes, find_reads};
use cembra_plan::{Action, BlockId, Plan, StepId, ValueId};
use rustc_hash::{FxHashMap, FxHashSet};

/// The most memos in a program, because recording each memo takes a walk through the plan. A plan that would have more
/// memos is recorded without any.
const MOST_MEMOS: usize = 64;

/// The steps of a block that depend on one dictionary alone, and the results that other steps need.
#[derive(Debug)]
pub(super) struct Memo {
    /// The block whose rows need the memo's results.
    pub(super) block: BlockId,
    /// The index of the input that is the memo's dictionary.
    pub(super) input: u32,
    /// The values that the memo computes and that other steps need.
    pub(super) results: Vec<ValueId>,
    /// The steps that compute the memo's results, in order, including steps of enclosing blocks.
    pub(super) steps: Vec<StepId>,
}

/// The memos of all blocks of a plan: the steps that depend on one dictionary alone, which run once per dictionary value.
#[derive(Debug, Default)]
pub(super) struct Memos {
    pub(super) list: Vec<Memo>,
    /// The steps that run once per dictionary value. A step inside a conditional is not listed if the whole conditional
    /// is.
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
            // Steps are visited from the last to the first, blocks from the inside out.
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

    /// Returns true if a step depends on one dictionary alone and is part of a memo, so that it runs once per dictionary
    /// value.
    pub(super) fn has(&self, step: StepId) -> bool {
        self.steps.contains(&step)
    }

    /// The memos of one block. Each memo consists of the steps that depend on one dictionary alone.
    pub(super) fn in_block(&self, block: BlockId) -> impl Iterator<Item = &Memo> {
        self.list.iter().filter(move |memo| memo.block == block)
    }
}
