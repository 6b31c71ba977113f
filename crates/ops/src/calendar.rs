//! Operators on days and moments, which are cembra's own: Arolla has no such types. The parts of a DATE have rules in exact
//! floats of 64 bits without a branch, so that they are evaluated in lanes; a TIMESTAMP is split by a division of integers.
//!
//! Every quotient that is rounded down is taken of a number that is half a unit or less above the whole one that is meant. So it is no
//! whole number itself, and further from one than rounding goes: a product with the reciprocal is as good as a quotient.

use crate::Rule;
use crate::definition::{Meaning, OpDef, Typing, UNARY, ex};
use crate::kernel::strict;
use cembra_runtime::{Date, Fault, FaultKind, MachineType, Timestamp};
use cembra_tape::{Bin, Cell, Cmp, Mask, Tape, Un, Val};

/// The constant as a FLOAT64.
fn number(t: &mut Tape, value: f64) -> Val {
    t.konst(MachineType::F64, value.to_bits())
}

/// `x * factor + term`, each rounded.
fn scaled(t: &mut Tape, x: Val, factor: f64, term: f64) -> Val {
    let (factor, term) = (number(t, factor), number(t, term));
    let product = t.bin(Bin::Mul, x, factor);
    t.bin(Bin::Add, product, term)
}

/// `(x + above) / divisor`, rounded down.
fn quotient(t: &mut Tape, x: Val, above: f64, divisor: f64) -> Val {
    let (above, reciprocal) = (number(t, above), number(t, 1.0 / divisor));
    let sum = t.bin(Bin::Add, x, above);
    let product = t.bin(Bin::Mul, sum, reciprocal);
    t.un(Un::Floor, product)
}

/// What is left of `x` when `count` times `size`, rounded down, is taken away.
fn rest(t: &mut Tape, x: Val, count: Val, size: f64) -> Val {
    let size = number(t, size);
    let taken = t.bin(Bin::Mul, count, size);
    let taken = t.un(Un::Floor, taken);
    t.bin(Bin::Sub, x, taken)
}

/// The days as a FLOAT64, counted from another day.
fn days(t: &mut Tape, a: &[Cell], shift: f64) -> Val {
    let days = a[0].val(t);
    let days = t.un(Un::Convert(MachineType::F64), days);
    let shift = number(t, shift);
    t.bin(Bin::Add, days, shift)
}

fn whole(t: &mut Tape, x: Val) -> Cell {
    Cell::num(t.un(Un::Convert(MachineType::I32), x))
}

/// A day by year, month and day, with years that begin in March, so that the day that some years lack is their last.
struct FromMarch {
    century: Val,
    year: Val,
    /// From 0.
    month: Val,
    /// Of the year, from 0.
    day: Val,
}

impl FromMarch {
    fn of(t: &mut Tape, a: &[Cell]) -> FromMarch {
        // Days from 0000-03-01. A century has 36524.25 days in the mean, a year of one 365.25, five months have 153.
        let days = days(t, a, 719_468.0);
        let century = quotient(t, days, 0.875, 36_524.25);
        let day = rest(t, days, century, 36_524.25);
        let year = quotient(t, day, 0.875, 365.25);
        let day = rest(t, day, year, 365.25);
        let month = quotient(t, day, 0.5, 30.6);
        FromMarch { century, year, month, day }
    }

    /// January and February, which are of the next year.
    fn is_next_year(&self, t: &mut Tape) -> Mask {
        let january = number(t, 10.0);
        t.cmp(Cmp::Ge, self.month, january)
    }

    fn year(&self, t: &mut Tape) -> Val {
        let (zero, one) = (number(t, 0.0), number(t, 1.0));
        let next = self.is_next_year(t);
        let more = t.select(next, one, zero);
        let hundred = number(t, 100.0);
        let centuries = t.bin(Bin::Mul, self.century, hundred);
        let year = t.bin(Bin::Add, centuries, self.year);
        t.bin(Bin::Add, year, more)
    }
}

const YEAR_RULE: Rule = |t, a| {
    let year = FromMarch::of(t, a).year(t);
    whole(t, year)
};

const MONTH_RULE: Rule = |t, a| {
    let date = FromMarch::of(t, a);
    let next = date.is_next_year(t);
    let (early, late) = (number(t, -9.0), number(t, 3.0));
    let shift = t.select(next, early, late);
    let month = t.bin(Bin::Add, date.month, shift);
    whole(t, month)
};

