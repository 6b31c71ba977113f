//! Loads that are repeated with another type. If a float is needed as an integer, and comes from memory that does not change, the memory is loaded
//! again as an integer. This avoids a move from a float register to an integer register. The earlier load is removed if it has no other use. Without
//! the repeated loads, benchmark S3, which selects among eight inputs, takes 5 % longer.

use super::playing::ScalarEmission;
use cembra_tape::Val;
use cranelift_codegen::ir::{self, Inst, InstBuilder, InstructionData, Opcode, Value, ValueDef};
use rustc_hash::FxHashSet;

impl ScalarEmission<'_, '_, '_> {
    /// Loads the number `val` again, as another type of equal size. `None` if `val` was not loaded from memory that stays constant during the call.
    pub(crate) fn read_as(&mut self, val: Val, ty: ir::Type) -> Option<Value> {
        let load = self.load_of(val)?;
        let InstructionData::Load { flags, arg: base, offset, .. } = self.builder.func.dfg.insts[load] else {
            return None;
        };
        self.state.findings.replaced.push(load);
        let flags = self.builder.func.dfg.mem_flags[flags];
        Some(self.builder.ins().load(ty, flags, base, offset))
    }

    /// Returns the load instruction that a number comes from; `None` if the number has another source, or if the memory
    /// may change during the call.
    fn load_of(&self, val: Val) -> Option<Inst> {
        let dfg = &self.builder.func.dfg;
        let ValueDef::Result(inst, _) = dfg.value_def(self.values[val.index()]?) else { return None };
        match dfg.insts[inst] {
            InstructionData::Load { opcode: Opcode::Load, flags, .. } if dfg.mem_flags[flags].readonly() => Some(inst),
            _ => None,
        }
    }
}

/// Removes those instructions of `loads` whose results are not used. The code generator does not remove them, because
/// it assumes that a load may have an effect.
pub(crate) fn remove_unused(func: &mut ir::Function, loads: &[Inst]) {
    if loads.is_empty() {
        return;
    }
    let mut unused: FxHashSet<Value> = loads.iter().map(|load| func.dfg.first_result(*load)).collect();
    for block in func.layout.blocks() {
        for inst in func.layout.block_insts(block) {
            func.dfg.inst_values(inst).for_each(|value| {
                unused.remove(&value);
            });
        }
    }
    for load in loads {
        if unused.remove(&func.dfg.first_result(*load)) {
            func.layout.remove_inst(*load);
        }
    }
}
