//! Operators that count in months and years: adding months, the months between dates, and the first and last days of months.

use super::civil::{MarchDate, check, days, first_day, first_day_after, float, long, number, plus, times, whole};
use super::truncating::OF_MONTH;
use crate::Rule;
use crate::definition::{Meaning, OVERLOADED, OpDef, ex, param};
use crate::kernel::strict;
use cembra_runtime::{CalendarUnit, Date, Fault, FaultKind, Timestamp};
use cembra_tape::{Bin, Cell, Tape, Un, Val};

/// The fault for a result that is outside the years 1 to 9999, or not a date at all. `date` is the operand that the
/// fault reports.
pub(super) fn outside(date: Date) -> Fault {
    Fault::with(FaultKind::TimeRange, u64::from(date.0.cast_unsigned()))
}

/// Records the conversion of days to a date. A fault that reports the first operand is raised if the date is outside
/// the years 1 to 9999.
fn checked(t: &mut Tape, a: &[Cell], days: Val) -> Cell {
    check(t, a, days);
    whole(t, days)
}

/// Records the date that is `months` months after the date `a[0]`: the same day of the month, or the last day of a
/// shorter month.
fn months_later(t: &mut Tape, a: &[Cell], months: Val) -> Cell {
    let days = days(t, a[0]);
    let from = MarchDate::of(t, days);
    let (before, day) = (from.months(t), from.day_of_month(t));
    let months = t.bin(Bin::Add, before, months);
    let (first, next) = (first_day(t, months), first_day_after(t, months));
    let last = plus(t, next, -1.0);
    let same = t.bin(Bin::Add, first, day);
    let found = t.bin(Bin::FMin, same, last);
    checked(t, a, found)
}

const ADD_MONTHS_RULE: Rule = |t, a| {
    let months = float(t, a[1]);
    months_later(t, a, months)
};

const ADD_YEARS_RULE: Rule = |t, a| {
    let years = float(t, a[1]);
    let months = times(t, years, 12.0);
    months_later(t, a, months)
};

pub(crate) static ADD_MONTHS: OpDef = OpDef {
    name: "date.add_months",
    summary: "The same day of the month, `months` months later, or the last day of that month if it is shorter. An error if that is outside of the years 1 to 9999.",
    params: &[param("d"), param("months")],
    faults: &[FaultKind::TimeRange],
    meaning: Meaning::Overloads(&[
        strict!(try |d: Date, months: i32| -> Date { d.add_months(months).ok_or(outside(d)) }, ADD_MONTHS_RULE),
        strict!(
            try |d: Date, months: i64| -> Date {
                // Two dates are never more months apart than 32 bits hold.
                i32::try_from(months).ok().and_then(|months| d.add_months(months)).ok_or(outside(d))
            },
            ADD_MONTHS_RULE
        ),
    ]),
    examples: &[
        ex("date.add_months(date\"2026-11-20\", 3)", "date{2027-02-20}"),
        ex("date.add_months(date\"2024-03-31\", -1)", "date{2024-02-29}"),
    ],
    ..OVERLOADED
};

pub(crate) static ADD_YEARS: OpDef = OpDef {
    name: "date.add_years",
    summary: "The same day of the year, `years` years later; for 29 February, 28 February if that year has no such day. An error if the result is outside of the years 1 to 9999.",
    params: &[param("d"), param("years")],
    faults: &[FaultKind::TimeRange],
    meaning: Meaning::Overloads(&[
        strict!(try |d: Date, years: i32| -> Date { d.add_years(years).ok_or(outside(d)) }, ADD_YEARS_RULE),
        strict!(
            try |d: Date, years: i64| -> Date {
                i32::try_from(years).ok().and_then(|years| d.add_years(years)).ok_or(outside(d))
            },
            ADD_YEARS_RULE
        ),
    ]),
    examples: &[ex("date.add_years(date\"2024-02-29\", 1)", "date{2025-02-28}")],
    ..OVERLOADED
};

/// Records the number of full months from the first to the second date, negative if the second date is earlier.
fn months_between(t: &mut Tape, a: &[Cell]) -> Val {
    // A month counts as 32 days, more than any has.
    let [from, to] = [a[0], a[1]].map(|cell| {
        let days = days(t, cell);
        let date = MarchDate::of(t, days);
        let (months, day) = (date.months(t), date.day_of_month(t));
        let months = times(t, months, 32.0);
        t.bin(Bin::Add, months, day)
    });
    let days = t.bin(Bin::Sub, to, from);
    let months = times(t, days, 1.0 / 32.0);
    t.un(Un::Trunc, months)
}

