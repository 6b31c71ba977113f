//! Scaling of floats by powers of two, and splitting of floats into exponent and mantissa. The code generator has no
//! instructions for these operations, so they are expanded to simpler instructions, on scalars or on vectors.

use super::instructions::{choose, compare, constant, shift};
use super::state::FunctionState;
use cembra_runtime::MachineType;
use cembra_tape::{Bin, Instr, Tape, Un, scaling, splitting};
use cranelift_codegen::ir;
use cranelift_frontend::FunctionBuilder;

impl FunctionState<'_> {
    /// Emits `a * 2^power`, as defined by `Bin::Scale`.
    pub(super) fn scale(
        &mut self,
        builder: &mut FunctionBuilder<'_>,
        ty: MachineType,
        [a, power]: [ir::Value; 2],
    ) -> ir::Value {
        self.expand(builder, scaling(ty), &[a, power], 0)
    }

    /// Emits the exponent of the float `a` if `op` is `Un::Exponent`, else its mantissa.
    pub(super) fn split(
        &mut self,
        builder: &mut FunctionBuilder<'_>,
        ty: MachineType,
        op: Un,
        a: ir::Value,
    ) -> ir::Value {
        self.expand(builder, splitting(ty), &[a], usize::from(op == Un::Exponent))
    }

    /// Emits the instructions of `tape`, which expands an operation, and returns the tape's output at the index
    /// `output`.
    fn expand(
        &mut self,
        builder: &mut FunctionBuilder<'_>,
        tape: &Tape,
        inputs: &[ir::Value],
        output: usize,
    ) -> ir::Value {
        let (first, vector) = (inputs[0], builder.func.dfg.value_type(inputs[0]));
        let mut inputs = inputs.iter().copied();
        let mut made: Vec<ir::Value> = Vec::with_capacity(tape.instrs().len());
        for instr in tape.instrs() {
            let value = match *instr {
                Instr::Input(_) => inputs.next(),
                Instr::Const(ty, bits) => Some(constant(builder, ty, bits, vector.lane_count())),
                Instr::Un(op, a) => Some(self.unary(builder, op, made[a.index()])),
                Instr::Bin(op @ (Bin::Add | Bin::Sub | Bin::Mul | Bin::Or), a, b) => {
                    Some(self.binary(builder, op, made[a.index()], made[b.index()]))
                }
                Instr::Shift(op, a, by) => Some(shift(builder, op, made[a.index()], by)),
                Instr::Cmp(op, a, b) => Some(compare(builder, op, false, made[a.index()], made[b.index()])),
                Instr::Select { mask, on, off, .. } => {
                    Some(choose(builder, made[mask.index()], made[on.index()], made[off.index()]))
                }
                _ => None,
            };
            debug_assert!(value.is_some(), "an expansion must not contain the instruction `{instr:?}`");
            made.push(value.unwrap_or(first));
        }
        made[tape.outputs()[output].index()]
    }
}
