//! Values of a plan in the representation of a backend: a presence (whether the value is there) and a datum (the value
//! itself). Each is stored in parts: an optional f64 has two parts, a mask and a number. A part has the type `P`, which
//! the backend chooses: a register, a column or a position on a tape.

use cembra_runtime::{InFrame, MachineType, QType, Scalar};

/// The presence of an optional value: known in advance, or a mask.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Presence<P> {
    /// The value is known to be present.
    Present,
    /// The value is known to be missing.
    Missing,
    /// The value is present where this mask holds.
    Flag(P),
}

/// A value without its presence, in the parts of a backend (such as registers).
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Datum<P> {
    /// The value has no parts: it is a unit, or missing.
    Nothing,
    /// The value is a boolean, stored as this mask.
    Flag(P),
    /// The value is this number.
    Num(P),
    /// The value is a string: the address of its bytes, and its length in bytes.
    Text(P, P),
    /// The value is a tuple with these fields.
    Tuple(Vec<MachineValue<P>>),
}

/// A value of a plan in the parts of a backend (such as registers): its presence, and its datum (the value without
/// presence).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MachineValue<P> {
    /// The presence of the value.
    pub presence: Presence<P>,
    /// The value without its presence.
    pub datum: Datum<P>,
}

impl<P> MachineValue<P> {
    /// Makes a present value from `datum`.
    pub const fn present(datum: Datum<P>) -> Self {
        MachineValue { presence: Presence::Present, datum }
    }
}

/// Appends to `out` the machine types of the parts of any value of type `qtype`: `Flag` for its presence if it is optional,
/// then the types of the parts of its datum. A tuple's fields follow one another.
pub fn part_types(qtype: &QType, out: &mut Vec<MachineType>) {
    // Tuples nest only as deep as the text that spelled their type.
    match qtype.in_frame() {
        InFrame::Scalar(scalar) => datum_types(scalar, out),
        InFrame::Optional(scalar) => {
            out.push(MachineType::Flag);
            datum_types(scalar, out);
        }
        InFrame::Tuple(fields) => fields.iter().for_each(|field| part_types(field, out)),
        InFrame::Nothing => {}
    }
}

/// Appends to `out` the machine types of a scalar's parts, without presence: two for a string, none for a unit, one for any
/// other scalar.
pub fn datum_types(scalar: Scalar, out: &mut Vec<MachineType>) {
    match scalar.machine_type() {
        Some(ty) => out.push(ty),
        None if scalar.is_string() => out.extend([MachineType::I64; 2]),
        None => {}
    }
}

/// Assembles a value of type `qtype` from its parts, which come in the order of [`part_types`].
pub fn gather<P>(qtype: &QType, parts: &mut impl Iterator<Item = P>) -> MachineValue<P> {
    match qtype.in_frame() {
        InFrame::Scalar(scalar) => MachineValue::present(gather_datum(scalar, parts)),
        InFrame::Optional(scalar) => {
            let presence = parts.next().map_or(Presence::Missing, Presence::Flag);
            MachineValue { presence, datum: gather_datum(scalar, parts) }
        }
        InFrame::Tuple(fields) => {
            MachineValue::present(Datum::Tuple(fields.iter().map(|field| gather(field, parts)).collect()))
        }
        InFrame::Nothing => MachineValue::present(Datum::Nothing),
    }
}

fn gather_datum<P>(scalar: Scalar, parts: &mut impl Iterator<Item = P>) -> Datum<P> {
    match scalar {
        Scalar::Unit => Datum::Nothing,
        Scalar::Boolean => parts.next().map_or(Datum::Nothing, Datum::Flag),
        Scalar::Text | Scalar::Bytes => match (parts.next(), parts.next()) {
            (Some(ptr), Some(len)) => Datum::Text(ptr, len),
            _ => Datum::Nothing,
        },
        _ => parts.next().map_or(Datum::Nothing, Datum::Num),
    }
}
