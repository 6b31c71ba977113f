//! Calls of other pieces: on the same memory, and left at once if they fail.

use super::Lowering;
use cembra_runtime::STATUS_FAULT;
use cranelift_codegen::ir::{self, ExtFuncData, ExternalName, InstBuilder, UserExternalName, types};
use cranelift_frontend::FunctionBuilder;

/// The one block of a function that leaves it when a piece that it called failed, made when it is first needed.
#[derive(Default)]
pub(super) struct Failed(Option<ir::Block>);

impl Failed {
    /// Fills the block. Nothing may be called after that.
    pub(super) fn finish(self, builder: &mut FunctionBuilder<'_>) {
        let Some(block) = self.0 else { return };
        builder.seal_block(block);
        builder.set_cold_block(block);
        builder.switch_to_block(block);
        let status = builder.ins().iconst(types::I32, i64::from(STATUS_FAULT));
        builder.ins().return_(&[status]);
    }
}

impl Lowering<'_, '_, '_> {
    /// Calls a piece by its number, which whoever puts the functions together replaces by the way there.
    pub(super) fn call_piece(&mut self, number: usize) {
        let own = &self.builder.func.signature;
        let signature = match self.piece_signature {
            Some(known) => known,
            None => {
                let own = own.clone();
                *self.piece_signature.insert(self.builder.import_signature(own))
            }
        };
        let name = UserExternalName::new(0, number as u32);
        let name = ExternalName::user(self.builder.func.declare_imported_user_function(name));
        let callee = ExtFuncData { name, signature, colocated: true, patchable: false };
        let callee = self.builder.import_function(callee);
        let [input, output, frame] = self.params;
        let call = self.builder.ins().call(callee, &[input, output, frame, self.around.context]);
        let status = self.builder.inst_results(call)[0];
        let leave = *self.failed.0.get_or_insert_with(|| self.builder.create_block());
        let goes_on = self.builder.create_block();
        self.builder.ins().brif(status, leave, &[], goes_on, &[]);
        self.builder.seal_block(goes_on);
        self.builder.switch_to_block(goes_on);
    }
}
