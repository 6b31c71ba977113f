//! Numbers read again: a straight line that takes more numbers out of memory than the processor has registers reads each of
//! them where it is used, most often as the second operand of an instruction. Read once, they would be put on the stack to make
//! room, and read from there: the register allocator does not know that they still are where they came from.

use crate::isa;
use crate::player::Player;
use cembra_ops::{Instr, Tape, Val};
use cranelift_codegen::ir::{self, Inst, InstBuilder, InstructionData, Opcode, Value, ValueDef};
use cranelift_codegen::isa::TargetIsa;
use rustc_hash::FxHashSet;

/// The most numbers from outside that a line keeps in registers: most of the 16 that x86-64 has.
const MOST: usize = 12;

/// True for a line with more numbers from outside than should be in registers.
pub(crate) fn is_crowded(isa: &dyn TargetIsa, tape: &Tape) -> bool {
    let mut inputs = tape.instrs().iter().filter(|instr| matches!(instr, Instr::Input(_)));
    !isa::is_quick(isa) && inputs.nth(MOST).is_some()
}

impl Player<'_, '_, '_> {
    /// True for a number that is read again wherever it is used.
    pub(crate) fn is_read_again(&self, val: Val) -> bool {
        self.is_crowded && matches!(self.tape.instrs()[val.index()], Instr::Input(_)) && self.load_of(val).is_some()
    }

    /// A number from memory that does not change, read as a type of its size; none for other numbers.
    pub(crate) fn read_as(&mut self, val: Val, ty: ir::Type) -> Option<Value> {
        let load = self.load_of(val)?;
        let InstructionData::Load { flags, arg: base, offset, .. } = self.builder.func.dfg.insts[load] else {
            return None;
        };
        self.around.replaced.push(load);
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
