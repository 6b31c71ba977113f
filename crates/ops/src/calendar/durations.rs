//! Operators on durations, in whole microseconds. They replace `math.add` and similar operators if an operand is a
//! duration or a timestamp. If a result does not fit into 64 bits, the operators raise the fault `time-range`; they
//! never wrap around.

use super::civil::{float, number};
use crate::Rule;
use crate::definition::{BINARY, Meaning, OVERLOADED, OpDef, Typing, ex, param};
use crate::kernel::{SAME, strict};
use crate::math::division::{
    INT_FLOORDIV_RULE, INT_MOD_RULE, TruncatedDivision, ZERO, floored_quotient, floored_rest, truncated,
};
use cembra_runtime::{Duration, Fault, FaultKind, MachineType, Timestamp};
use cembra_tape::{Bin, Cell, Cmp, Mask, Tape, Un, Val};

/// The fault for a result that does not fit into 64 bits; it reports the first operand, `of`.
fn beyond(of: i64) -> Fault {
    Fault::with(FaultKind::TimeRange, of.cast_unsigned())
}

/// Records the fault that `beyond` makes for a kernel: it is raised where `is_beyond` is set, and reports the first
/// operand.
fn fault_beyond(t: &mut Tape, a: &[Cell], is_beyond: Mask) {
    let operand = a[0].val(t);
    t.fault_if(is_beyond, FaultKind::TimeRange, [Some(operand), None]);
}

/// Records the mask that is set where an i64 is below 0.
fn is_negative(t: &mut Tape, x: Val) -> Mask {
    let zero = t.konst_like(x, 0.0);
    t.cmp(Cmp::Lt, x, zero)
}

const ADD_RULE: Rule = |t, a| {
    let (x, y) = (a[0].val(t), a[1].val(t));
    let sum = t.bin(Bin::Add, x, y);
    // The sum wrapped where both operands have the other sign.
    let (of_x, of_y) = (t.bin(Bin::Xor, x, sum), t.bin(Bin::Xor, y, sum));
    let both = t.bin(Bin::And, of_x, of_y);
    let wrapped = is_negative(t, both);
    fault_beyond(t, a, wrapped);
    Cell::num(sum)
};

const SUBTRACT_RULE: Rule = |t, a| {
    let (x, y) = (a[0].val(t), a[1].val(t));
    let difference = t.bin(Bin::Sub, x, y);
    let (differ, of_x) = (t.bin(Bin::Xor, x, y), t.bin(Bin::Xor, x, difference));
    let both = t.bin(Bin::And, differ, of_x);
    let wrapped = is_negative(t, both);
    fault_beyond(t, a, wrapped);
    Cell::num(difference)
};

const DURATIONS: OpDef = OpDef { typing: Typing::Overloads, ..BINARY };

const TIME_RANGE: &[FaultKind] = &[FaultKind::TimeRange];
const TIME_RANGE_OR_ZERO: &[FaultKind] = &[FaultKind::TimeRange, FaultKind::DivisionByZero];

/// Defines the overload for a sum or difference that fails if it does not fit into 64 bits.
macro_rules! exact {
    ($x:ident, $y:ident => $ret:ident, $checked:ident, $rule:expr) => {
        strict!(try |x: $x, y: $y| -> $ret { x.0.$checked(y.0).map($ret).ok_or(beyond(x.0)) }, $rule)
    };
}

pub(crate) static ADD: OpDef = OpDef {
    name: "duration.add",
    summary: "The sum of two durations, or of a timestamp and a duration. An error if the result does not fit into 64 bits of microseconds.",
    faults: TIME_RANGE,
    meaning: Meaning::Overloads(&[
        exact!(Duration, Duration => Duration, checked_add, ADD_RULE),
        exact!(Timestamp, Duration => Timestamp, checked_add, ADD_RULE),
        exact!(Duration, Timestamp => Timestamp, checked_add, ADD_RULE),
    ]),
    examples: &[
        ex("1h + 30min", "1h 30min"),
        ex("timestamp\"2026-11-20T10:15:00Z\" + 1d", "timestamp{2026-11-21T10:15:00Z}"),
    ],
    ..DURATIONS
};

