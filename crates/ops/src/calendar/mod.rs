//! Operators on dates, timestamps and durations; Arolla does not have these. The lowering rules for parts of a DATE
//! (year, month and others) compute with 64-bit floats, exactly and without branches, so that they run on vectors of
//! rows. A TIMESTAMP is first split into days and microseconds by an integer division.

mod civil;
pub(crate) mod days;
pub(crate) mod durations;
pub(crate) mod making;
pub(crate) mod months;
pub(crate) mod truncating;
pub(crate) mod unix;
pub(crate) mod zones;

use crate::Rule;
use crate::definition::{Meaning, OVERLOADED, OpDef, ex};
use crate::kernel::{MaskValue, SAME, mask, strict};
use cembra_runtime::{Date, Fault, FaultKind, MachineType, Timestamp};
use cembra_tape::{Bin, Cell, Cmp, Tape, Un};
use civil::{MarchDate, day_of_year, days, number, plus, quotient, rest, split, weekday, whole};

const YEAR_RULE: Rule = |t, a| {
    let days = days(t, a[0]);
    let year = MarchDate::of(t, days).year(t);
    whole(t, year)
};

const MONTH_RULE: Rule = |t, a| {
    let days = days(t, a[0]);
    let month = MarchDate::of(t, days).month_of_year(t);
    whole(t, month)
};

const QUARTER_RULE: Rule = |t, a| {
    let days = days(t, a[0]);
    let month = MarchDate::of(t, days).month_of_year(t);
    let before = quotient(t, month, -0.5, 3.0);
    let quarter = plus(t, before, 1.0);
    whole(t, quarter)
};

const DAY_RULE: Rule = |t, a| {
    let days = days(t, a[0]);
    let day = MarchDate::of(t, days).day_of_month(t);
    let day = plus(t, day, 1.0);
    whole(t, day)
};

const WEEKDAY_RULE: Rule = |t, a| {
    let days = days(t, a[0]);
    let day = weekday(t, days);
    whole(t, day)
};

const DAY_OF_YEAR_RULE: Rule = |t, a| {
    let days = days(t, a[0]);
    let year = MarchDate::of(t, days).year(t);
    let day = day_of_year(t, days, year);
    whole(t, day)
};

/// Records the Thursday of a day's week. The year of the Thursday is the ISO year of the week.
fn thursday(t: &mut Tape, a: &[Cell]) -> cembra_tape::Val {
    let days = days(t, a[0]);
    let weekday = weekday(t, days);
    let monday = t.bin(Bin::Sub, days, weekday);
    plus(t, monday, 4.0)
}

const ISO_YEAR_RULE: Rule = |t, a| {
    let thursday = thursday(t, a);
    let year = MarchDate::of(t, thursday).year(t);
    whole(t, year)
};

const ISO_WEEK_RULE: Rule = |t, a| {
    let thursday = thursday(t, a);
    let year = MarchDate::of(t, thursday).year(t);
    let day = day_of_year(t, thursday, year);
    let weeks = quotient(t, day, -0.5, 7.0);
    let week = plus(t, weeks, 1.0);
    whole(t, week)
};

const LEAP_YEAR_RULE: Rule = |t, a| {
    let days = days(t, a[0]);
    let year = MarchDate::of(t, days).year(t);
    let zero = number(t, 0.0);
    let [fourth, hundredth, four_hundredth] = [4.0, 100.0, 400.0].map(|length| {
        let count = quotient(t, year, 0.5, length);
        let left = rest(t, year, count, length);
        t.cmp(Cmp::Eq, left, zero)
    });
    // A multiple of 100 is not a leap year unless it is a multiple of 400.
    let common = t.mxor(hundredth, four_hundredth);
    Cell::mask(t.mxor(fourth, common))
};

/// Defines an operator for a part of a date, and of a timestamp in UTC.
macro_rules! part {
    ($name:literal, $summary:literal, |$x:ident| -> $ret:ty $part:block, $rule:expr, [$($example:expr),*]) => {
        OpDef {
            name: $name,
            summary: $summary,
            meaning: Meaning::Overloads(&[
                strict!(|$x: Date| -> $ret { $part }, $rule),
                strict!(|$x: Timestamp| -> $ret {
                    let $x = $x.date();
                    $part
                }, $rule),
            ]),
            examples: &[$($example),*],
            ..OVERLOADED
        }
    };
}

pub(crate) static YEAR: OpDef = part!(
    "date.year",
    "The year of a date, or of a timestamp in UTC. The year before 1 is 0.",
    |x| -> i32 { x.civil().0 },
    YEAR_RULE,
    [ex("date.year(date\"2026-11-20\")", "2026"), ex("date.year(date\"0001-01-01\" - 367)", "-1")]
);

pub(crate) static MONTH: OpDef = part!(
    "date.month",
    "The month of a date, or of a timestamp in UTC, from 1 to 12.",
    |x| -> i32 { x.civil().1 },
    MONTH_RULE,
    [ex("date.month(date\"2026-11-20\")", "11"), ex("date.month(timestamp\"2026-11-20T10:15:42Z\")", "11")]
);

pub(crate) static QUARTER: OpDef = part!(
    "date.quarter",
    "The quarter of the year of a date, or of a timestamp in UTC, from 1 to 4.",
    |x| -> i32 { x.quarter() },
    QUARTER_RULE,
    [ex("date.quarter(date\"2026-11-20\")", "4")]
);

pub(crate) static DAY: OpDef = part!(
    "date.day",
    "The day of the month of a date, or of a timestamp in UTC, from 1 to 31.",
    |x| -> i32 { x.civil().2 },
    DAY_RULE,
    [ex("date.day(date\"2024-02-28\" + 1)", "29")]
);

