//! Joins the results of a conditional's two branches: for each row, selects the result of the branch that the row takes. If a
//! branch is a stretch (a range of instructions that may be skipped), its results are valid only under its mask, so the
//! selection uses that mask; otherwise it uses the condition.

use crate::line::TapeValue;
use cembra_runtime::MachineType;
use cembra_tape::{Cell, Datum, Mask, Presence, Tape, Val};

/// The masks that decide how the results of a conditional's two branches are joined: the condition, and the rows that take
/// each branch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Join {
    /// The condition of this conditional alone, without the conditions of enclosing branches.
    pub(super) condition: Mask,
    /// The mask of the rows that take the first branch.
    pub(super) on: Mask,
    /// The mask of the rows that take the second branch.
    pub(super) off: Mask,
    /// True if the first branch is a stretch, a range of instructions that a backend may jump over.
    pub(super) skips_on: bool,
    /// True if the second branch is a stretch, a range of instructions that a backend may jump over.
    pub(super) skips_off: bool,
    /// True if all rows reach the conditional, so that a row that does not take the first branch takes the second.
    pub(super) is_outermost: bool,
}

impl Join {
    /// Returns the value that is `on` in rows that take the first branch and `off` in rows that take the second.
    pub(super) fn value(self, tape: &mut Tape, on: &TapeValue, off: &TapeValue) -> TapeValue {
        match (on, off) {
            (TapeValue::Scalar(on), TapeValue::Scalar(off)) => TapeValue::Scalar(self.cell(tape, *on, *off)),
            // Tuples nest only as deep as the text that spelled their type.
            (TapeValue::Tuple(on), TapeValue::Tuple(off)) => {
                TapeValue::Tuple(on.iter().zip(off).map(|(on, off)| self.value(tape, on, off)).collect())
            }
            (on, _) => on.clone(),
        }
    }

    fn cell(self, tape: &mut Tape, on: Cell, off: Cell) -> Cell {
        let presence = match (on.presence, off.presence) {
            (Presence::Present, Presence::Present) => Presence::Present,
            (Presence::Missing, Presence::Missing) => {
                return Cell { presence: Presence::Missing, datum: zero(tape, off.datum) };
            }
            _ => {
                let (on, off) = (on.has(tape), off.has(tape));
                let mask = self.mask(tape, on, off);
                Presence::from_mask(mask, tape)
            }
        };
        // The datum of a missing value is not read.
        let datum = match (on.presence, off.presence) {
            (Presence::Missing, _) if !self.skips_off => off.datum,
            (_, Presence::Missing) if !self.skips_on => on.datum,
            _ => match (on.datum, off.datum) {
                (Datum::Num(on), Datum::Num(off)) => Datum::Num(self.number(tape, on, off)),
                (Datum::Flag(on), Datum::Flag(off)) => Datum::Flag(self.mask(tape, on, off)),
                (Datum::Text { ptr: p, len: n }, Datum::Text { ptr: q, len: m }) => {
                    Datum::Text { ptr: self.number(tape, p, q), len: self.number(tape, n, m) }
                }
                (datum, _) => datum,
            },
        };
        Cell { presence, datum }
    }

    fn number(self, tape: &mut Tape, on: Val, off: Val) -> Val {
        match (self.skips_on, self.skips_off) {
            (false, false) => tape.select(self.condition, on, off),
            (true, false) => tape.select(self.on, on, off),
            (false, true) => tape.select(self.off, off, on),
            // One of the masks is the opposite of the other, and the selection uses that one.
            (true, true) if self.is_outermost && tape.is_not(self.on, self.off) => tape.select(self.on, on, off),
            (true, true) if self.is_outermost => tape.select(self.off, off, on),
            (true, true) => {
                let ty = tape.ty(off);
                let zero = tape.konst(ty, 0);
                let off = tape.select(self.off, off, zero);
                tape.select(self.on, on, off)
            }
        }
    }

    fn mask(self, tape: &mut Tape, on: Mask, off: Mask) -> Mask {
        if !self.skips_on && !self.skips_off {
            return tape.mselect(self.condition, on, off);
        }
        let (on, off) = (tape.mand(self.on, on), tape.mand(self.off, off));
        tape.mor(on, off)
    }
}

/// A zero datum of the same type as `like`, outside of any stretch.
fn zero(tape: &mut Tape, like: Datum) -> Datum {
    match like {
        Datum::Unit => Datum::Unit,
        Datum::Flag(_) => Datum::Flag(tape.mconst(false)),
        Datum::Num(val) => {
            let ty = tape.ty(val);
            Datum::Num(tape.konst(ty, 0))
        }
        Datum::Text { .. } => {
            let zero = tape.konst(MachineType::I64, 0);
            Datum::Text { ptr: zero, len: zero }
        }
    }
}
