//! Adds a 64-bit number of days to a date, or subtracts it from a date; a result outside the range of dates is a fault.
//! With a 32-bit number of days, `math.add` and `math.subtract` wrap around instead.

use super::months::outside;
use crate::Rule;
use crate::definition::{BINARY, Meaning, OpDef, Typing, ex};
use crate::kernel::strict;
use cembra_runtime::{Date, Fault, FaultKind, MachineType};
use cembra_tape::{Bin, Cell, Cmp, Tape, Un};

/// Converts days since 1970-01-01 to a date; `None` if they exceed the range of dates.
fn made(days: Option<i64>) -> Option<Date> {
    days.and_then(|days| i32::try_from(days).ok()).map(Date)
}

/// Records the sum or difference of the operands as a date. If the result is not a date, a fault is raised that reports
/// the first operand.
fn checked(t: &mut Tape, op: Bin, a: &[Cell]) -> Cell {
    let [first, second] = [a[0].val(t), a[1].val(t)];
    let [x, y] = [first, second].map(|x| match t.ty(x) {
        MachineType::I32 => t.un(Un::Convert(MachineType::I64), x),
        _ => x,
    });
    // A sum that wraps is near the other end of 64 bits, where no date is.
    let sum = t.bin(op, x, y);
    let made = t.un(Un::Convert(MachineType::I32), sum);
    let again = t.un(Un::Convert(MachineType::I64), made);
    let is_beyond = t.cmp(Cmp::Ne, again, sum);
    t.fault_if(is_beyond, FaultKind::TimeRange, [Some(first), None]);
    Cell::num(made)
}

const ADD_RULE: Rule = |t, a| checked(t, Bin::Add, a);
const SUBTRACT_RULE: Rule = |t, a| checked(t, Bin::Sub, a);

const DAYS: OpDef = OpDef { typing: Typing::Overloads, faults: &[FaultKind::TimeRange], ..BINARY };

pub(crate) static ADD: OpDef = OpDef {
    name: "date._add_days",
    summary: "The date an `i64` of days after a date. Preparation makes this operator from `math.add`. An error if no date can hold the result.",
    meaning: Meaning::Overloads(&[
        strict!(try |x: Date, y: i64| -> Date { made(y.checked_add(x.0.into())).ok_or(outside(x)) }, ADD_RULE),
        strict!(
            try |x: i64, y: Date| -> Date {
                made(x.checked_add(y.0.into())).ok_or(Fault::with(FaultKind::TimeRange, x.cast_unsigned()))
            },
            ADD_RULE
        ),
    ]),
    examples: &[ex("date\"2024-02-28\" + 2i64", "date{2024-03-01}")],
    ..DAYS
};

pub(crate) static SUBTRACT: OpDef = OpDef {
    name: "date._subtract_days",
    summary: "The date an `i64` of days before a date. Preparation makes this operator from `math.subtract`. An error if no date can hold the result.",
    meaning: Meaning::Overloads(&[strict!(
        try |x: Date, y: i64| -> Date { made(i64::from(x.0).checked_sub(y)).ok_or(outside(x)) },
        SUBTRACT_RULE
    )]),
    examples: &[ex("date\"2024-03-01\" - 2i64", "date{2024-02-28}")],
    ..DAYS
};
