//! Values that are passed from one block of a function to another, as block parameters.

use super::body::Body;
use crate::emit::{EmittedValue, clif_type, memory};
use cembra_plan::ValueId;
use cembra_record::{gather, part_types};
use cranelift_codegen::ir::{self, BlockArg, InstBuilder};

impl Body<'_, '_, '_> {
    /// Appends parameters to `block`, in which the block receives `value`.
    pub(super) fn append_params(&mut self, block: ir::Block, value: ValueId) {
        let mut params = Vec::new();
        part_types(&self.plan().value(value).qtype, &mut params);
        for ty in params {
            self.builder.append_block_param(block, clif_type(ty));
        }
    }

    /// Returns the parameters of `block` as the machine values of `value`, which the block receives in them.
    pub(super) fn params_of(&mut self, block: ir::Block, value: ValueId) -> EmittedValue {
        let params = self.builder.block_params(block);
        gather(&self.plan().value(value).qtype, &mut params.iter().copied())
    }

    /// Emits a jump to `block`, which receives `value` in its parameters. The arguments of the jump are `held`, the machine values of `value`.
    pub(super) fn jump_with(&mut self, block: ir::Block, value: ValueId, held: &EmittedValue) {
        let mut args = Vec::new();
        memory::spread(self.builder, &self.outline.plan.value(value).qtype, held, &mut args);
        let args: Vec<BlockArg> = args.into_iter().map(BlockArg::from).collect();
        self.builder.ins().jump(block, &args);
    }
}
