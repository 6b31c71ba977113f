//! Values of a plan as values of the code generator: a presence and a datum, spread over as many machine values as the
//! type needs. Here they are loaded, stored, and taken through the join of two branches.

use cembra_runtime::{MachineType, QType, Scalar};
use cranelift_codegen::ir::{self, AliasRegion, InstBuilder, MemFlagsData, types};
use cranelift_frontend::FunctionBuilder;

/// Whether a value is there.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Presence {
    Present,
    Missing,
    /// A byte, 0 or 1.
    Flag(ir::Value),
}

/// A value's machine values.
#[derive(Clone, Debug)]
pub(crate) enum Datum {
    /// None needed: a unit, or the value of what is missing.
    Nothing,
    /// A byte, 0 or 1.
    Flag(ir::Value),
    Num(ir::Value),
    Text(ir::Value, ir::Value),
    Tuple(Vec<Cell>),
}

/// A value of the plan.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    pub(crate) presence: Presence,
    pub(crate) datum: Datum,
}

/// The code generator's type of a machine type.
pub(crate) const fn clif_type(ty: MachineType) -> ir::Type {
    match ty {
        MachineType::I32 => types::I32,
        MachineType::I64 => types::I64,
        MachineType::F32 => types::F32,
        MachineType::F64 => types::F64,
        MachineType::Flag => types::I8,
    }
}

/// The code generator's type of a number.
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

/// The machine types of a value that crosses a join, in the order of `spread`.
pub(crate) fn join_types(qtype: &QType, out: &mut Vec<ir::Type>) {
    // Tuples nest only as deep as the text that spelled their type.
    match qtype {
        QType::Scalar(scalar) => datum_types(*scalar, out),
        QType::Optional(scalar) => {
            out.push(types::I8);
            datum_types(*scalar, out);
        }
        QType::Tuple(fields) => fields.iter().for_each(|field| join_types(field, out)),
        QType::Shape(_) | QType::Meta | QType::Nothing | QType::Unspecified | QType::Function | QType::Sequence(_) => {}
    }
}

fn datum_types(scalar: Scalar, out: &mut Vec<ir::Type>) {
    match scalar.machine_type() {
        Some(ty) => out.push(clif_type(ty)),
        None if scalar.is_string() => out.extend([types::I64, types::I64]),
        None => {}
    }
}

/// A value as the machine values that cross a join.
pub(crate) fn spread(builder: &mut FunctionBuilder<'_>, qtype: &QType, cell: &Cell, out: &mut Vec<ir::Value>) {
    match qtype {
        QType::Scalar(scalar) => spread_datum(builder, *scalar, &cell.datum, out),
        QType::Optional(scalar) => {
            let flag = presence_flag(builder, cell.presence);
            out.push(flag);
            spread_datum(builder, *scalar, &cell.datum, out);
        }
        QType::Tuple(fields) => {
            if let Datum::Tuple(cells) = &cell.datum {
                for (field, cell) in fields.iter().zip(cells) {
                    spread(builder, field, cell, out);
                }
            }
        }
        QType::Shape(_) | QType::Meta | QType::Nothing | QType::Unspecified | QType::Function | QType::Sequence(_) => {}
    }
}

fn spread_datum(builder: &mut FunctionBuilder<'_>, scalar: Scalar, datum: &Datum, out: &mut Vec<ir::Value>) {
    match datum {
        Datum::Flag(value) | Datum::Num(value) => out.push(*value),
        Datum::Text(ptr, len) => out.extend([*ptr, *len]),
        Datum::Tuple(_) => {}
        Datum::Nothing => {
            let mut wanted = Vec::new();
            datum_types(scalar, &mut wanted);
            out.extend(wanted.into_iter().map(|ty| zero(builder, ty)));
        }
    }
}

/// The value that these machine values spread.
pub(crate) fn gather(qtype: &QType, values: &mut impl Iterator<Item = ir::Value>) -> Cell {
    match qtype {
        QType::Scalar(scalar) => Cell { presence: Presence::Present, datum: gather_datum(*scalar, values) },
        QType::Optional(scalar) => {
            let presence = values.next().map_or(Presence::Missing, Presence::Flag);
            Cell { presence, datum: gather_datum(*scalar, values) }
        }
        QType::Tuple(fields) => {
            let cells = fields.iter().map(|field| gather(field, values)).collect();
            Cell { presence: Presence::Present, datum: Datum::Tuple(cells) }
        }
        QType::Shape(_) | QType::Meta | QType::Nothing | QType::Unspecified | QType::Function | QType::Sequence(_) => {
            Cell { presence: Presence::Present, datum: Datum::Nothing }
        }
    }
}

fn gather_datum(scalar: Scalar, values: &mut impl Iterator<Item = ir::Value>) -> Datum {
    match scalar {
        Scalar::Unit => Datum::Nothing,
        Scalar::Boolean => values.next().map_or(Datum::Nothing, Datum::Flag),
        Scalar::Text | Scalar::Bytes => match (values.next(), values.next()) {
            (Some(ptr), Some(len)) => Datum::Text(ptr, len),
            _ => Datum::Nothing,
        },
        _ => values.next().map_or(Datum::Nothing, Datum::Num),
    }
}