const DAY_RULE: Rule = |t, a| {
    let date = FromMarch::of(t, a);
    let before = scaled(t, date.month, 30.6, 0.5);
    let before = t.un(Un::Floor, before);
    let day = t.bin(Bin::Sub, date.day, before);
    let one = number(t, 1.0);
    let day = t.bin(Bin::Add, day, one);
    whole(t, day)
};

const WEEKDAY_RULE: Rule = |t, a| {
    // Days from a Monday.
    let days = days(t, a, 3.0);
    let weeks = quotient(t, days, 0.5, 7.0);
    let day = rest(t, days, weeks, 7.0);
    let one = number(t, 1.0);
    let day = t.bin(Bin::Add, day, one);
    whole(t, day)
};

const DAY_OF_YEAR_RULE: Rule = |t, a| {
    let year = FromMarch::of(t, a).year(t);
    let one = number(t, 1.0);
    // Whole years that have passed since the year 1, and the leap days in them.
    let years = t.bin(Bin::Sub, year, one);
    let [fourth, hundredth, four_hundredth] = [4.0, 100.0, 400.0].map(|length| quotient(t, years, 0.5, length));
    let before = scaled(t, years, 365.0, 0.0);
    let before = t.bin(Bin::Add, before, fourth);
    let before = t.bin(Bin::Sub, before, hundredth);
    let before = t.bin(Bin::Add, before, four_hundredth);
    // The first day of the year 1 is day 1.
    let days = days(t, a, 719_163.0);
    let day = t.bin(Bin::Sub, days, before);
    whole(t, day)
};

macro_rules! part {
    ($name:literal, $summary:literal, $ty:ty, |$x:ident| $part:expr, $rule:expr, [$($example:expr),*]) => {
        OpDef {
            name: $name,
            summary: $summary,
            typing: Typing::Overloads,
            meaning: Meaning::Overloads(&[strict!(|$x: $ty| -> i32 { $part }, $rule)]),
            examples: &[$($example),*],
            ..UNARY
        }
    };
}

pub(crate) static YEAR: OpDef = part!(
    "date.year",
    "The year of a date. The year before 1 is 0.",
    Date,
    |x| x.civil().0,
    YEAR_RULE,
    [ex("date.year(date\"2026-11-20\")", "2026"), ex("date.year(date\"0001-01-01\" - 367)", "-1")]
);

pub(crate) static MONTH: OpDef = part!(
    "date.month",
    "The month of a date, from 1 to 12.",
    Date,
    |x| x.civil().1,
    MONTH_RULE,
    [ex("date.month(date\"2026-11-20\")", "11")]
);

pub(crate) static DAY: OpDef = part!(
    "date.day",
    "The day of the month of a date, from 1 to 31.",
    Date,
    |x| x.civil().2,
    DAY_RULE,
    [ex("date.day(date\"2024-02-28\" + 1)", "29")]
);

pub(crate) static WEEKDAY: OpDef = part!(
    "date.weekday",
    "The day of the week of a date as ISO 8601 has it, from 1 for Monday to 7 for Sunday.",
    Date,
    |x| x.weekday(),
    WEEKDAY_RULE,
    [ex("date.weekday(date\"2026-11-20\")", "5")]
);

pub(crate) static DAY_OF_YEAR: OpDef = part!(
    "date.day_of_year",
    "The day of the year of a date, from 1 to 366.",
    Date,
    |x| x.day_of_year(),
    DAY_OF_YEAR_RULE,
    [ex("date.day_of_year(date\"2024-12-31\")", "366")]
);

/// A timestamp by days, rounded down, and the microseconds that are left.
fn split(t: &mut Tape, a: &[Cell]) -> (Val, Val) {
    let x = a[0].val(t);
    let (size, zero, one) =
        (t.konst(MachineType::I64, Timestamp::DAY as u64), t.konst_like(x, 0.0), t.konst_like(x, 1.0));
    let days = t.bin(Bin::Div, x, size);
    let taken = t.bin(Bin::Mul, days, size);
    let left = t.bin(Bin::Sub, x, taken);
    // The division rounds towards 0.
    let below = t.cmp(Cmp::Lt, left, zero);
    let (fewer, more) = (t.bin(Bin::Sub, days, one), t.bin(Bin::Add, left, size));
    (t.select(below, fewer, days), t.select(below, more, left))
}

const DATE_OF_RULE: Rule = |t, a| {
    let (days, _) = split(t, a);
    whole(t, days)
};

