//! Makes dates and timestamps from numbers such as year, month and day. If there is no such day or time (30 February),
//! the result is missing.

use super::civil::{first_day, first_day_after, float, is_outside, number, plus, times, whole};
use crate::Rule;
use crate::definition::{Meaning, OVERLOADED, OpDef, ex, param};
use crate::kernel::strict;
use cembra_runtime::{Date, MachineType, Timestamp};
use cembra_tape::{Bin, Cell, Cmp, Datum, Mask, Presence, Tape, Un, Val};

/// Clamps a part of a date or a time of day to an i32. Numbers that do not fit into an i32 are never valid parts, and
/// neither are the least and the greatest i32, so the result is the same.
fn part(number: i64) -> i32 {
    number.clamp(i32::MIN.into(), i32::MAX.into()) as i32
}

/// Records the mask that is set where `x` is at least `least` and at most `most`.
fn within(t: &mut Tape, x: Val, least: f64, most: f64) -> Mask {
    let (least, most) = (number(t, least), number(t, most));
    let (from, to) = (t.cmp(Cmp::Ge, x, least), t.cmp(Cmp::Le, x, most));
    t.mand(from, to)
}

const DATE_RULE: Rule = |t, a| {
    let [year, month, day] = [a[0], a[1], a[2]].map(|cell| float(t, cell));
    let months = times(t, year, 12.0);
    let months = t.bin(Bin::Add, months, month);
    // Counted from March of the year before, January is month 10.
    let months = plus(t, months, -3.0);
    let (first, next) = (first_day(t, months), first_day_after(t, months));
    let before = plus(t, first, -1.0);
    let days = t.bin(Bin::Add, before, day);
    let (is_year, is_month) = (within(t, year, 1.0, 9999.0), within(t, month, 1.0, 12.0));
    let (is_first, is_last) = (t.cmp(Cmp::Ge, days, first), t.cmp(Cmp::Lt, days, next));
    let is_day = t.mand(is_first, is_last);
    let is_date = t.mand(is_year, is_month);
    let is_date = t.mand(is_date, is_day);
    Cell { presence: Presence::When(is_date), ..whole(t, days) }
};

pub(crate) static DATE: OpDef = OpDef {
    name: "date.make",
    summary: "The date of a year from 1 to 9999, a month from 1 to 12 and a day from 1 to 31; missing if there is no such day.",
    params: &[param("year"), param("month"), param("day")],
    meaning: Meaning::Overloads(&[
        strict!(|year: i32, month: i32, day: i32| -> Option<Date> { Date::of_parts(year, month, day) }, DATE_RULE),
        strict!(
            |year: i64, month: i64, day: i64| -> Option<Date> { Date::of_parts(part(year), part(month), part(day)) },
            DATE_RULE
        ),
    ]),
    examples: &[ex("date.make(2026, 11, 20)", "date?{2026-11-20}"), ex("date.make(2026, 2, 29)", "date?{NA}")],
    ..OVERLOADED
};

const TIMESTAMP_RULE: Rule = |t, a| {
    let [days, hour, minute, second] = [a[0], a[1], a[2], a[3]].map(|cell| float(t, cell));
    let micros = times(t, second, 1e6);
    // Floats of this size have no fraction: the sum rounds to a whole number, halves to even.
    let up = plus(t, micros, 6_755_399_441_055_744.0);
    let micros = plus(t, up, -6_755_399_441_055_744.0);
    let (hours, minutes) = (times(t, hour, 3.6e9), times(t, minute, 6e7));
    let of_day = t.bin(Bin::Add, hours, minutes);
    let of_day = t.bin(Bin::Add, of_day, micros);
    let (least, most) = (number(t, 0.0), number(t, 60.0));
    let (from, below) = (t.cmp(Cmp::Ge, second, least), t.cmp(Cmp::Lt, second, most));
    let outside = is_outside(t, days);
    // The last second of the last day may round up to the next day.
    let last = number(t, f64::from(Date::LAST.0));
    let is_last = t.cmp(Cmp::Ge, days, last);
    let day = number(t, Timestamp::DAY as f64);
    let is_whole = t.cmp(Cmp::Ge, of_day, day);
    let too_late = t.mand(is_last, is_whole);
    let none = t.mor(outside, too_late);
    let mut is_time = t.mnot(none);
    for mask in [within(t, hour, 0.0, 23.0), within(t, minute, 0.0, 59.0), from, below] {
        is_time = t.mand(is_time, mask);
    }
    let [days, of_day] = [days, of_day].map(|x| t.un(Un::Convert(MachineType::I64), x));
    let size = t.konst(MachineType::I64, Timestamp::DAY as u64);
    let midnight = t.bin(Bin::Mul, days, size);
    Cell { presence: Presence::When(is_time), datum: Datum::Num(t.bin(Bin::Add, midnight, of_day)) }
};

pub(crate) static TIMESTAMP: OpDef = OpDef {
    name: "timestamp.make",
    summary: "The timestamp of a date, an hour from 0 to 23, a minute from 0 to 59 and a second below 60, in UTC; missing if there is no such moment in the years 1 to 9999. The second may be an f64, which is rounded to microseconds.",
    params: &[param("date"), param("hour"), param("minute"), param("second")],
    meaning: Meaning::Overloads(&[
        strict!(
            |date: Date, hour: i32, minute: i32, second: i32| -> Option<Timestamp> {
                Timestamp::of_parts(date, hour, minute, f64::from(second))
            },
            TIMESTAMP_RULE
        ),
        strict!(
            |date: Date, hour: i64, minute: i64, second: i64| -> Option<Timestamp> {
                Timestamp::of_parts(date, part(hour), part(minute), f64::from(part(second)))
            },
            TIMESTAMP_RULE
        ),
        strict!(
            |date: Date, hour: i32, minute: i32, second: f64| -> Option<Timestamp> {
                Timestamp::of_parts(date, hour, minute, second)
            },
            TIMESTAMP_RULE
        ),
        strict!(
            |date: Date, hour: i64, minute: i64, second: f64| -> Option<Timestamp> {
                Timestamp::of_parts(date, part(hour), part(minute), second)
            },
            TIMESTAMP_RULE
        ),
    ]),
    examples: &[
        ex("timestamp.make(date\"2026-11-20\", 10, 15, 42)", "timestamp?{2026-11-20T10:15:42Z}"),
        ex("timestamp.make(date\"2026-11-20\", 10, 15, 0.25f64)", "timestamp?{2026-11-20T10:15:00.25Z}"),
        ex("timestamp.make(date\"2026-11-20\", 24, 0, 0)", "timestamp?{NA}"),
    ],
    ..OVERLOADED
};