pub(crate) static SUBTRACT: OpDef = OpDef {
    name: "duration.subtract",
    summary: "The difference of two durations, the duration from one timestamp to another, or the timestamp that is a duration earlier. An error if the result does not fit into 64 bits of microseconds.",
    faults: TIME_RANGE,
    meaning: Meaning::Overloads(&[
        exact!(Duration, Duration => Duration, checked_sub, SUBTRACT_RULE),
        exact!(Timestamp, Timestamp => Duration, checked_sub, SUBTRACT_RULE),
        exact!(Timestamp, Duration => Timestamp, checked_sub, SUBTRACT_RULE),
    ]),
    examples: &[
        ex("1h - 30min", "30min"),
        ex("timestamp\"2026-11-20T10:15:00Z\" - timestamp\"2026-11-19T09:00:00Z\"", "1d 1h 15min"),
        ex("timestamp\"2026-11-20T10:15:00Z\" - 1d 12h", "timestamp{2026-11-18T22:15:00Z}"),
    ],
    ..DURATIONS
};

/// Records the negative (or absolute) value of a duration. A fault is raised for the least 64-bit number, whose
/// negative does not fit.
fn without_sign(t: &mut Tape, a: &[Cell], op: Un) -> Cell {
    let x = a[0].val(t);
    let least = t.konst(MachineType::I64, i64::MIN.cast_unsigned());
    let is_least = t.cmp(Cmp::Eq, x, least);
    fault_beyond(t, a, is_least);
    Cell::num(t.un(op, x))
}

const NEG_RULE: Rule = |t, a| without_sign(t, a, Un::Neg);
const ABS_RULE: Rule = |t, a| without_sign(t, a, Un::Abs);

pub(crate) static NEG: OpDef = OpDef {
    name: "duration.neg",
    summary: "The duration with the opposite sign. An error for the smallest duration, which has no opposite.",
    faults: TIME_RANGE,
    meaning: Meaning::Overloads(&[strict!(
        try |x: Duration| -> Duration { x.0.checked_neg().map(Duration).ok_or(beyond(x.0)) },
        NEG_RULE
    )]),
    examples: &[ex("-(1d 12h)", "-1d 12h")],
    ..OVERLOADED
};

pub(crate) static ABS: OpDef = OpDef {
    name: "duration.abs",
    summary: "The duration without its sign. An error for the smallest duration, which has no positive counterpart.",
    faults: TIME_RANGE,
    meaning: Meaning::Overloads(&[strict!(
        try |x: Duration| -> Duration { x.0.checked_abs().map(Duration).ok_or(beyond(x.0)) },
        ABS_RULE
    )]),
    examples: &[ex("abs(-90s)", "1min 30s")],
    ..OVERLOADED
};

const TIMES_INTEGER_RULE: Rule = |t, a| {
    let (x, y) = (a[0].val(t), a[1].val(t));
    let product = t.bin(Bin::Mul, x, y);
    // A product that wrapped is off by 2^64 or more. The product as a float is off by less than 2^62, or is further than that
    // from every 64-bit number.
    let [wide, other, made] = [x, y, product].map(|x| t.un(Un::Convert(MachineType::F64), x));
    let expected = t.bin(Bin::Mul, wide, other);
    let difference = t.bin(Bin::Sub, made, expected);
    let (off, most) = (t.un(Un::Abs, difference), number(t, 4_611_686_018_427_387_904.0));
    let wrapped = t.cmp(Cmp::Gt, off, most);
    fault_beyond(t, a, wrapped);
    Cell::num(product)
};