pub(crate) static WEEKDAY: OpDef = part!(
    "date.weekday",
    "The day of the week of a date, or of a timestamp in UTC, as in ISO 8601: from 1 for Monday to 7 for Sunday.",
    |x| -> i32 { x.weekday() },
    WEEKDAY_RULE,
    [ex("date.weekday(date\"2026-11-20\")", "5")]
);

pub(crate) static DAY_OF_YEAR: OpDef = part!(
    "date.day_of_year",
    "The day of the year of a date, or of a timestamp in UTC, from 1 to 366.",
    |x| -> i32 { x.day_of_year() },
    DAY_OF_YEAR_RULE,
    [ex("date.day_of_year(date\"2024-12-31\")", "366")]
);

pub(crate) static ISO_YEAR: OpDef = part!(
    "date.iso_year",
    "The year to which the week of a date, or of a timestamp in UTC, belongs in ISO 8601: the year of the week's Thursday.",
    |x| -> i32 { x.iso_week().0 },
    ISO_YEAR_RULE,
    [ex("date.iso_year(date\"2027-01-03\")", "2026")]
);

pub(crate) static ISO_WEEK: OpDef = part!(
    "date.iso_week",
    "The number of the week of a date, or of a timestamp in UTC, in ISO 8601: from 1 to 53. Weeks begin on Monday, and belong to the year `date.iso_year`.",
    |x| -> i32 { x.iso_week().1 },
    ISO_WEEK_RULE,
    [ex("date.iso_week(date\"2026-11-20\")", "47"), ex("date.iso_week(date\"2027-01-03\")", "53")]
);

pub(crate) static IS_LEAP_YEAR: OpDef = part!(
    "date.is_leap_year",
    "Present if the year of a date, or of a timestamp in UTC, has 366 days.",
    |x| -> MaskValue { mask(x.is_in_leap_year()) },
    LEAP_YEAR_RULE,
    [ex("date.is_leap_year(date\"2024-12-31\")", "present"), ex("date.is_leap_year(date\"2100-01-01\")", "missing")]
);

const DATE_OF_RULE: Rule = |t, a| {
    let x = a[0].val(t);
    let (days, _) = split(t, x);
    whole(t, days)
};

macro_rules! time {
    ($name:literal, $summary:literal, |$x:ident| $part:expr, $rule:expr, $example:expr) => {
        OpDef {
            name: $name,
            summary: $summary,
            meaning: Meaning::Overloads(&[strict!(|$x: Timestamp| -> i32 { $part }, $rule)]),
            examples: &[$example],
            ..OVERLOADED
        }
    };
}

/// Records a part of the time of day, such as the minute. `unit` is the length of one unit in microseconds, and the
/// part counts from 0 to `count` - 1.
fn time(t: &mut Tape, a: &[Cell], unit: f64, count: f64) -> Cell {
    let x = a[0].val(t);
    let (_, left) = split(t, x);
    let left = t.un(Un::Convert(MachineType::F64), left);
    let units = quotient(t, left, 0.5, unit);
    let larger = quotient(t, units, 0.5, count);
    let part = rest(t, units, larger, count);
    whole(t, part)
}

const HOUR_RULE: Rule = |t, a| time(t, a, 3.6e9, 24.0);
const MINUTE_RULE: Rule = |t, a| time(t, a, 6e7, 60.0);
const SECOND_RULE: Rule = |t, a| time(t, a, 1e6, 60.0);

pub(crate) static HOUR: OpDef = time!(
    "timestamp.hour",
    "The hour of a timestamp in UTC, from 0 to 23.",
    |x| x.time().0,
    HOUR_RULE,
    ex("timestamp.hour(timestamp\"2026-11-20T10:15:42Z\")", "10")
);

pub(crate) static MINUTE: OpDef = time!(
    "timestamp.minute",
    "The minute of a timestamp in UTC, from 0 to 59.",
    |x| x.time().1,
    MINUTE_RULE,
    ex("timestamp.minute(timestamp\"2026-11-20T10:15:42Z\")", "15")
);

pub(crate) static SECOND: OpDef = time!(
    "timestamp.second",
    "The second of a timestamp, from 0 to 59, without its fraction.",
    |x| x.time().2,
    SECOND_RULE,
    ex("timestamp.second(timestamp\"1969-12-31T23:59:59.5Z\")", "59")
);

const DATE_OF: crate::Overload = strict!(|x: Timestamp| -> Date { x.date() }, DATE_OF_RULE);

pub(crate) static DATE: OpDef = OpDef {
    name: "timestamp.date",
    summary: "The date of a timestamp, in UTC.",
    meaning: Meaning::Overloads(const { &[DATE_OF] }),
    examples: &[ex("timestamp.date(timestamp\"1969-12-31T23:59:59.5Z\")", "date{1969-12-31}")],
    ..OVERLOADED
};

pub(crate) static TO_DATE: OpDef = OpDef {
    name: "core.to_date",
    aliases: &["to_date"],
    summary: "The date itself, or the date of a timestamp in UTC.",
    meaning: Meaning::Overloads(const { &[strict!(|x: Date| -> Date { x }, SAME), DATE_OF] }),
    examples: &[ex("to_date(timestamp\"2026-11-20T10:15:00Z\")", "date{2026-11-20}")],
    ..OVERLOADED
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
    summary: "The timestamp itself, or the midnight in UTC at which a date begins; an error if the date is more than 106751991 days from 1970-01-01.",
    faults: &[FaultKind::CastRange],
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
    ..OVERLOADED
};
