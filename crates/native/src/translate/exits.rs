//! The blocks through which a function is left early: after cancellation, and after the failure of a called function of
//! the plan. Each block is created at its first use, and only once.
//!
//! Generated code polls for cancellation before it calls a kernel, which may run long, and before each further iteration of a
//! loop. The code does not poll at its start; the caller may poll there. Comparisons of strings cannot fail, but they use up a
//! work budget, so the code checks before it writes outputs that the budget sufficed.

use crate::emit::FunctionState;
use cembra_runtime::{Context, FaultKind, STATUS_FAULT};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self, InstBuilder, MemFlagsData, types};
use cranelift_frontend::FunctionBuilder;

/// The blocks through which a function is left early, for example after cancellation. Each block is created at its first use.
#[derive(Default)]
pub(super) struct Exits {
    cancelled: Option<ir::Block>,
    failed: Option<ir::Block>,
}

impl Exits {
    /// Emits a check that leaves the function if the evaluation was cancelled.
    pub(super) fn poll(&mut self, builder: &mut FunctionBuilder<'_>, state: &FunctionState<'_>) {
        let fixed = MemFlagsData::trusted().with_readonly().with_can_move();
        let flag = builder.ins().load(types::I64, fixed, state.environment.context, Context::CANCEL_OFFSET);
        // The load is atomic, because a plain load could be moved out of a loop.
        let raised = builder.ins().atomic_load(types::I8, MemFlagsData::trusted(), flag);
        leave_if(builder, raised, &mut self.cancelled);
    }

    /// Emits a check that leaves the function if the work budget did not suffice for a comparison of strings. After the evaluation, the runtime finds
    /// the exhausted budget in the context and reports it as a fault.
    pub(super) fn check_work(&mut self, builder: &mut FunctionBuilder<'_>, state: &FunctionState<'_>) {
        let left =
            builder.ins().load(types::I64, state.context_flags(), state.environment.context, Context::WORK_LEFT_OFFSET);
        let none = builder.ins().icmp_imm_s(IntCC::SignedLessThan, left, 0);
        leave_if(builder, none, &mut self.cancelled);
    }

    /// Emits a check that leaves the function if `status`, returned by a called function of the plan, is a failure.
    pub(super) fn leave_on_status(&mut self, builder: &mut FunctionBuilder<'_>, status: ir::Value) {
        leave_if(builder, status, &mut self.failed);
    }

    /// Fills the exit blocks with code. Afterwards no new exits are possible.
    pub(super) fn finish(self, builder: &mut FunctionBuilder<'_>, state: &FunctionState<'_>) {
        for (block, is_cancelled) in [(self.cancelled, true), (self.failed, false)] {
            let Some(block) = block else { continue };
            builder.seal_block(block);
            builder.set_cold_block(block);
            builder.switch_to_block(block);
            if is_cancelled {
                let kind = builder.ins().iconst(types::I32, i64::from(FaultKind::Cancelled as u32));
                let context = state.environment.context;
                builder.ins().store(state.context_flags(), kind, context, Context::FAULT_KIND_OFFSET);
            }
            let status = builder.ins().iconst(types::I32, i64::from(STATUS_FAULT));
            builder.ins().return_(&[status]);
        }
    }
}

/// Emits a branch to `block` if `condition` holds. Creates the block at its first use.
fn leave_if(builder: &mut FunctionBuilder<'_>, condition: ir::Value, block: &mut Option<ir::Block>) {
    let leave = *block.get_or_insert_with(|| builder.create_block());
    let goes_on = builder.create_block();
    builder.ins().brif(condition, leave, &[], goes_on, &[]);
    builder.seal_block(goes_on);
    builder.switch_to_block(goes_on);
}
