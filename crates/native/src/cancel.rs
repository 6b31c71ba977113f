//! Where generated code looks whether it was cancelled: before it calls a kernel, which may run long, and wherever it would
//! go round again. Starting is not its concern: who calls it looks before. Comparisons of strings cannot
//! fail, so the code looks before it writes outputs whether there was work left for all of them.

use crate::player::Surroundings;
use cembra_runtime::{Context, FaultKind, STATUS_FAULT};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self, InstBuilder, MemFlagsData, types};
use cranelift_frontend::FunctionBuilder;

/// The one block of a function that leaves it cancelled, made when it is first needed.
#[derive(Default)]
pub(crate) struct Cancelled(Option<ir::Block>);

impl Cancelled {
    /// Leaves the function here if the evaluation was cancelled.
    pub(crate) fn poll(&mut self, builder: &mut FunctionBuilder<'_>, around: &Surroundings<'_>) {
        let fixed = MemFlagsData::trusted().with_readonly().with_can_move();
        let flag = builder.ins().load(types::I64, fixed, around.context, Context::CANCEL_OFFSET);
        // Atomic: a plain load in a loop could be taken out of it.
        let raised = builder.ins().atomic_load(types::I8, MemFlagsData::trusted(), flag);
        self.leave_if(builder, raised);
    }

    fn leave_if(&mut self, builder: &mut FunctionBuilder<'_>, leaves: ir::Value) {
        let leave = *self.0.get_or_insert_with(|| builder.create_block());
        let goes_on = builder.create_block();
        builder.ins().brif(leaves, leave, &[], goes_on, &[]);
        builder.seal_block(goes_on);
        builder.switch_to_block(goes_on);
    }

    /// Leaves the function here if a comparison of strings found no work left. What the evaluation comes to then is for its
    /// context to say.
    pub(crate) fn check_work(&mut self, builder: &mut FunctionBuilder<'_>, around: &Surroundings<'_>) {
        let flags = MemFlagsData::trusted().with_alias_region(Some(around.context_region));
        let left = builder.ins().load(types::I64, flags, around.context, Context::WORK_LEFT_OFFSET);
        let none = builder.ins().icmp_imm_s(IntCC::SignedLessThan, left, 0);
        self.leave_if(builder, none);
    }

    /// Fills the block. Nothing may be polled after that.
    pub(crate) fn finish(self, builder: &mut FunctionBuilder<'_>, around: &Surroundings<'_>) {
        let Some(block) = self.0 else { return };
        builder.seal_block(block);
        builder.set_cold_block(block);
        builder.switch_to_block(block);
        let flags = MemFlagsData::trusted().with_alias_region(Some(around.context_region));
        let kind = builder.ins().iconst(types::I32, i64::from(FaultKind::Cancelled as u32));
        builder.ins().store(flags, kind, around.context, Context::FAULT_KIND_OFFSET);
        let status = builder.ins().iconst(types::I32, i64::from(STATUS_FAULT));
        builder.ins().return_(&[status]);
    }
}
