//! Conditionals: the code branches to one of two blocks, which jump to a common join block, whose parameters are the
//! result. A conditional at the end of a branch uses the join block of the enclosing conditional. Otherwise the result
//! would be passed on from join block to join block, and in the tier `Quick` each join block would cost register moves
//! (benchmark S5: 5 % of a call, 21 % for calls that wait for each other).

use super::body::Body;
use cembra_plan::{BlockId, StepId};
use cranelift_codegen::ir::{self, InstBuilder};

/// A conditional of the plan whose branches are being emitted, with its step and its blocks.
#[derive(Clone, Copy)]
pub(super) struct Branch {
    step: StepId,
    /// The block for the code that runs if the condition is missing.
    off: ir::Block,
    pub(super) join: ir::Block,
    /// True if `join` is the join block of the enclosing conditional, because this conditional is at the end of a
    /// branch of that one.
    is_outer: bool,
    /// The number of values in `held` before the branches. Values that a branch adds are removed at its end.
    known: usize,
}

impl Body<'_, '_, '_> {
    /// Begins the branch that runs if the condition is present. If `outer`, the join block of the enclosing conditional, is
    /// given, the conditional's result goes there.
    pub(super) fn begin_branch(&mut self, step: StepId, condition: ir::Value, outer: Option<ir::Block>) -> Branch {
        let [on, off] = [(); 2].map(|()| self.builder.create_block());
        let join = outer.unwrap_or_else(|| {
            let join = self.builder.create_block();
            self.append_params(join, self.plan().step(step).out);
            join
        });
        self.builder.ins().brif(condition, on, &[], off, &[]);
        self.builder.seal_block(on);
        self.builder.seal_block(off);
        self.builder.switch_to_block(on);
        Branch { step, off, join, is_outer: outer.is_some(), known: self.held.depth() }
    }

    /// Ends the branch that runs if the condition is present, and begins the branch that runs if it is missing.
    pub(super) fn begin_other_branch(&mut self, branch: Branch, on: BlockId) {
        self.jump_to_join(branch, on);
        self.builder.switch_to_block(branch.off);
    }

    /// Ends the branch that runs if the condition is missing, and continues at the join block.
    pub(super) fn end_branches(&mut self, branch: Branch, off: BlockId) {
        self.jump_to_join(branch, off);
        if branch.is_outer {
            self.has_joined = true;
            return;
        }
        self.builder.seal_block(branch.join);
        self.builder.switch_to_block(branch.join);
        let out = self.plan().step(branch.step).out;
        let result = self.params_of(branch.join, out);
        self.made(out, result);
    }

    /// Records the result of a conditional whose condition is known at compile time, so that only one branch was emitted.
    pub(super) fn end_only_branch(&mut self, step: StepId, branch: BlockId) {
        if let Some(result) = self.plan().block(branch).result {
            let held = self.value(result);
            self.made(self.plan().step(step).out, held);
        }
    }

    /// Ends a branch with a jump that passes its result to the join block, unless a conditional at its end has jumped
    /// there.
    fn jump_to_join(&mut self, branch: Branch, block: BlockId) {
        if !std::mem::take(&mut self.has_joined)
            && let Some(result) = self.plan().block(block).result
        {
            self.state.mark(self.builder, Some(branch.step.index() as u32));
            let held = self.value(result);
            self.jump_with(branch.join, self.plan().step(branch.step).out, &held);
        }
        self.held.truncate(branch.known);
    }
}