/// Records the rounding of a float to whole microseconds, halves to even. The fault is raised where the float is NaN or
/// does not fit into 64 bits.
fn micros(t: &mut Tape, a: &[Cell], x: Val) -> Cell {
    let below = t.un(Un::Floor, x);
    let rest = t.bin(Bin::Sub, x, below);
    let (half, one, zero) = (number(t, 0.5), number(t, 1.0), number(t, 0.0));
    let (is_more, is_half) = (t.cmp(Cmp::Gt, rest, half), t.cmp(Cmp::Eq, rest, half));
    let halved = t.bin(Bin::Mul, below, half);
    let whole = t.un(Un::Floor, halved);
    let is_odd = t.cmp(Cmp::Ne, halved, whole);
    let is_up = t.mand(is_half, is_odd);
    let is_up = t.mor(is_up, is_more);
    let more = t.select(is_up, one, zero);
    let rounded = t.bin(Bin::Add, below, more);
    let [least, end] = [-9_223_372_036_854_775_808.0, 9_223_372_036_854_775_808.0].map(|end| number(t, end));
    let (from, to) = (t.cmp(Cmp::Ge, rounded, least), t.cmp(Cmp::Lt, rounded, end));
    let fits = t.mand(from, to);
    let is_beyond = t.mnot(fits);
    fault_beyond(t, a, is_beyond);
    let rounded = t.select_rare(is_beyond, zero, rounded);
    Cell::num(t.un(Un::Convert(MachineType::I64), rounded))
}

const TIMES_FLOAT_RULE: Rule = |t, a| {
    let (x, y) = (float(t, a[0]), float(t, a[1]));
    let product = t.bin(Bin::Mul, x, y);
    micros(t, a, product)
};

pub(crate) static MULTIPLY: OpDef = OpDef {
    name: "duration.multiply",
    summary: "A duration multiplied by a number. By an integer the product is exact; by a float it is computed in f64 and rounded to microseconds, halves to even. An error if the result does not fit into 64 bits of microseconds.",
    faults: TIME_RANGE,
    meaning: Meaning::Overloads(&[
        strict!(try |x: Duration, y: i64| -> Duration { x.times(y).ok_or(beyond(x.0)) }, TIMES_INTEGER_RULE),
        strict!(try |x: i64, y: Duration| -> Duration { y.times(x).ok_or(beyond(x)) }, TIMES_INTEGER_RULE),
        strict!(try |x: Duration, y: f64| -> Duration { x.times_float(y).ok_or(beyond(x.0)) }, TIMES_FLOAT_RULE),
        strict!(
            try |x: f64, y: Duration| -> Duration {
                y.times_float(x).ok_or(Fault::with(FaultKind::TimeRange, x.to_bits()))
            },
            TIMES_FLOAT_RULE
        ),
    ]),
    examples: &[ex("1h * 36", "1d 12h"), ex("0.5 * 1d", "12h"), ex("1us * 2.5", "0.000002s")],
    ..DURATIONS
};

const OVER_INTEGER_RULE: Rule = |t, a| {
    let (x, y) = (a[0].val(t), a[1].val(t));
    let TruncatedDivision { quotient, rest, divisor, by_minus_one, .. } = truncated(t, x, y);
    // The comparison of the remainder with half of the divisor. The magnitude of the least number is right as an unsigned
    // number, and unsigned order is signed order with the highest bits flipped.
    let (rest, size) = (t.un(Un::Abs, rest), t.un(Un::Abs, divisor));
    let other = t.bin(Bin::Sub, size, rest);
    let flip = t.konst(MachineType::I64, 1 << 63);
    let (rest, other) = (t.bin(Bin::Xor, rest, flip), t.bin(Bin::Xor, other, flip));
    let (is_more, is_half) = (t.cmp(Cmp::Gt, rest, other), t.cmp(Cmp::Eq, rest, other));
    let (one, minus_one, zero) = (t.konst_like(y, 1.0), t.konst_like(y, -1.0), t.konst_like(y, 0.0));
    let low_bit = t.bin(Bin::And, quotient, one);
    let is_odd = t.cmp(Cmp::Ne, low_bit, zero);
    let is_up = t.mand(is_half, is_odd);
    let is_up = t.mor(is_up, is_more);
    let signs = t.bin(Bin::Xor, x, divisor);
    let differ = t.cmp(Cmp::Lt, signs, zero);
    let away = t.select(differ, minus_one, one);
    let further = t.bin(Bin::Add, quotient, away);
    let rounded = t.select(is_up, further, quotient);
    let least = t.konst(MachineType::I64, i64::MIN.cast_unsigned());
    let is_least = t.cmp(Cmp::Eq, x, least);
    let is_beyond = t.mand(is_least, by_minus_one);
    fault_beyond(t, a, is_beyond);
    let negative = t.un(Un::Neg, x);
    Cell::num(t.select_rare(by_minus_one, negative, rounded))
};

