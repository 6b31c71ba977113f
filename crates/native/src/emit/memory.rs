//! Values of a plan as values of the code generator: loading them, storing them, and splitting them into the machine values
//! that are passed from one basic block to another.

use cembra_record::{Datum, MachineValue, Presence, datum_types};
use cembra_runtime::{InFrame, MachineType, QType, Scalar};
use cranelift_codegen::ir::{self, AliasRegion, InstBuilder, MemFlagsData, types};
use cranelift_frontend::FunctionBuilder;

/// A value of the plan, whose presence and payload are values of the code generator.
pub(crate) type EmittedValue = MachineValue<ir::Value>;

/// Returns the code generator's type for a machine type.
pub(crate) const fn clif_type(ty: MachineType) -> ir::Type {
    match ty {
        MachineType::I32 => types::I32,
        MachineType::I64 => types::I64,
        MachineType::F32 => types::F32,
        MachineType::F64 => types::F64,
        MachineType::Flag => types::I8,
    }
}

/// Returns the code generator's type for numbers of type `scalar`; `None` for booleans and for types without a register.
pub(crate) fn number_type(scalar: Scalar) -> Option<ir::Type> {
    scalar.machine_type().filter(|ty| *ty != MachineType::Flag).map(clif_type)
}

pub(crate) fn zero(builder: &mut FunctionBuilder<'_>, ty: ir::Type) -> ir::Value {
    match ty {
        types::F32 => builder.ins().f32const(0.0),
        types::F64 => builder.ins().f64const(0.0),
        other => builder.ins().iconst(other, 0),
    }
}

/// Splits `held`, a value of type `qtype`, into the machine values that a jump passes as block parameters, and appends them to `out`.
pub(crate) fn spread(builder: &mut FunctionBuilder<'_>, qtype: &QType, held: &EmittedValue, out: &mut Vec<ir::Value>) {
    match qtype.in_frame() {
        InFrame::Scalar(scalar) => spread_datum(builder, scalar, &held.datum, out),
        InFrame::Optional(scalar) => {
            let flag = presence_flag(builder, held.presence);
            out.push(flag);
            spread_datum(builder, scalar, &held.datum, out);
        }
        InFrame::Tuple(fields) => {
            if let Datum::Tuple(values) = &held.datum {
                for (field, value) in fields.iter().zip(values) {
                    spread(builder, field, value, out);
                }
            }
        }
        InFrame::Nothing => {}
    }
}

fn spread_datum(builder: &mut FunctionBuilder<'_>, scalar: Scalar, datum: &Datum<ir::Value>, out: &mut Vec<ir::Value>) {
    match datum {
        Datum::Flag(value) | Datum::Num(value) => out.push(*value),
        Datum::Text(ptr, len) => out.extend([*ptr, *len]),
        Datum::Tuple(_) => {}
        Datum::Nothing => {
            let mut wanted = Vec::new();
            datum_types(scalar, &mut wanted);
            out.extend(wanted.into_iter().map(|ty| zero(builder, clif_type(ty))));
        }
    }
}

/// Emits a value's presence as a byte: 1 if the value is present, else 0.
pub(crate) fn presence_flag(builder: &mut FunctionBuilder<'_>, presence: Presence<ir::Value>) -> ir::Value {
    match presence {
        Presence::Present => builder.ins().iconst(types::I8, 1),
        Presence::Missing => builder.ins().iconst(types::I8, 0),
        Presence::Flag(flag) => flag,
    }
}

/// A memory location: an address, an offset in bytes, and the properties of loads and stores there.
#[derive(Clone, Copy)]
pub(crate) struct Memory {
    pub(crate) base: ir::Value,
    pub(crate) offset: u32,
    pub(crate) region: AliasRegion,
    /// True if the memory at this location is not written during the call, so a load may be moved to the function's start.
    pub(crate) constant: bool,
    /// True if the address is aligned for the value that is accessed.
    pub(crate) aligned: bool,
}

impl Memory {
    /// Returns this location with `constant` cleared, because a kernel has just written the location.
    pub(crate) fn written_during_the_call(self) -> Memory {
        Memory { constant: false, ..self }
    }

    fn at(self, inside: u32) -> Memory {
        Memory { offset: self.offset + inside, ..self }
    }

    fn flags(self) -> MemFlagsData {
        let flags = if self.aligned { MemFlagsData::trusted() } else { MemFlagsData::new().with_notrap() };
        flags.with_alias_region(Some(self.region))
    }

    fn load_flags(self) -> MemFlagsData {
        if self.constant { self.flags().with_readonly().with_can_move() } else { self.flags() }
    }