const MONTHS_BETWEEN_RULE: Rule = |t, a| {
    let months = months_between(t, a);
    long(t, months)
};

const YEARS_BETWEEN_RULE: Rule = |t, a| {
    let months = months_between(t, a);
    // Half a month is added, so that the product with the reciprocal truncates to the same number as the quotient.
    let half = number(t, 0.5);
    let half = t.bin(Bin::Copysign, half, months);
    let months = t.bin(Bin::Add, months, half);
    let years = times(t, months, 1.0 / 12.0);
    let years = t.un(Un::Trunc, years);
    long(t, years)
};

pub(crate) static MONTHS_BETWEEN: OpDef = OpDef {
    name: "date.months_between",
    summary: "The number of full months from one date to another, negative if the second date is earlier: from 31 January to 28 February it is 0.",
    params: &[param("from"), param("to")],
    meaning: Meaning::Overloads(&[strict!(
        |from: Date, to: Date| -> i64 { from.months_to(to).into() },
        MONTHS_BETWEEN_RULE
    )]),
    examples: &[
        ex("date.months_between(date\"2026-01-31\", date\"2026-11-20\")", "i64{9}"),
        ex("date.months_between(date\"2026-02-28\", date\"2026-01-31\")", "i64{0}"),
    ],
    ..OVERLOADED
};

pub(crate) static YEARS_BETWEEN: OpDef = OpDef {
    name: "date.years_between",
    summary: "The number of full years from one date to another, as ages are counted, negative if the second date is earlier: from 29 February 2004 to 28 February 2005 it is 0.",
    params: &[param("from"), param("to")],
    meaning: Meaning::Overloads(&[strict!(
        |from: Date, to: Date| -> i64 { from.years_to(to).into() },
        YEARS_BETWEEN_RULE
    )]),
    examples: &[ex("date.years_between(date\"1990-11-21\", date\"2026-11-20\")", "i64{35}")],
    ..OVERLOADED
};

/// Records the number of months from March of the year 0 to the month of a date.
fn months_of(t: &mut Tape, a: &[Cell]) -> Val {
    let days = days(t, a[0]);
    MarchDate::of(t, days).months(t)
}

const DAYS_IN_MONTH_RULE: Rule = |t, a| {
    let months = months_of(t, a);
    let (first, next) = (first_day(t, months), first_day_after(t, months));
    let length = t.bin(Bin::Sub, next, first);
    whole(t, length)
};

pub(crate) static DAYS_IN_MONTH: OpDef = OpDef {
    name: "date.days_in_month",
    summary: "The number of days of the month of a date, or of a timestamp in UTC, from 28 to 31.",
    meaning: Meaning::Overloads(&[
        strict!(|x: Date| -> i32 { x.days_in_month() }, DAYS_IN_MONTH_RULE),
        strict!(|x: Timestamp| -> i32 { x.date().days_in_month() }, DAYS_IN_MONTH_RULE),
    ]),
    examples: &[ex("date.days_in_month(date\"2024-02-01\")", "29")],
    ..OVERLOADED
};

const END_OF_MONTH_RULE: Rule = |t, a| {
    let months = months_of(t, a);
    let next = first_day_after(t, months);
    let last = plus(t, next, -1.0);
    checked(t, a, last)
};

pub(crate) static END_OF_MONTH: OpDef = OpDef {
    name: "date.end_of_month",
    summary: "The last day of the month of a date. An error if that is outside of the years 1 to 9999.",
    params: &[param("d")],
    faults: &[FaultKind::TimeRange],
    meaning: Meaning::Overloads(&[strict!(
        try |d: Date| -> Date { d.end_of_month().ok_or(outside(d)) },
        END_OF_MONTH_RULE
    )]),
    examples: &[ex("date.end_of_month(date\"2024-02-10\")", "date{2024-02-29}")],
    ..OVERLOADED
};

pub(crate) static START_OF_MONTH: OpDef = OpDef {
    name: "date.start_of_month",
    summary: "The first day of the month of a date. An error if that is outside of the years 1 to 9999.",
    params: &[param("d")],
    faults: &[FaultKind::TimeRange],
    meaning: Meaning::Overloads(&[strict!(
        try |d: Date| -> Date { d.start_of(CalendarUnit::Month).ok_or(outside(d)) },
        OF_MONTH
    )]),
    examples: &[ex("date.start_of_month(date\"2026-11-20\")", "date{2026-11-01}")],
    ..OVERLOADED
};