/// The microseconds of the day in units of so many, of which so many make the next larger one.
fn time(t: &mut Tape, a: &[Cell], unit: f64, many: f64) -> Cell {
    let (_, left) = split(t, a);
    let left = t.un(Un::Convert(MachineType::F64), left);
    let units = quotient(t, left, 0.5, unit);
    let larger = quotient(t, units, 0.5, many);
    let part = rest(t, units, larger, many);
    whole(t, part)
}

const HOUR_RULE: Rule = |t, a| time(t, a, 3.6e9, 24.0);
const MINUTE_RULE: Rule = |t, a| time(t, a, 6e7, 60.0);
const SECOND_RULE: Rule = |t, a| time(t, a, 1e6, 60.0);

pub(crate) static HOUR: OpDef = part!(
    "timestamp.hour",
    "The hour of a timestamp in UTC, from 0 to 23.",
    Timestamp,
    |x| x.time().0,
    HOUR_RULE,
    [ex("timestamp.hour(timestamp\"2026-11-20T10:15:42Z\")", "10")]
);

pub(crate) static MINUTE: OpDef = part!(
    "timestamp.minute",
    "The minute of a timestamp in UTC, from 0 to 59.",
    Timestamp,
    |x| x.time().1,
    MINUTE_RULE,
    [ex("timestamp.minute(timestamp\"2026-11-20T10:15:42Z\")", "15")]
);

pub(crate) static SECOND: OpDef = part!(
    "timestamp.second",
    "The whole second of a timestamp, from 0 to 59.",
    Timestamp,
    |x| x.time().2,
    SECOND_RULE,
    [ex("timestamp.second(timestamp\"1969-12-31T23:59:59.5Z\")", "59")]
);

const DATE_OF: crate::Overload = strict!(|x: Timestamp| -> Date { x.date() }, DATE_OF_RULE);

pub(crate) static DATE: OpDef = OpDef {
    name: "timestamp.date",
    summary: "The date of a timestamp, in UTC.",
    typing: Typing::Overloads,
    meaning: Meaning::Overloads(const { &[DATE_OF] }),
    examples: &[ex("timestamp.date(timestamp\"1969-12-31T23:59:59.5Z\")", "date{1969-12-31}")],
    ..UNARY
};

const SAME: Rule = |_, a| a[0];

pub(crate) static TO_DATE: OpDef = OpDef {
    name: "core.to_date",
    aliases: &["to_date"],
    summary: "A date itself, and that of a timestamp, in UTC.",
    typing: Typing::Overloads,
    meaning: Meaning::Overloads(const { &[strict!(|x: Date| -> Date { x }, SAME), DATE_OF] }),
    examples: &[ex("to_date(timestamp\"2026-11-20T10:15:00Z\")", "date{2026-11-20}")],
    ..UNARY
};

const MIDNIGHT_RULE: Rule = |t, a| {
    let x = a[0].val(t);
    let last = Date::LAST_WITH_MIDNIGHT.0;
    let [low, high] = [-last, last].map(|days| t.konst(MachineType::I32, u64::from(days.cast_unsigned())));
    let (below, above) = (t.cmp(Cmp::Lt, x, low), t.cmp(Cmp::Gt, x, high));
    let outside = t.mor(below, above);
    t.fault_if(outside, FaultKind::CastRange, [Some(x), None]);
    let (days, size) = (t.un(Un::Convert(MachineType::I64), x), t.konst(MachineType::I64, Timestamp::DAY as u64));
    Cell::num(t.bin(Bin::Mul, days, size))
};

pub(crate) static TO_TIMESTAMP: OpDef = OpDef {
    name: "core.to_timestamp",
    aliases: &["to_timestamp"],
    summary: "A timestamp itself, and the midnight, in UTC, at which a date begins; an error if that is more than 106751991 days from 1970.",
    faults: &[FaultKind::CastRange],
    typing: Typing::Overloads,
    meaning: Meaning::Overloads(&[
        strict!(|x: Timestamp| -> Timestamp { x }, SAME),
        strict!(
            try |x: Date| -> Timestamp {
                x.midnight().ok_or(Fault::with(FaultKind::CastRange, u64::from(x.0.cast_unsigned())))
            },
            MIDNIGHT_RULE
        ),
    ]),
    examples: &[ex("to_timestamp(date\"2026-11-20\")", "timestamp{2026-11-20T00:00:00Z}")],
    ..UNARY
};
