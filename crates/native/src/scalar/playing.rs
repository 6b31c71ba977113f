//! A tape whose scalar code is being emitted: the results so far, and functions that return an operand as it is, in a
//! register, or as an integer.

use crate::emit::{FunctionState, clif_type, instructions};
use cembra_runtime::MachineType;
use cembra_tape::{Mask, Tape, Val};
use cranelift_codegen::ir::{self, InstBuilder, MemFlagsData, types};
use cranelift_frontend::FunctionBuilder;

/// A tape whose scalar code is being emitted: its values so far, and access to operands.
pub(super) struct ScalarEmission<'p, 'b, 'f> {
    pub(super) builder: &'p mut FunctionBuilder<'b>,
    pub(super) state: &'p mut FunctionState<'f>,
    pub(super) tape: &'p Tape,
    /// The result of each instruction on the tape; `None` if the instruction was not emitted yet, or has no result.
    pub(super) values: &'p mut Vec<Option<ir::Value>>,
}

/// Returns the vector type with lanes of type `ty`; `None` if `ty` is not a float.
pub(super) fn vector_of(ty: ir::Type) -> Option<ir::Type> {
    if ty.is_float() { ty.by(types::I8X16.bits() / ty.bits()) } else { None }
}

impl ScalarEmission<'_, '_, '_> {
    pub(super) fn val(&mut self, val: Val) -> ir::Value {
        self.value(val.index(), clif_type(self.tape.ty(val)))
    }

    pub(super) fn mask(&mut self, mask: Mask) -> ir::Value {
        self.value(mask.index(), types::I8)
    }

    /// Returns the result of an earlier instruction. It was emitted, because operands of live instructions are live.
    fn value(&mut self, at: usize, ty: ir::Type) -> ir::Value {
        match self.values[at] {
            Some(value) => value,
            None => {
                debug_assert!(false, "instruction {at} is used but was not evaluated");
                self.builder.ins().iconst(if ty.is_int() { ty } else { types::I64 }, 0)
            }
        }
    }

    /// Returns the number `val`, which the caller needs in a register. A float constant is taken from a constant vector
    /// by one instruction. The usual way, through an integer register, takes two.
    pub(super) fn in_register(&mut self, val: Val) -> ir::Value {
        match self.tape.known_bits(val).zip(vector_of(clif_type(self.tape.ty(val)))) {
            Some((bits, ty)) => {
                let vector = instructions::splat(self.builder, ty, bits);
                self.builder.ins().extractlane(vector, 0)
            }
            None => self.val(val),
        }
    }

    /// Returns the bits of the float `val` as an integer. A constant, or a value loaded from memory that does not
    /// change, needs no conversion.
    pub(super) fn integer(&mut self, val: Val) -> ir::Value {
        let int = if self.tape.ty(val) == MachineType::F32 { types::I32 } else { types::I64 };
        if let Some(bits) = self.tape.known_bits(val) {
            return self.builder.ins().iconst(int, bits.cast_signed());
        }
        if let Some(bits) = self.read_as(val, int) {
            return bits;
        }
        let value = self.val(val);
        self.builder.ins().bitcast(int, MemFlagsData::new(), value)
    }
}
