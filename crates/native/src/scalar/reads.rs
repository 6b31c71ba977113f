//! Loads that are repeated as another type: where a float is wanted as an integer and comes from memory that does not change, it
//! is read as one, without a move from one kind of register to the other. What was loaded before is removed if nobody uses it.
//! S3, which selects among eight inputs, takes 5 % longer without.

use super::playing::Playing;
use cembra_tape::Val;
use cranelift_codegen::ir::{self, Inst, InstBuilder, InstructionData, Opcode, Value, ValueDef};
use rustc_hash::FxHashSet;

impl Playing<'_, '_, '_> {
    /// A number from memory that does not change, read as a type of its size; none for other numbers.
    pub(crate) fn read_as(&mut self, val: Val, ty: ir::Type) -> Option<Value> {
        let load = self.load_of(val)?;
        let InstructionData::Load { flags, arg: base, offset, .. } = self.builder.func.dfg.insts[load] else {
            return None;
        };
        self.state.findings.replaced.push(load);
        let flags = self.builder.func.dfg.mem_flags[flags];
        Some(self.builder.ins().load(ty, flags, base, offset))
    }

    /// The load that a number comes from, if it would find the same later.
    fn load_of(&self, val: Val) -> Option<Inst> {
        let dfg = &self.builder.func.dfg;
        let ValueDef::Result(inst, _) = dfg.value_def(self.values[val.index()]?) else { return None };
        match dfg.insts[inst] {
            InstructionData::Load { opcode: Opcode::Load, flags, .. } if dfg.mem_flags[flags].readonly() => Some(inst),
            _ => None,
        }
    }
}

/// Removes loads whose results nobody uses. The code generator takes every load for one that may have an effect.
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
