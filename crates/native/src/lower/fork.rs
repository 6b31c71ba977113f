//! Where the code forks and meets again. Conditionals that follow each other and have one condition are one fork: the
//! branches for a present condition run one after the other, or those for a missing one, and all results meet at one join.
//! So either way runs what it would run with a branch for each, in the same order.

use super::Lowering;
use crate::cells;
use crate::pieces::inner_blocks;
use cembra_plan::{BlockId, Plan, StepId, ValueId};
use cranelift_codegen::ir::{self, BlockArg, InstBuilder};
use smallvec::SmallVec;

/// Conditionals that are one branch in the code.
#[derive(Clone, Copy)]
pub(super) struct Fork<'p> {
    /// The conditionals, one at least.
    pub(super) steps: &'p [StepId],
    /// The code of the branches for a missing condition.
    off: ir::Block,
    join: ir::Block,
    /// True if the join is that of the fork around, in a branch of which this one comes last.
    is_outer: bool,
    /// How many values were known before the branches.
    known: usize,
}

/// A branch of a conditional: that for a present condition, or the other.
pub(super) fn branch(plan: &Plan, step: StepId, is_on: bool) -> Option<BlockId> {
    inner_blocks(&plan.step(step).action)[usize::from(!is_on)]
}

impl<'p> Lowering<'p, '_, '_> {
    /// Begins a branch for all of these conditionals, with what a present condition evaluates. What results goes to the join
    /// of the fork around, if that is given.
    pub(super) fn begin_fork(
        &mut self,
        steps: &'p [StepId],
        condition: ir::Value,
        outer: Option<ir::Block>,
    ) -> Fork<'p> {
        let is_outer = outer.is_some();
        let join = outer.unwrap_or_else(|| self.builder.create_block());
        let [on, off] = [(); 2].map(|()| self.builder.create_block());
        let fork = Fork { steps, off, join, is_outer, known: self.registers.len() };
        if !is_outer {
            for value in self.results(fork) {
                self.append_params(join, value);
            }
        }
        self.builder.ins().brif(condition, on, &[], off, &[]);
        self.builder.seal_block(on);
        self.builder.seal_block(off);
        self.builder.switch_to_block(on);
        fork
    }

    /// Goes on with what a missing condition evaluates.
    pub(super) fn begin_other_branch(&mut self, fork: Fork<'p>) {
        self.jump_to_join(fork, true);
        self.builder.switch_to_block(fork.off);
    }

    /// Goes on where the branches meet.
    pub(super) fn end_fork(&mut self, fork: Fork<'p>) {
        self.jump_to_join(fork, false);
        if fork.is_outer {
            self.has_joined = true;
            return;
        }
        self.builder.seal_block(fork.join);
        self.builder.switch_to_block(fork.join);
        let mut params = self.builder.block_params(fork.join).to_vec().into_iter();
        for value in self.results(fork) {
            let cell = cells::gather(&self.plan.value(value).qtype, &mut params);
            self.made(value, cell);
        }
    }

    /// The join of a fork, if the result of the last of its conditionals is all that goes there.
    pub(super) fn join_of_last(&self, fork: Fork<'p>) -> Option<ir::Block> {
        (self.results(fork).len() == 1).then_some(fork.join)
    }

    /// What the join takes, that of the last conditional at the end. The other conditionals have put into its slot what lies
    /// there, and nobody else needs them where the fork around ends.
    fn results(&self, fork: Fork<'p>) -> SmallVec<[ValueId; 4]> {
        let results = fork.steps.iter().map(|id| self.plan.step(*id).out);
        let crosses = |(at, value): &(usize, ValueId)| {
            let is_last = at + 1 == fork.steps.len();
            is_last || !(fork.is_outer || self.outline.homes.is_stored(*value))
        };
        results.enumerate().filter(crosses).map(|(_, value)| value).collect()
    }

    /// Notes the result of a branch that others follow without a join between.
    pub(super) fn end_inner_branch(&mut self, step: StepId, branch: BlockId) {
        if let Some(result) = self.plan.block(branch).result {
            let cell = self.cell(result);
            self.made(self.plan.step(step).out, cell);
        }
    }

    /// Ends the branches for one condition with their results, unless a conditional at their end has done so.
    fn jump_to_join(&mut self, fork: Fork<'p>, is_on: bool) {
        if !std::mem::take(&mut self.has_joined)
            && let Some(last) = fork.steps.last().copied()
            && let Some(result) = branch(self.plan, last, is_on).and_then(|branch| self.plan.block(branch).result)
        {
            self.around.mark(self.builder, Some(last.index() as u32));
            let mut args = Vec::new();
            for value in self.results(fork) {
                let from = if value == self.plan.step(last).out { result } else { value };
                let cell = self.cell(from);
                cells::spread(self.builder, &self.plan.value(value).qtype, &cell, &mut args);
            }
            let args: Vec<BlockArg> = args.into_iter().map(BlockArg::from).collect();
            self.builder.ins().jump(fork.join, &args);
        }
        self.registers.truncate(fork.known);
    }

    /// Gives a block the parameters that are a value.
    pub(super) fn append_params(&mut self, block: ir::Block, value: ValueId) {
        let mut params = Vec::new();
        cells::join_types(&self.plan.value(value).qtype, &mut params);
        for ty in params {
            self.builder.append_block_param(block, ty);
        }
    }
}
