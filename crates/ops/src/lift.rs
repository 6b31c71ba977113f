//! Records overloads on a tape (a list of instructions without branches). Lowering rules of strict operators are
//! written for present scalars; here they are extended to optionals: the result is present if all arguments are, and
//! faults are raised only then. A string that may be missing is replaced by an empty one, so that it can be read.

use crate::definition::PresenceRule;
use crate::{Lower, OperandType, Overload};
use cembra_runtime::MachineType;
use cembra_tape::{Cell, Datum, Presence, Tape};
use smallvec::SmallVec;

/// Records `overload` on the tape for the arguments `args`, and returns its result. `presence` is the operator's rule
/// for missing arguments. An overload without a lowering rule cannot be recorded: its result is a missing value on the
/// tape, and backends call its kernel instead.
pub fn record(tape: &mut Tape, presence: PresenceRule, overload: &Overload, args: &[Cell]) -> Cell {
    if matches!(overload.lower, Lower::Kernel | Lower::Memory(_)) {
        return Cell::missing(overload.ret.scalar, tape);
    }
    if presence == PresenceRule::Custom {
        return overload.record(tape, args);
    }
    let mut all = Presence::Present;
    for arg in args {
        all = all.and(arg.presence, tape);
    }
    match all {
        Presence::Present => overload.record(tape, args),
        Presence::Missing => Cell::missing(overload.ret.scalar, tape),
        Presence::When(mask) => {
            let mut bare: SmallVec<[Cell; 4]> = SmallVec::new();
            for arg in args {
                let datum = match arg.presence {
                    Presence::When(present) => arg.datum.viewable(present, tape),
                    _ => arg.datum,
                };
                bare.push(Cell::present(datum));
            }
            let outer = tape.active();
            let active = match outer {
                Some(outer) => tape.mand(outer, mask),
                None => mask,
            };
            tape.set_active(Some(active));
            let result = overload.record(tape, &bare);
            tape.set_active(outer);
            Cell { presence: all.and(result.presence, tape), datum: result.datum }
        }
    }
}

impl Overload {
    /// Records the overload's lowering rule on a new tape; `None` if the overload has no rule.
    pub(crate) fn tape(&self) -> Option<Tape> {
        if matches!(self.lower, Lower::Kernel | Lower::Memory(_)) {
            return None;
        }
        let mut tape = Tape::new();
        let args: SmallVec<[Cell; 4]> = self.args.iter().map(|arg| input(&mut tape, *arg)).collect();
        self.record(&mut tape, &args);
        Some(tape)
    }

    /// Records the rule on a tape, for arguments of the overload's own types.
    fn record(&self, tape: &mut Tape, args: &[Cell]) -> Cell {
        match &self.lower {
            Lower::Rule(rule) => rule(tape, args),
            Lower::Recording(recording) => recording.play(tape, args),
            Lower::Kernel | Lower::Memory(_) => Cell::missing(self.ret.scalar, tape),
        }
    }
}

/// Adds an input of type `operand` to a tape.
pub(crate) fn input(tape: &mut Tape, operand: OperandType) -> Cell {
    let presence = if operand.optional { Presence::When(tape.input_mask()) } else { Presence::Present };
    let datum = match operand.scalar.machine_type() {
        Some(MachineType::Flag) => Datum::Flag(tape.input_mask()),
        Some(ty) => Datum::Num(tape.input(ty)),
        None if operand.scalar.is_string() => {
            Datum::Text { ptr: tape.input(MachineType::I64), len: tape.input(MachineType::I64) }
        }
        None => Datum::Unit,
    };
    Cell { presence, datum }
}
