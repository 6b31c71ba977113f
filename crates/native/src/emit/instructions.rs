//! Emission of single instructions of a tape (a straight-line program), given the machine values of the operands.
//! Scalars and vectors use the same builder methods, chosen by the types of the operands, so the scalar and the vector
//! code generation share this module. Vector types, and operations that must be done lane by lane, are in `lanes`.

use super::memory::clif_type;
use super::state::FunctionState;
use cembra_runtime::{MachineType, RuntimeFn};
use cembra_tape::{Bin, Cmp, Shift, Tape, Un, Val};
use cranelift_codegen::ir::condcodes::{CondCode, FloatCC, IntCC};
use cranelift_codegen::ir::{self, InstBuilder, MemFlagsData, types};
use cranelift_frontend::FunctionBuilder;

/// Returns an operation and operands that give the same result as `op` on `a` and `b` and suit the processor better.
/// For example, `x * 2.0` becomes `x + x`.
pub(crate) fn suited(tape: &Tape, op: Bin, a: Val, b: Val) -> (Bin, Val, Val) {
    let (two, float) = match tape.ty(a) {
        MachineType::F32 => (u64::from(2_f32.to_bits()), true),
        MachineType::F64 => (2_f64.to_bits(), true),
        _ => (2, false),
    };
    // A float constant is loaded from memory, and only the second operand of an instruction can be in memory.
    let swaps = float && matches!(op, Bin::Add | Bin::Mul) && tape.known_bits(a).is_some();
    let (a, b) = if swaps { (b, a) } else { (a, b) };
    if float && op == Bin::Mul && tape.known_bits(b) == Some(two) { (Bin::Add, a, a) } else { (op, a, b) }
}

/// Emits a comparison, or its negation if `opposite` is set. For scalars the result is a byte that is 0 or 1; for vectors,
/// each lane is all zeros or all ones.
pub(crate) fn compare(
    builder: &mut FunctionBuilder<'_>,
    op: Cmp,
    opposite: bool,
    a: ir::Value,
    b: ir::Value,
) -> ir::Value {
    if builder.func.dfg.value_type(a).lane_type().is_float() {
        let cc = match op {
            Cmp::Eq => FloatCC::Equal,
            Cmp::Ne => FloatCC::NotEqual,
            Cmp::Lt => FloatCC::LessThan,
            Cmp::Le => FloatCC::LessThanOrEqual,
            Cmp::Gt => FloatCC::GreaterThan,
            Cmp::Ge => FloatCC::GreaterThanOrEqual,
        };
        return builder.ins().fcmp(if opposite { cc.complement() } else { cc }, a, b);
    }
    let cc = match op {
        Cmp::Eq => IntCC::Equal,
        Cmp::Ne => IntCC::NotEqual,
        Cmp::Lt => IntCC::SignedLessThan,
        Cmp::Le => IntCC::SignedLessThanOrEqual,
        Cmp::Gt => IntCC::SignedGreaterThan,
        Cmp::Ge => IntCC::SignedGreaterThanOrEqual,
    };
    builder.ins().icmp(if opposite { cc.complement() } else { cc }, a, b)
}

/// Emits a selection: the result is `on` where `holds`, the result of a comparison, is true, else `off`.
pub(crate) fn choose(builder: &mut FunctionBuilder<'_>, holds: ir::Value, on: ir::Value, off: ir::Value) -> ir::Value {
    let ty = builder.func.dfg.value_type(on);
    if !ty.is_vector() {
        return builder.ins().select(holds, on, off);
    }
    let holds = if ty.lane_type().is_float() { builder.ins().bitcast(ty, MemFlagsData::new(), holds) } else { holds };
    builder.ins().bitselect(holds, on, off)
}

/// Emits a shift of `a` by `by` bits.
pub(crate) fn shift(builder: &mut FunctionBuilder<'_>, op: Shift, a: ir::Value, by: u8) -> ir::Value {
    let by = builder.ins().iconst(types::I32, i64::from(by));
    match op {
        Shift::Left => builder.ins().ishl(a, by),
        Shift::Right => builder.ins().ushr(a, by),
    }
}

/// Emits a constant with the given bits: a scalar, or a vector of `lanes` equal scalars.
pub(crate) fn constant(builder: &mut FunctionBuilder<'_>, ty: MachineType, bits: u64, lanes: u32) -> ir::Value {
    if let Some(vector) = clif_type(ty).by(lanes).filter(|ty| ty.is_vector()) {
        return splat(builder, vector, bits);
    }
    match ty {
        MachineType::F32 => builder.ins().f32const(ir::immediates::Ieee32::with_bits(bits as u32)),
        MachineType::F64 => builder.ins().f64const(ir::immediates::Ieee64::with_bits(bits)),
        MachineType::I32 => builder.ins().iconst(types::I32, i64::from(bits as u32)),
        MachineType::I64 => builder.ins().iconst(types::I64, bits.cast_signed()),
        MachineType::Flag => builder.ins().iconst(types::I8, i64::from(bits != 0)),
    }
}

