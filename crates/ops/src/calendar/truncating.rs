//! Operators that truncate a date or a timestamp to a unit of time: they return the beginning of the year, week, hour
//! or other unit that contains the date or timestamp.

use super::civil::{MarchDate, check, days, first_day, plus, quotient, rest, split, times, weekday, whole};
use crate::definition::{Expansion, Meaning, NodeHandle, NodeResult, OVERLOADED, OpDef, Typing, UNARY, ex, param};
use crate::kernel::strict;
use crate::typing::refuse;
use crate::{Argument, OpId, Rule, Signature, TypeFault, id};
use cembra_expr::ArgumentForm;
use cembra_runtime::{CalendarUnit, Date, Fault, FaultKind, MachineType, Scalar, Timestamp};
use cembra_tape::{Bin, Cell, Tape, Un, Val};
use cembra_value::{ScalarValue, Value, near_names};

/// A function that records the first day of the unit (such as a month) that contains a day. Both days are counted from
/// 1970-01-01.
type Begin = fn(&mut Tape, Val) -> Val;

/// Records the first day of the group of months that contains a day. A group has `count` months, such as 3 for
/// quarters, and the first group of a year begins in January.
fn first_of_months(t: &mut Tape, days: Val, count: f64) -> Val {
    let months = MarchDate::of(t, days).months(t);
    let from_january = plus(t, months, 2.0);
    let whole = quotient(t, from_january, 0.5, count);
    let start = times(t, whole, count);
    let start = plus(t, start, -2.0);
    first_day(t, start)
}

fn first_of_week(t: &mut Tape, days: Val) -> Val {
    let weekday = weekday(t, days);
    let before = t.bin(Bin::Sub, days, weekday);
    plus(t, before, 1.0)
}

/// Records the midnight at which a day begins, as a timestamp.
fn midnight(t: &mut Tape, days: Val) -> Val {
    let (days, size) = (t.un(Un::Convert(MachineType::I64), days), t.konst(MachineType::I64, Timestamp::DAY as u64));
    t.bin(Bin::Mul, days, size)
}

/// Records the beginning of a unit of whole days, for a date or a timestamp.
fn of_days(t: &mut Tape, a: &[Cell], begin: Begin) -> Cell {
    let given = days(t, a[0]);
    let start = begin(t, given);
    check(t, a, start);
    let x = a[0].val(t);
    if t.ty(x) == MachineType::I64 { Cell::num(midnight(t, start)) } else { whole(t, start) }
}

/// Records the beginning of a unit within the day, such as an hour; `unit` is the length of the unit in microseconds.
fn of_time(t: &mut Tape, a: &[Cell], unit: f64) -> Cell {
    let x = a[0].val(t);
    let (_, of_day) = split(t, x);
    let of_day = t.un(Un::Convert(MachineType::F64), of_day);
    let units = quotient(t, of_day, 0.5, unit);
    let left = rest(t, of_day, units, unit);
    let left = t.un(Un::Convert(MachineType::I64), left);
    let days = days(t, a[0]);
    check(t, a, days);
    Cell::num(t.bin(Bin::Sub, x, left))
}

const OF_YEAR: Rule = |t, a| of_days(t, a, |t, days| first_of_months(t, days, 12.0));
const OF_QUARTER: Rule = |t, a| of_days(t, a, |t, days| first_of_months(t, days, 3.0));
/// The lowering rule of operators that return the beginning of a month, such as `date.start_of_month` for dates.
pub(super) const OF_MONTH: Rule = |t, a| of_days(t, a, |t, days| first_of_months(t, days, 1.0));
const OF_WEEK: Rule = |t, a| of_days(t, a, first_of_week);
const OF_DAY: Rule = |t, a| of_days(t, a, |_, days| days);
const OF_HOUR: Rule = |t, a| of_time(t, a, 3.6e9);
const OF_MINUTE: Rule = |t, a| of_time(t, a, 6e7);
const OF_SECOND: Rule = |t, a| of_time(t, a, 1e6);

macro_rules! start {
    ($name:literal, $summary:literal, $unit:ident, $rule:expr, $example:expr) => {
        OpDef {
            name: $name,
            summary: $summary,
            faults: &[FaultKind::TimeRange],
            meaning: Meaning::Overloads(&[
                strict!(
                    try |x: Date| -> Date {
                        x.start_of(CalendarUnit::$unit)
                            .ok_or(Fault::with(FaultKind::TimeRange, u64::from(x.0.cast_unsigned())))
                    },
                    $rule
                ),
                start!(timestamp $unit, $rule),
            ]),
            examples: &[$example],
            ..OVERLOADED
        }
    };
    ($name:literal, $summary:literal, of timestamps, $unit:ident, $rule:expr, $example:expr) => {
        OpDef {
            name: $name,
            summary: $summary,
            faults: &[FaultKind::TimeRange],
            meaning: Meaning::Overloads(&[start!(timestamp $unit, $rule)]),
            examples: &[$example],
            ..OVERLOADED
        }
    };
    (timestamp $unit:ident, $rule:expr) => {
        strict!(
            try |x: Timestamp| -> Timestamp {
                x.start_of(CalendarUnit::$unit).ok_or(Fault::with(FaultKind::TimeRange, x.0.cast_unsigned()))
            },
            $rule
        )
    };
}

pub(crate) static YEAR: OpDef = start!(
    "date._start_of_year",
    "The beginning of the year.",
    Year,
    OF_YEAR,
    ex("date.truncate(date\"2026-11-20\", \"year\")", "date{2026-01-01}")
);

