//! Values of a plan as a player holds them: a presence and a datum, spread over as many parts as the type needs. What a part
//! is called is the player's business: a register, a column, a position.

use cembra_runtime::{InFrame, MachineType, QType, Scalar};

/// Whether a value is there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Presence<P> {
    /// Known to be there.
    Present,
    /// Known to be missing.
    Missing,
    /// A mask.
    Flag(P),
}

/// What a value is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Datum<P> {
    /// No part is needed: a unit, or the value of what is missing.
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

/// A value of the plan in parts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MachineValue<P> {
    /// Whether it is there.
    pub presence: Presence<P>,
    /// What it is.
    pub datum: Datum<P>,
}

impl<P> MachineValue<P> {
    /// A value that is there.
    pub const fn present(datum: Datum<P>) -> Self {
        MachineValue { presence: Presence::Present, datum }
    }
}

/// The machine types of a value's parts where nothing is known of it, `Flag` for masks: its presence if it is optional, then
/// its datum, those of a tuple field by field.
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

/// The machine types of a datum's parts.
pub fn datum_types(scalar: Scalar, out: &mut Vec<MachineType>) {
    match scalar.machine_type() {
        Some(ty) => out.push(ty),
        None if scalar.is_string() => out.extend([MachineType::I64; 2]),
        None => {}
    }
}

/// The value that these parts are, in the order of [`part_types`].
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