/// Emits a vector constant of type `ty` whose lanes all have the given bits.
pub(crate) fn splat(builder: &mut FunctionBuilder<'_>, ty: ir::Type, bits: u64) -> ir::Value {
    let lane = &bits.to_le_bytes()[..ty.lane_type().bytes() as usize];
    let all = builder.func.dfg.constants.insert(lane.repeat(ty.lane_count() as usize).into());
    builder.ins().vconst(ty, all)
}

/// Returns the machine type of the float type `ty`, or of the lanes if `ty` is a vector type.
fn float_type(ty: ir::Type) -> MachineType {
    if ty.lane_type() == types::F32 { MachineType::F32 } else { MachineType::F64 }
}

impl FunctionState<'_> {
    /// Emits the operation `op` on `a`, a scalar. `a` may be a vector if `op` is not a conversion and the processor has a
    /// vector instruction for `op`.
    pub(crate) fn unary(&mut self, builder: &mut FunctionBuilder<'_>, op: Un, a: ir::Value) -> ir::Value {
        let from = builder.func.dfg.value_type(a);
        let (float, narrow) = (from.lane_type().is_float(), from.lane_type() == types::F32);
        let round = self.environment.isa.has_round();
        let pick = |f32, f64| if narrow { f32 } else { f64 };
        let ins = builder.ins();
        match op {
            Un::Neg if float => ins.fneg(a),
            Un::Neg => ins.ineg(a),
            Un::Abs if float => ins.fabs(a),
            Un::Abs => ins.iabs(a),
            Un::Sqrt => ins.sqrt(a),
            Un::Floor if round => ins.floor(a),
            Un::Ceil if round => ins.ceil(a),
            Un::Trunc if round => ins.trunc(a),
            Un::Floor => self.call(builder, pick(RuntimeFn::FloorF32, RuntimeFn::FloorF64), &[a]),
            Un::Ceil => self.call(builder, pick(RuntimeFn::CeilF32, RuntimeFn::CeilF64), &[a]),
            Un::Trunc => self.call(builder, pick(RuntimeFn::TruncF32, RuntimeFn::TruncF64), &[a]),
            Un::Mantissa | Un::Exponent => self.split(builder, float_type(from), op, a),
            Un::Bitcast(to) => {
                let to = clif_type(to).by(from.lane_count()).unwrap_or(from);
                ins.bitcast(to, MemFlagsData::new(), a)
            }
            Un::Convert(to) => {
                let ty = clif_type(to);
                match (float, ty.is_float()) {
                    _ if from == ty => a,
                    (false, true) => ins.fcvt_from_sint(ty, a),
                    (true, false) => ins.fcvt_to_sint_sat(ty, a),
                    (true, true) if narrow => ins.fpromote(ty, a),
                    (true, true) => ins.fdemote(ty, a),
                    (false, false) if from == types::I32 => ins.sextend(ty, a),
                    (false, false) => ins.ireduce(ty, a),
                }
            }
        }
    }

    /// Emits an operation on two scalars, or on two vectors if the processor has a vector instruction for it.
    pub(crate) fn binary(
        &mut self,
        builder: &mut FunctionBuilder<'_>,
        op: Bin,
        a: ir::Value,
        b: ir::Value,
    ) -> ir::Value {
        let ty = builder.func.dfg.value_type(a);
        let float = ty.lane_type().is_float();
        let ins = builder.ins();
        match op {
            Bin::Add if float => ins.fadd(a, b),
            Bin::Add => ins.iadd(a, b),
            Bin::Sub if float => ins.fsub(a, b),
            Bin::Sub => ins.isub(a, b),
            Bin::Mul if float => ins.fmul(a, b),
            Bin::Mul => ins.imul(a, b),
            Bin::Div if float => ins.fdiv(a, b),
            Bin::Div => ins.sdiv(a, b),
            Bin::And => ins.band(a, b),
            Bin::Or => ins.bor(a, b),
            Bin::Xor => ins.bxor(a, b),
            // The comparisons of both operations are "less than", because only then the selection becomes a single
            // instruction.
            Bin::FMin => {
                let less = ins.fcmp(FloatCC::LessThan, a, b);
                choose(builder, less, a, b)
            }
            Bin::FMax => {
                let less = ins.fcmp(FloatCC::LessThan, b, a);
                choose(builder, less, a, b)
            }
            Bin::Copysign if ty.is_vector() => {
                let sign = splat(builder, ty, 1 << (ty.lane_bits() - 1));
                builder.ins().bitselect(sign, b, a)
            }
            Bin::Copysign => ins.fcopysign(a, b),
            Bin::Scale => self.scale(builder, float_type(ty), [a, b]),
        }
    }

    /// Emits `a * b + c`, rounded once, on scalars, or on vectors if the processor has a vector instruction for it.
    pub(crate) fn fma(&mut self, builder: &mut FunctionBuilder<'_>, [a, b, c]: [ir::Value; 3]) -> ir::Value {
        if self.environment.isa.has_native_fma() {
            return builder.ins().fma(a, b, c);
        }
        let narrow = builder.func.dfg.value_type(a) == types::F32;
        self.call(builder, if narrow { RuntimeFn::FmaF32 } else { RuntimeFn::FmaF64 }, &[a, b, c])
    }
}
