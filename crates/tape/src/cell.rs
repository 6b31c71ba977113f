//! Cells: the values that the lowering rules of operators take and return while they record instructions on a tape. A
//! cell has a presence, which tells whether the value is missing, and a datum, which is the value itself. Rules work
//! only with cells, so a rule is independent of the storage of presences and masks, and of the number of rows that are
//! computed at once.

use crate::{Mask, Tape, Val};
use cembra_runtime::{MachineType, Scalar};

/// The presence of a cell (a value on a tape). It is either known while the tape is recorded, or a mask that the tape
/// computes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Presence {
    /// The value is known to be present.
    Present,
    /// The value is known to be missing.
    Missing,
    /// The value is present where this mask holds.
    When(Mask),
}

/// The value in a cell (a value and its presence on a tape), without the presence.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Datum {
    /// The value is a unit, which has no bits.
    Unit,
    /// The value is this boolean.
    Flag(Mask),
    /// The value is this number.
    Num(Val),
    /// The value is a string (a text or bytes), given by the address and the length of its bytes.
    Text {
        /// The address of the string's bytes, an `I64`.
        ptr: Val,
        /// The length of the string in bytes, an `I64`.
        len: Val,
    },
}

/// A value on the tape, as lowering rules take and return it: a presence and a datum.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cell {
    /// The presence of the value.
    pub presence: Presence,
    /// The value without its presence; meaningless where the value is missing.
    pub datum: Datum,
}

impl Cell {
    /// Makes a cell with the number `value`, which is present.
    #[must_use]
    pub const fn num(value: Val) -> Cell {
        Cell::present(Datum::Num(value))
    }

    /// Makes a cell with the boolean `value`, which is present.
    #[must_use]
    pub const fn flag(value: Mask) -> Cell {
        Cell::present(Datum::Flag(value))
    }

    /// Makes a cell with the value `datum`, which is present.
    #[must_use]
    pub const fn present(datum: Datum) -> Cell {
        Cell { presence: Presence::Present, datum }
    }

    /// Makes a cell with an optional unit: a presence without a value. The unit is present where `mask` holds.
    #[must_use]
    pub const fn mask(mask: Mask) -> Cell {
        Cell { presence: Presence::When(mask), datum: Datum::Unit }
    }

    /// Returns the number in the cell, for rules whose overloads guarantee that the cell is a number.
    ///
    /// For a cell of another type, the result is a zero without meaning. Rules do not get such cells, because overloads
    /// are matched before rules run.
    #[must_use]
    pub fn val(self, tape: &mut Tape) -> Val {
        match self.datum {
            Datum::Num(value) => value,
            _ => tape.konst(MachineType::I32, 0),
        }
    }

    /// Returns the boolean in the cell, for rules whose overloads guarantee that the cell is a boolean. For any other
    /// cell, the result is a constant `false`.
    #[must_use]
    pub fn bool(self, tape: &mut Tape) -> Mask {
        match self.datum {
            Datum::Flag(mask) => mask,
            _ => tape.mconst(false),
        }
    }

    /// Returns the mask that holds where the cell's value is present.
    #[must_use]
    pub fn has(self, tape: &mut Tape) -> Mask {
        match self.presence {
            Presence::Present => tape.mconst(true),
            Presence::Missing => tape.mconst(false),
            Presence::When(mask) => mask,
        }
    }

    /// Makes a cell with a missing value of type `scalar`. The cell's datum is a zero.
    #[must_use]
    pub fn missing(scalar: Scalar, tape: &mut Tape) -> Cell {
        Cell { presence: Presence::Missing, datum: Datum::from_bits(scalar, 0, tape) }
    }
}

impl Datum {
    /// Returns the constant of type `scalar` with the bits `bits`. For the types of strings, the constant is the empty
    /// string.
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

    /// Returns this datum, made safe to read where `present` does not hold: there the address and the length of a
    /// string are undefined, so the length becomes 0. A datum that is not a string is returned unchanged.
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

    /// Returns this datum where the mask holds, `other` elsewhere. Both must have the same type.
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
    /// Returns the presence of a value that is present where both `self` and `other` are.
    #[must_use]
    pub fn and(self, other: Presence, tape: &mut Tape) -> Presence {
        match (self, other) {
            (Presence::Missing, _) | (_, Presence::Missing) => Presence::Missing,
            (Presence::Present, p) | (p, Presence::Present) => p,
            (Presence::When(a), Presence::When(b)) => Presence::from_mask(tape.mand(a, b), tape),
        }
    }

    /// Converts a mask to a presence: present where the mask holds, and known in advance if the mask is a constant.
    #[must_use]
    pub fn from_mask(mask: Mask, tape: &Tape) -> Presence {
        match tape.known(mask) {
            Some(true) => Presence::Present,
            Some(false) => Presence::Missing,
            None => Presence::When(mask),
        }
    }
}
