//! Cells: the values that lowering rules work with, each a presence and a datum on the tape. A rule cannot tell how
//! presence is stored, how a mask is represented, or how many lanes there are.

use crate::{Mask, Tape, Val};
use cembra_runtime::{MachineType, Scalar};

/// Whether a value is present.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Presence {
    /// Known to be present.
    Present,
    /// Known to be missing.
    Missing,
    /// Present where the mask holds.
    When(Mask),
}

/// The value part of a cell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Datum {
    /// A unit, which has no bits.
    Unit,
    /// A boolean.
    Flag(Mask),
    /// A number.
    Num(Val),
    /// A view of a text or of bytes.
    Text {
        /// The address, an `I64`.
        ptr: Val,
        /// The length in bytes, an `I64`.
        len: Val,
    },
}

/// A value on the tape, as lowering rules take and return it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cell {
    /// Whether the value is present.
    pub presence: Presence,
    /// The value itself; meaningless where it is missing.
    pub datum: Datum,
}

impl Cell {
    /// A present number.
    #[must_use]
    pub const fn num(value: Val) -> Cell {
        Cell::present(Datum::Num(value))
    }

    /// A present boolean.
    #[must_use]
    pub const fn flag(value: Mask) -> Cell {
        Cell::present(Datum::Flag(value))
    }

    /// A present value.
    #[must_use]
    pub const fn present(datum: Datum) -> Cell {
        Cell { presence: Presence::Present, datum }
    }

    /// An optional unit that is present where the mask holds.
    #[must_use]
    pub const fn mask(mask: Mask) -> Cell {
        Cell { presence: Presence::When(mask), datum: Datum::Unit }
    }

    /// Returns the number, for rules whose overloads guarantee one.
    ///
    /// For any other cell it returns a useless zero. That does not happen, because overloads are matched before rules run.
    #[must_use]
    pub fn val(self, tape: &mut Tape) -> Val {
        match self.datum {
            Datum::Num(value) => value,
            _ => tape.konst(MachineType::I32, 0),
        }
    }

    /// Returns the boolean, for rules whose overloads guarantee one.
    #[must_use]
    pub fn bool(self, tape: &mut Tape) -> Mask {
        match self.datum {
            Datum::Flag(mask) => mask,
            _ => tape.mconst(false),
        }
    }

    /// The mask that holds where the value is present.
    #[must_use]
    pub fn has(self, tape: &mut Tape) -> Mask {
        match self.presence {
            Presence::Present => tape.mconst(true),
            Presence::Missing => tape.mconst(false),
            Presence::When(mask) => mask,
        }
    }

    /// A missing value of a scalar type; its datum is a zero.
    #[must_use]
    pub fn missing(scalar: Scalar, tape: &mut Tape) -> Cell {
        Cell { presence: Presence::Missing, datum: Datum::from_bits(scalar, 0, tape) }
    }
}

impl Datum {
    /// A constant of a scalar type from its bits; a string is empty.
    #[must_use]
    pub fn from_bits(scalar: Scalar, bits: u64, tape: &mut Tape) -> Datum {
        match scalar.machine_type() {
            Some(MachineType::Flag) => Datum::Flag(tape.mconst(bits != 0)),
            Some(ty) => Datum::Num(tape.konst(ty, bits)),
            None if scalar.is_string() => {
                let zero = tape.konst(MachineType::I64, 0);
                Datum::Text { ptr: zero, len: zero }
            }
            None => Datum::Unit,
        }
    }

    /// Returns a datum that is safe to read whether or not the value is present: a missing string, whose view is garbage,
    /// gets the length 0.
    #[must_use]
    pub fn viewable(self, present: Mask, tape: &mut Tape) -> Datum {
        match self {
            Datum::Text { ptr, len } => {
                let none = tape.konst(MachineType::I64, 0);
                Datum::Text { ptr, len: tape.select(present, len, none) }
            }
            other => other,
        }
    }

    /// Returns this datum where the mask holds, `other` elsewhere. Both must have one type.
    #[must_use]
    pub fn select(self, mask: Mask, other: Datum, tape: &mut Tape) -> Datum {
        match (self, other) {
            (Datum::Num(a), Datum::Num(b)) => Datum::Num(tape.select(mask, a, b)),
            (Datum::Flag(a), Datum::Flag(b)) => Datum::Flag(tape.mselect(mask, a, b)),
            (Datum::Text { ptr: p, len: n }, Datum::Text { ptr: q, len: m }) => {
                Datum::Text { ptr: tape.select(mask, p, q), len: tape.select(mask, n, m) }
            }
            _ => self,
        }
    }
}

impl Presence {
    /// Combines two presences: present where both are.
    #[must_use]
    pub fn and(self, other: Presence, tape: &mut Tape) -> Presence {
        match (self, other) {
            (Presence::Missing, _) | (_, Presence::Missing) => Presence::Missing,
            (Presence::Present, p) | (p, Presence::Present) => p,
            (Presence::When(a), Presence::When(b)) => Presence::from_mask(tape.mand(a, b), tape),
        }
    }

    /// A presence from a mask: present where the mask holds, and known if the mask is a constant.
    #[must_use]
    pub fn from_mask(mask: Mask, tape: &Tape) -> Presence {
        match tape.known(mask) {
            Some(true) => Presence::Present,
            Some(false) => Presence::Missing,
            None => Presence::When(mask),
        }
    }
}
