//! Loops: a basic block whose parameters are the loop's state. It is entered with the first state, and again from the
//! end of each iteration. The iterations of all loops in an evaluation are counted together, and the limit is checked
//! before each further iteration. The count is in a register if the plan is a single function, else in the context,
//! where all of its functions find it.

use super::body::Body;
use super::exits::Exits;
use cembra_plan::{BlockId, StepId, ValueId};
use cembra_record::{Datum, Presence};
use cembra_runtime::{Context, FaultKind};
use cranelift_codegen::ir::{self, InstBuilder, MemFlagsData, condcodes::IntCC, types};
use cranelift_frontend::Variable;

/// The number of loop iterations that an evaluation may still run.
#[derive(Default)]
pub(super) struct IterationCount {
    /// The variable that has this number; `None` if the number is stored in the context.
    left: Option<Variable>,
}

impl IterationCount {
    /// Initialises the number of remaining iterations at the start of an evaluation, if the plan has loops.
    pub(super) fn begin(&mut self, body: &mut Body<'_, '_, '_>) {
        if !body.outline.has_loops {
            return;
        }
        let limit = most(body);
        if body.outline.pieces.is_whole() {
            let variable = body.builder.declare_var(types::I64);
            body.builder.def_var(variable, limit);
            self.left = Some(variable);
        } else {
            self.set_left(body, limit);
        }
    }

    fn left(&self, body: &mut Body<'_, '_, '_>) -> ir::Value {
        match self.left {
            Some(variable) => body.builder.use_var(variable),
            None => {
                let (flags, context) = (body.state.context_flags(), body.state.environment.context);
                body.builder.ins().load(types::I64, flags, context, Context::ROUNDS_LEFT_OFFSET)
            }
        }
    }

    fn set_left(&self, body: &mut Body<'_, '_, '_>, left: ir::Value) {
        match self.left {
            Some(variable) => body.builder.def_var(variable, left),
            None => {
                let (flags, context) = (body.state.context_flags(), body.state.environment.context);
                body.builder.ins().store(flags, left, context, Context::ROUNDS_LEFT_OFFSET);
            }
        }
    }

    /// Emits a branch to the loop's next iteration or to the end of the loop, depending on the mask in the iteration's result.
    pub(super) fn end_round(
        &self,
        body: &mut Body<'_, '_, '_>,
        exits: &mut Exits,
        step: StepId,
        (round, state): (BlockId, ValueId),
        is_counted: bool,
        start: ir::Block,
    ) {
        let Some(result) = body.plan().block(round).result else { return };
        let last = body.value(result);
        let Datum::Tuple(parts) = &last.datum else { return };
        let [next, again] = &parts[..] else { return };
        let goes_on = body.builder.create_block();
        let repeats = body.builder.create_block();
        match again.presence {
            Presence::Flag(flag) => drop(body.builder.ins().brif(flag, repeats, &[], goes_on, &[])),
            Presence::Present => drop(body.builder.ins().jump(repeats, &[])),
            Presence::Missing => drop(body.builder.ins().jump(goes_on, &[])),
        }
        body.builder.seal_block(repeats);
        body.builder.seal_block(goes_on);
        body.builder.switch_to_block(repeats);
        exits.poll(body.builder, &body.state);
        if is_counted {
            self.take(body, step.index() as u32);
        }
        body.jump_with(start, state, next);
        body.builder.seal_block(start);
        body.builder.switch_to_block(goes_on);
        body.made(body.plan().step(step).out, last);
    }

    /// Emits the count of one iteration, and a return with a fault if no further iteration is allowed.
    fn take(&self, body: &mut Body<'_, '_, '_>, site: u32) {
        let left = self.left(body);
        let none = body.builder.ins().icmp_imm_s(IntCC::Equal, left, 0);
        let [failed, goes_on] = [(); 2].map(|()| body.builder.create_block());
        body.builder.set_cold_block(failed);
        body.builder.ins().brif(none, failed, &[], goes_on, &[]);
        body.builder.seal_block(failed);
        body.builder.seal_block(goes_on);
        body.builder.switch_to_block(failed);
        let (limit, zero) = (most(body), body.builder.ins().iconst(types::I64, 0));
        body.state.fail(body.builder, FaultKind::IterationLimit, [limit, zero], site);
        body.builder.switch_to_block(goes_on);
        let left = body.builder.ins().iadd_imm_s(left, -1);
        self.set_left(body, left);
    }
}

/// Loads the limit on the number of iterations from the context.
fn most(body: &mut Body<'_, '_, '_>) -> ir::Value {
    let flags = MemFlagsData::trusted().with_readonly().with_can_move();
    body.builder.ins().load(types::I64, flags, body.state.environment.context, Context::ITERATIONS_OFFSET)
}

/// Begins a loop: jumps with the first state to a new block, in which each iteration starts.
pub(super) fn begin_rounds(body: &mut Body<'_, '_, '_>, init: ValueId, state: ValueId) -> ir::Block {
    // The code generator's optimisation moves addresses and constants out of the loop.
    body.state.findings.is_improvable = true;
    let start = body.builder.create_block();
    body.append_params(start, state);
    let first = body.value(init);
    body.jump_with(start, state, &first);
    body.builder.switch_to_block(start);
    let value = body.params_of(start, state);
    body.made(state, value);
    start
}