pub(crate) static QUARTER: OpDef = start!(
    "date._start_of_quarter",
    "The beginning of the quarter.",
    Quarter,
    OF_QUARTER,
    ex("date.truncate(date\"2026-11-20\", \"quarter\")", "date{2026-10-01}")
);

pub(crate) static MONTH: OpDef = start!(
    "date._start_of_month",
    "The beginning of the month.",
    Month,
    OF_MONTH,
    ex("date.truncate(timestamp\"2026-11-20T10:15:42Z\", \"month\")", "timestamp{2026-11-01T00:00:00Z}")
);

pub(crate) static WEEK: OpDef = start!(
    "date._start_of_week",
    "The beginning of the week, a Monday.",
    Week,
    OF_WEEK,
    ex("date.truncate(date\"1969-12-31\", \"week\")", "date{1969-12-29}")
);

pub(crate) static DAY: OpDef = start!(
    "date._start_of_day",
    "The beginning of the day.",
    Day,
    OF_DAY,
    ex("date.truncate(timestamp\"2026-11-20T10:15:42Z\", \"day\")", "timestamp{2026-11-20T00:00:00Z}")
);

pub(crate) static HOUR: OpDef = start!(
    "date._start_of_hour",
    "The beginning of the hour.",
    of timestamps,
    Hour,
    OF_HOUR,
    ex("date.truncate(timestamp\"1969-12-31T23:59:59.5Z\", \"hour\")", "timestamp{1969-12-31T23:00:00Z}")
);

pub(crate) static MINUTE: OpDef = start!(
    "date._start_of_minute",
    "The beginning of the minute.",
    of timestamps,
    Minute,
    OF_MINUTE,
    ex("date.truncate(timestamp\"2026-11-20T10:15:42Z\", \"minute\")", "timestamp{2026-11-20T10:15:00Z}")
);

pub(crate) static SECOND: OpDef = start!(
    "date._start_of_second",
    "The beginning of the second.",
    of timestamps,
    Second,
    OF_SECOND,
    ex("date.truncate(timestamp\"2026-11-20T10:15:42.5Z\", \"second\")", "timestamp{2026-11-20T10:15:42Z}")
);

/// The units by name, the longest first, with the operator for each unit. The last three units do not apply to dates.
const UNITS: [(&str, OpId); 8] = [
    ("year", id::DATE_START_OF_YEAR),
    ("quarter", id::DATE_START_OF_QUARTER),
    ("month", id::DATE_TRUNCATED_TO_MONTH),
    ("week", id::DATE_START_OF_WEEK),
    ("day", id::DATE_START_OF_DAY),
    ("hour", id::DATE_START_OF_HOUR),
    ("minute", id::DATE_START_OF_MINUTE),
    ("second", id::DATE_START_OF_SECOND),
];

fn starting(x: Option<Scalar>, unit: Option<&Value>) -> Result<OpId, TypeFault> {
    let units = if x == Some(Scalar::Date) { &UNITS[..5] } else { &UNITS[..] };
    let names: Vec<&str> = units.iter().map(|(name, _)| *name).collect();
    let Some(ScalarValue::Text(unit)) = unit.and_then(Value::as_scalar) else {
        return Err(TypeFault::mismatch("date.truncate needs a literal for `unit`", Some(1))
            .hint(format!("write one of \"{}\"", names.join("\", \""))));
    };
    if let Some((_, operator)) = units.iter().find(|(name, _)| **name == **unit) {
        return Ok(*operator);
    }
    let what = if x == Some(Scalar::Date) { "a date" } else { "a timestamp" };
    let hint = match near_names(unit, 2, names.iter().copied()).first() {
        Some(near) => format!("write \"{near}\""),
        None => format!("write one of \"{}\"", names.join("\", \"")),
    };
    Err(TypeFault::mismatch(format!("date.truncate has no unit {unit:?} for {what}"), Some(1)).hint(hint))
}

fn truncated(graph: &mut dyn Expansion, args: &[NodeHandle]) -> NodeResult {
    let operator = starting(graph.qtype(args[0]).scalar(), graph.value(args[1]).as_ref())?;
    graph.apply(operator, &args[..1])
}

pub(crate) static TRUNCATE: OpDef = OpDef {
    name: "date.truncate",
    summary: "The beginning of the `year`, `quarter`, `month`, `week` or `day` of a date or a timestamp; of a timestamp also of the `hour`, `minute` or `second`, in UTC. The unit is a literal; weeks begin on Monday. An error if the result is outside of the years 1 to 9999.",
    params: &[param("x"), param("unit").of(ArgumentForm::CalendarUnit)],
    faults: &[FaultKind::TimeRange],
    typing: Typing::Rule(|args: &[Argument<'_>]| {
        let x = args[0].qtype;
        if !matches!(x.scalar(), Some(Scalar::Date | Scalar::Timestamp)) {
            return refuse(0, format!("date.truncate expects a date or a timestamp, found {x}"));
        }
        starting(x.scalar(), args[1].literal)?;
        Ok(Signature::unchanged(args, x.clone()))
    }),
    meaning: Meaning::Expand(truncated),
    examples: &[
        ex("date.truncate(date\"2026-11-20\", \"month\")", "date{2026-11-01}"),
        ex("date.truncate(timestamp\"2026-11-20T10:15:42Z\", \"hour\")", "timestamp{2026-11-20T10:00:00Z}"),
    ],
    ..UNARY
};
