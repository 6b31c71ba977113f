//! Operators for the greater and the lesser of two numbers, and for the later and the earlier of two dates. If an
//! operand is NaN, the result is NaN; of two zeros with different signs, the first operand is the result.

use crate::definition::{BINARY, Meaning, OpDef, ex};
use crate::kernel::strict;
use crate::{Rule, derivative, id};
use cembra_runtime::{Date, Duration, Timestamp};
use cembra_tape::{Bin, Cell, Cmp, Tape};

// `FMax(y, x)` is `y > x ? y : x`: the first operand of the operator on ties, and on a NaN first operand. A NaN second operand
// must be corrected; if it is a constant, that check disappears.
fn float(t: &mut Tape, op: Bin, a: &[Cell]) -> Cell {
    let (x, y) = (a[0].val(t), a[1].val(t));
    let best = t.bin(op, y, x);
    let nan = t.is_nan(y);
    Cell::num(t.select_rare(nan, y, best))
}

fn int(t: &mut Tape, op: Cmp, a: &[Cell]) -> Cell {
    let (x, y) = (a[0].val(t), a[1].val(t));
    let first = t.cmp(op, x, y);
    Cell::num(t.select(first, x, y))
}

pub(crate) const INT_MAX_RULE: Rule = |t, a| int(t, Cmp::Ge, a);
const FLOAT_MAX_RULE: Rule = |t, a| float(t, Bin::FMax, a);
pub(crate) const INT_MIN_RULE: Rule = |t, a| int(t, Cmp::Le, a);
const FLOAT_MIN_RULE: Rule = |t, a| float(t, Bin::FMin, a);

macro_rules! maximum {
    ($x:expr, $y:expr) => {
        if $x.is_nan() || $x >= $y { $x } else { $y }
    };
}

macro_rules! minimum {
    ($x:expr, $y:expr) => {
        if $x.is_nan() || $x <= $y { $x } else { $y }
    };
}

pub(crate) static MAXIMUM: OpDef = OpDef {
    name: "math.maximum",
    aliases: &["maximum", "max"],
    summary: "The larger of two numbers, the later of two dates or timestamps, or the longer of two durations; NaN if one operand is NaN; `x` if they are equal, also for zeros with different signs.",
    meaning: Meaning::Overloads(&[
        strict!(|x: i32, y: i32| -> i32 { x.max(y) }, INT_MAX_RULE),
        strict!(|x: i64, y: i64| -> i64 { x.max(y) }, INT_MAX_RULE),
        strict!(|x: f32, y: f32| -> f32 { maximum!(x, y) }, FLOAT_MAX_RULE),
        strict!(|x: f64, y: f64| -> f64 { maximum!(x, y) }, FLOAT_MAX_RULE),
        strict!(|x: Date, y: Date| -> Date { x.max(y) }, INT_MAX_RULE),
        strict!(|x: Timestamp, y: Timestamp| -> Timestamp { x.max(y) }, INT_MAX_RULE),
        strict!(|x: Duration, y: Duration| -> Duration { x.max(y) }, INT_MAX_RULE),
    ]),
    examples: &[
        ex("max(3, 5)", "5"),
        ex("max(-0f32, 0f32)", "-0."),
        ex("max(1f32, nan)", "nan"),
        ex("max(date\"2026-11-20\", date\"2025-12-31\")", "date{2026-11-20}"),
    ],
    derivative: Some(|d| derivative::extreme(d, id::BOOL_GREATER_EQUAL)),
    ..BINARY
};

pub(crate) static MINIMUM: OpDef = OpDef {
    name: "math.minimum",
    aliases: &["minimum", "min"],
    summary: "The smaller of two numbers, the earlier of two dates or timestamps, or the shorter of two durations; NaN if one operand is NaN; `x` if they are equal, also for zeros with different signs.",
    meaning: Meaning::Overloads(&[
        strict!(|x: i32, y: i32| -> i32 { x.min(y) }, INT_MIN_RULE),
        strict!(|x: i64, y: i64| -> i64 { x.min(y) }, INT_MIN_RULE),
        strict!(|x: f32, y: f32| -> f32 { minimum!(x, y) }, FLOAT_MIN_RULE),
        strict!(|x: f64, y: f64| -> f64 { minimum!(x, y) }, FLOAT_MIN_RULE),
        strict!(|x: Date, y: Date| -> Date { x.min(y) }, INT_MIN_RULE),
        strict!(|x: Timestamp, y: Timestamp| -> Timestamp { x.min(y) }, INT_MIN_RULE),
        strict!(|x: Duration, y: Duration| -> Duration { x.min(y) }, INT_MIN_RULE),
    ]),
    examples: &[ex("min(3, 5)", "3"), ex("min(0f32, -0f32)", "0."), ex("min(nan, 1f64)", "f64{nan}")],
    derivative: Some(|d| derivative::extreme(d, id::BOOL_LESS_EQUAL)),
    ..BINARY
};