    pub(crate) fn load(self, builder: &mut FunctionBuilder<'_>, ty: ir::Type) -> ir::Value {
        builder.ins().load(ty, self.load_flags(), self.base, self.offset as i32)
    }

    /// Loads the byte at this location, zero-extended to 32 bits.
    pub(crate) fn load_byte(self, builder: &mut FunctionBuilder<'_>) -> ir::Value {
        builder.ins().uload8(types::I32, self.load_flags(), self.base, self.offset as i32)
    }

    pub(crate) fn store(self, builder: &mut FunctionBuilder<'_>, value: ir::Value) {
        builder.ins().store(self.flags(), value, self.base, self.offset as i32);
    }
}

/// Loads a value of type `qtype` from memory, in the memory layout of that type.
pub(crate) fn load(builder: &mut FunctionBuilder<'_>, qtype: &QType, from: Memory) -> EmittedValue {
    match qtype.in_frame() {
        InFrame::Scalar(scalar) => MachineValue::present(load_datum(builder, scalar, from)),
        InFrame::Optional(scalar) => {
            let presence = Presence::Flag(from.load(builder, types::I8));
            let value = from.at(qtype.optional_value_offset().unwrap_or(0));
            let mut datum = load_datum(builder, scalar, value);
            if let Datum::Flag(flag) = &mut datum {
                // The byte of a missing value is arbitrary, but flags must be 0 or 1.
                *flag = builder.ins().band_imm_s(*flag, 1);
            }
            MachineValue { presence, datum }
        }
        InFrame::Tuple(fields) => {
            let values = fields
                .iter()
                .zip(qtype.field_offsets())
                .map(|(field, offset)| load(builder, field, from.at(offset)))
                .collect();
            MachineValue::present(Datum::Tuple(values))
        }
        InFrame::Nothing => MachineValue::present(Datum::Nothing),
    }
}

/// Loads the payload of a present value of type `scalar`.
pub(crate) fn load_datum(builder: &mut FunctionBuilder<'_>, scalar: Scalar, from: Memory) -> Datum<ir::Value> {
    match scalar.machine_type() {
        Some(MachineType::Flag) => Datum::Flag(from.load(builder, types::I8)),
        Some(ty) => Datum::Num(from.load(builder, clif_type(ty))),
        None if scalar.is_string() => Datum::Text(from.load(builder, types::I64), from.at(8).load(builder, types::I64)),
        None => Datum::Nothing,
    }
}

/// Emits the store of `held`, a value of type `qtype`, to memory, in the memory layout of that type.
pub(crate) fn store(builder: &mut FunctionBuilder<'_>, qtype: &QType, held: &EmittedValue, to: Memory) {
    match qtype.in_frame() {
        InFrame::Scalar(scalar) => store_datum(builder, scalar, &held.datum, to),
        InFrame::Optional(scalar) => {
            let flag = presence_flag(builder, held.presence);
            to.store(builder, flag);
            if scalar != Scalar::Unit {
                let value = to.at(qtype.optional_value_offset().unwrap_or(0));
                store_datum(builder, scalar, &held.datum, value);
            }
        }
        InFrame::Tuple(fields) => {
            if let Datum::Tuple(values) = &held.datum {
                for ((field, value), offset) in fields.iter().zip(values).zip(qtype.field_offsets()) {
                    store(builder, field, value, to.at(offset));
                }
            }
        }
        InFrame::Nothing => {}
    }
}

/// Copies a value of type `qtype` field by field, so that few fields are in registers at once. The time of the register
/// allocator is quadratic in the number of values that are live at the same time.
pub(crate) fn copy(builder: &mut FunctionBuilder<'_>, qtype: &QType, from: Memory, to: Memory) {
    // The recursion is bounded by the limit on the nesting of tuples.
    if let InFrame::Tuple(fields) = qtype.in_frame() {
        for (field, offset) in fields.iter().zip(qtype.field_offsets()) {
            copy(builder, field, from.at(offset), to.at(offset));
        }
        return;
    }
    let held = load(builder, qtype, from);
    store(builder, qtype, &held, to);
}

/// Stores the payload of a present value of type `scalar`.
pub(crate) fn store_datum(builder: &mut FunctionBuilder<'_>, scalar: Scalar, datum: &Datum<ir::Value>, to: Memory) {
    match datum {
        Datum::Flag(value) | Datum::Num(value) => to.store(builder, *value),
        Datum::Text(ptr, len) => {
            to.store(builder, *ptr);
            to.at(8).store(builder, *len);
        }
        Datum::Nothing if scalar == Scalar::Unit => {
            let one = builder.ins().iconst(types::I8, 1);
            to.store(builder, one);
        }
        // The datum of a missing value is not read.
        Datum::Nothing | Datum::Tuple(_) => {}
    }
}
