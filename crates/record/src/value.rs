//! Values of a plan as a player (a backend that runs tapes) stores them: a presence and a datum, in as many parts as the
//! type needs. A part has the type `P`, which the player chooses: a register, a column or a position.

use cembra_runtime::{InFrame, MachineType, QType, Scalar};

/// The presence of an optional value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Presence<P> {
    /// Known to be present.
    Present,
    /// Known to be missing.
    Missing,
    /// A mask.
    Flag(P),
}

/// The value without its presence, in parts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Datum<P> {
    /// No part is needed: a unit, or a missing value.
    Nothing,
    /// A mask.
    Flag(P),
    /// A number.
    Num(P),
    /// A view of a string: its address and its length.
    Text(P, P),
    /// The fields of a tuple.
    Tuple(Vec<MachineValue<P>>),
}

/// A value of a plan in the parts of a player, a backend that runs tapes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MachineValue<P> {
    /// Whether the value is present.
    pub presence: Presence<P>,
    /// The value itself, without its presence.
    pub datum: Datum<P>,
}

impl<P> MachineValue<P> {
    /// A present value.
    pub const fn present(datum: Datum<P>) -> Self {
        MachineValue { presence: Presence::Present, datum }
    }
}

/// Appends the machine types of a value's parts to `out`, if nothing more than its type is known: `Flag` for its presence
/// if it is optional, then those of its datum. A tuple's fields follow one another.
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

/// Appends the machine types of a datum's parts to `out`: two for a string, none for a unit, one for any other scalar.
pub fn datum_types(scalar: Scalar, out: &mut Vec<MachineType>) {
    match scalar.machine_type() {
        Some(ty) => out.push(ty),
        None if scalar.is_string() => out.extend([MachineType::I64; 2]),
        None => {}
    }
}

/// Assembles a value from its parts, which come in the order of [`part_types`].
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