/// The presence as a byte.
pub(crate) fn presence_flag(builder: &mut FunctionBuilder<'_>, presence: Presence) -> ir::Value {
    match presence {
        Presence::Present => builder.ins().iconst(types::I8, 1),
        Presence::Missing => builder.ins().iconst(types::I8, 0),
        Presence::Flag(flag) => flag,
    }
}

/// A place in memory: an address, the bytes from there, and how it may be touched.
#[derive(Clone, Copy)]
pub(crate) struct Memory {
    pub(crate) base: ir::Value,
    pub(crate) offset: u32,
    pub(crate) region: AliasRegion,
    /// True if nobody writes it during the call, and it can be read from the first instruction on.
    pub(crate) constant: bool,
}

impl Memory {
    /// The same place, with a value that a kernel has just put there.
    pub(crate) fn written_during_the_call(self) -> Memory {
        Memory { constant: false, ..self }
    }

    fn at(self, inside: u32) -> Memory {
        Memory { offset: self.offset + inside, ..self }
    }

    fn flags(self) -> MemFlagsData {
        MemFlagsData::trusted().with_alias_region(Some(self.region))
    }

    fn load(self, builder: &mut FunctionBuilder<'_>, ty: ir::Type) -> ir::Value {
        let flags = if self.constant { self.flags().with_readonly().with_can_move() } else { self.flags() };
        builder.ins().load(ty, flags, self.base, self.offset as i32)
    }

    fn store(self, builder: &mut FunctionBuilder<'_>, value: ir::Value) {
        builder.ins().store(self.flags(), value, self.base, self.offset as i32);
    }
}

/// Loads a value in the layout of its type.
pub(crate) fn load(builder: &mut FunctionBuilder<'_>, qtype: &QType, from: Memory) -> Cell {
    match qtype {
        QType::Scalar(scalar) => Cell { presence: Presence::Present, datum: load_datum(builder, *scalar, from) },
        QType::Optional(scalar) => {
            let presence = Presence::Flag(from.load(builder, types::I8));
            let value = from.at(qtype.optional_value_offset().unwrap_or(0));
            let mut datum = load_datum(builder, *scalar, value);
            if let Datum::Flag(flag) = &mut datum {
                // Where the value is missing the byte may be anything, and flags are 0 or 1.
                *flag = builder.ins().band_imm_s(*flag, 1);
            }
            Cell { presence, datum }
        }
        QType::Tuple(fields) => {
            let cells = fields
                .iter()
                .zip(qtype.field_offsets())
                .map(|(field, offset)| load(builder, field, from.at(offset)))
                .collect();
            Cell { presence: Presence::Present, datum: Datum::Tuple(cells) }
        }
        QType::Shape(_) | QType::Meta | QType::Nothing | QType::Unspecified | QType::Function | QType::Sequence(_) => {
            Cell { presence: Presence::Present, datum: Datum::Nothing }
        }
    }
}

fn load_datum(builder: &mut FunctionBuilder<'_>, scalar: Scalar, from: Memory) -> Datum {
    match scalar.machine_type() {
        Some(MachineType::Flag) => Datum::Flag(from.load(builder, types::I8)),
        Some(ty) => Datum::Num(from.load(builder, clif_type(ty))),
        None if scalar.is_string() => Datum::Text(from.load(builder, types::I64), from.at(8).load(builder, types::I64)),
        None => Datum::Nothing,
    }
}

/// Stores a value in the layout of its type.
pub(crate) fn store(builder: &mut FunctionBuilder<'_>, qtype: &QType, cell: &Cell, to: Memory) {
    match qtype {
        QType::Scalar(scalar) => store_datum(builder, *scalar, &cell.datum, to),
        QType::Optional(scalar) => {
            let flag = presence_flag(builder, cell.presence);
            to.store(builder, flag);
            if *scalar != Scalar::Unit {
                let value = to.at(qtype.optional_value_offset().unwrap_or(0));
                store_datum(builder, *scalar, &cell.datum, value);
            }
        }
        QType::Tuple(fields) => {
            if let Datum::Tuple(cells) = &cell.datum {
                for ((field, cell), offset) in fields.iter().zip(cells).zip(qtype.field_offsets()) {
                    store(builder, field, cell, to.at(offset));
                }
            }
        }
        QType::Shape(_) | QType::Meta | QType::Nothing | QType::Unspecified | QType::Function | QType::Sequence(_) => {}
    }
}

fn store_datum(builder: &mut FunctionBuilder<'_>, scalar: Scalar, datum: &Datum, to: Memory) {
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
        // The value of what is missing is never looked at.
        Datum::Nothing | Datum::Tuple(_) => {}
    }
}