const OVER_FLOAT_RULE: Rule = |t, a| {
    let (x, y) = (float(t, a[0]), float(t, a[1]));
    let zero = number(t, 0.0);
    let is_zero = t.cmp(Cmp::Eq, y, zero);
    t.fault_if(is_zero, FaultKind::DivisionByZero, [None, None]);
    let quotient = t.bin(Bin::Div, x, y);
    micros(t, a, quotient)
};

const RATIO_RULE: Rule = |t, a| {
    let (x, y) = (float(t, a[0]), float(t, a[1]));
    Cell::num(t.bin(Bin::Div, x, y))
};

pub(crate) static DIVIDE: OpDef = OpDef {
    name: "duration.divide",
    summary: "A duration divided by a number, rounded to microseconds, halves to even; by a float it is computed in f64. The quotient of two durations is an f64, an infinity or NaN if the divisor is `0s`. An error if the number is zero, or if the result does not fit into 64 bits of microseconds.",
    faults: TIME_RANGE_OR_ZERO,
    meaning: Meaning::Overloads(&[
        strict!(
            try |x: Duration, y: i64| -> Duration {
                if y == 0 {
                    return Err(ZERO);
                }
                x.over(y).ok_or(beyond(x.0))
            },
            OVER_INTEGER_RULE
        ),
        strict!(
            try |x: Duration, y: f64| -> Duration {
                if y == 0.0 {
                    return Err(ZERO);
                }
                x.over_float(y).ok_or(beyond(x.0))
            },
            OVER_FLOAT_RULE
        ),
        strict!(|x: Duration, y: Duration| -> f64 { x.0 as f64 / y.0 as f64 }, RATIO_RULE),
    ]),
    examples: &[ex("1d / 7", "3h 25min 42.857143s"), ex("1d 12h / 1.5", "1d"), ex("1d 12h / 1d", "f64{1.5}")],
    ..DURATIONS
};

const FLOORDIV_RULE: Rule = |t, a| {
    let (x, y) = (a[0].val(t), a[1].val(t));
    let (least, minus) = (t.konst(MachineType::I64, i64::MIN.cast_unsigned()), t.konst_like(y, -1.0));
    let (is_least, by_minus_one) = (t.cmp(Cmp::Eq, x, least), t.cmp(Cmp::Eq, y, minus));
    let is_beyond = t.mand(is_least, by_minus_one);
    fault_beyond(t, a, is_beyond);
    INT_FLOORDIV_RULE(t, a)
};

pub(crate) static FLOORDIV: OpDef = OpDef {
    name: "duration.floordiv",
    summary: "The quotient of two durations rounded towards minus infinity, as an i64. An error if the divisor is `0s`.",
    faults: TIME_RANGE_OR_ZERO,
    meaning: Meaning::Overloads(&[strict!(
        try |x: Duration, y: Duration| -> i64 {
            if x.0 == i64::MIN && y.0 == -1 {
                return Err(beyond(x.0));
            }
            floored_quotient(x.0, y.0)
        },
        FLOORDIV_RULE
    )]),
    examples: &[ex("1d // 7h", "i64{3}"), ex("-1s // 1min", "i64{-1}")],
    ..DURATIONS
};

pub(crate) static MOD: OpDef = OpDef {
    name: "duration.mod",
    summary: "The remainder of two durations, with the sign of the divisor: `x - floordiv(x, y) * y`. An error if the divisor is `0s`.",
    faults: &[FaultKind::DivisionByZero],
    meaning: Meaning::Overloads(&[strict!(
        try |x: Duration, y: Duration| -> Duration { floored_rest(x.0, y.0).map(Duration) },
        INT_MOD_RULE
    )]),
    examples: &[ex("1d % 7h", "3h"), ex("-1s % 1min", "59s")],
    ..DURATIONS
};

/// Records the conversion of a duration to a number of units; `unit` is the length of a unit in microseconds.
fn in_units(t: &mut Tape, a: &[Cell], unit: f64) -> Cell {
    let (x, unit) = (float(t, a[0]), number(t, unit));
    Cell::num(t.bin(Bin::Div, x, unit))
}

macro_rules! length {
    ($name:literal, $unit:literal, $micros:literal, $example:expr) => {
        OpDef {
            name: $name,
            summary: concat!("The total length of a duration in ", $unit, ", as an f64."),
            params: &[param("d")],
            meaning: Meaning::Overloads(&[strict!(|d: Duration| -> f64 { d.0 as f64 / $micros }, |t, a| in_units(
                t, a, $micros
            ))]),
            examples: &[$example],
            ..OVERLOADED
        }
    };
}

pub(crate) static DAYS: OpDef =
    length!("duration.days", "days of 24 hours", 8.64e10, ex("duration.days(36h)", "f64{1.5}"));
pub(crate) static HOURS: OpDef = length!("duration.hours", "hours", 3.6e9, ex("duration.hours(1d 30min)", "f64{24.5}"));
pub(crate) static MINUTES: OpDef =
    length!("duration.minutes", "minutes", 6e7, ex("duration.minutes(-90s)", "f64{-1.5}"));
pub(crate) static SECONDS: OpDef =
    length!("duration.seconds", "seconds", 1e6, ex("duration.seconds(1.5min)", "f64{90}"));
pub(crate) static MILLISECONDS: OpDef =
    length!("duration.milliseconds", "milliseconds", 1e3, ex("duration.milliseconds(1.5s)", "f64{1500}"));
pub(crate) static MICROSECONDS: OpDef =
    length!("duration.microseconds", "microseconds", 1.0, ex("duration.microseconds(1ms)", "f64{1000}"));

/// Default fields for the records of operators that convert between a type and its number of microseconds.
const RAW: OpDef = OVERLOADED;

pub(crate) static MICROS: OpDef = OpDef {
    name: "duration._micros",
    summary: "The microseconds of a duration, or of a timestamp since 1970-01-01T00:00:00Z.",
    meaning: Meaning::Overloads(&[
        strict!(|x: Timestamp| -> i64 { x.0 }, SAME),
        strict!(|x: Duration| -> i64 { x.0 }, SAME),
    ]),
    examples: &[ex("M.duration._micros(-1ms)", "i64{-1000}")],
    ..RAW
};

pub(crate) static OF_MICROS: OpDef = OpDef {
    name: "duration._of_micros",
    summary: "The duration with a number of microseconds.",
    meaning: Meaning::Overloads(&[strict!(|x: i64| -> Duration { Duration(x) }, SAME)]),
    examples: &[ex("M.duration._of_micros(1500i64)", "0.0015s")],
    ..RAW
};

pub(crate) static TIMESTAMP_OF_MICROS: OpDef = OpDef {
    name: "timestamp._of_micros",
    summary: "The timestamp a number of microseconds after 1970-01-01T00:00:00Z.",
    meaning: Meaning::Overloads(&[strict!(|x: i64| -> Timestamp { Timestamp(x) }, SAME)]),
    examples: &[ex("M.timestamp._of_micros(1500000i64)", "timestamp{1970-01-01T00:00:01.5Z}")],
    ..RAW
};
