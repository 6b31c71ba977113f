//! Sums, products and signs. Integers wrap around; floats are IEEE 754 in their own width and never fused.

use crate::definition::{BINARY, Law, Meaning, OpDef, Typing, UNARY, ex, param};
use crate::derivative::{Cotangent, FIRST, FLAT, all};
use crate::kernel::{SAME, one, strict, two};
use crate::{Promotion, Rule, id};
use cembra_runtime::{Date, Duration, MachineType};
use cembra_tape::{Bin, Cell, Cmp, Un};

const ADD_RULE: Rule = |t, a| two(t, Bin::Add, a);

pub(crate) static ADD: OpDef = OpDef {
    name: "math.add",
    aliases: &["add"],
    summary: "The sum of two numbers, or the date a number of days after a date. Integers wrap around, and so do dates with days of 32 bits; with days of 64 bits, a sum that no date can hold is an error. With a timestamp or a duration, the operator is `duration.add`.",
    meaning: Meaning::Overloads(&[
        strict!(|x: i32, y: i32| -> i32 { x.wrapping_add(y) }, ADD_RULE),
        strict!(|x: i64, y: i64| -> i64 { x.wrapping_add(y) }, ADD_RULE),
        strict!(|x: f32, y: f32| -> f32 { x + y }, ADD_RULE),
        strict!(|x: f64, y: f64| -> f64 { x + y }, ADD_RULE),
        strict!(|x: Date, y: i32| -> Date { Date(x.0.wrapping_add(y)) }, ADD_RULE),
        strict!(|x: i32, y: Date| -> Date { Date(x.wrapping_add(y.0)) }, ADD_RULE),
    ]),
    laws: &[Law::Commutative],
    examples: &[
        ex("math.add(1, 2)", "3"),
        ex("math.add(2147483647, 1)", "-2147483648"),
        ex("1 + 0.5", "f64{1.5}"),
        ex("1 + missing[i32]", "i32?{NA}"),
        ex("date\"2024-02-28\" + 2", "date{2024-03-01}"),
    ],
    derivative: Some(|d| all([d.cotangent, d.cotangent])),
    of_durations: Some(id::DURATION_ADD),
    of_long_days: Some(id::DATE_ADD_DAYS),
    ..BINARY
};

const SUBTRACT_RULE: Rule = |t, a| two(t, Bin::Sub, a);
const DAYS_BETWEEN_RULE: Rule = |t, a| {
    let [x, y] = [a[0], a[1]].map(|cell| {
        let days = cell.val(t);
        t.un(Un::Convert(MachineType::I64), days)
    });
    Cell::num(t.bin(Bin::Sub, x, y))
};

pub(crate) static SUBTRACT: OpDef = OpDef {
    name: "math.subtract",
    aliases: &["subtract"],
    summary: "The difference of two numbers; of two dates, the days from `y` to `x` as an i64; of a date and a number of days, the date that many days earlier. Integers wrap around, and so do dates with days of 32 bits; with days of 64 bits, a difference that no date can hold is an error. With a timestamp or a duration, the operator is `duration.subtract`.",
    meaning: Meaning::Overloads(&[
        strict!(|x: i32, y: i32| -> i32 { x.wrapping_sub(y) }, SUBTRACT_RULE),
        strict!(|x: i64, y: i64| -> i64 { x.wrapping_sub(y) }, SUBTRACT_RULE),
        strict!(|x: f32, y: f32| -> f32 { x - y }, SUBTRACT_RULE),
        strict!(|x: f64, y: f64| -> f64 { x - y }, SUBTRACT_RULE),
        strict!(|x: Date, y: i32| -> Date { Date(x.0.wrapping_sub(y)) }, SUBTRACT_RULE),
        strict!(|x: Date, y: Date| -> i64 { i64::from(x.0) - i64::from(y.0) }, DAYS_BETWEEN_RULE),
    ]),
    examples: &[
        ex("5 - 7", "-2"),
        ex("1f64 - 0.5", "f64{0.5}"),
        ex("date\"2026-11-20\" - date\"2026-01-01\"", "i64{323}"),
    ],
    derivative: Some(|d| {
        let minus = d.minus(d.cotangent)?;
        all([d.cotangent, minus])
    }),
    of_durations: Some(id::DURATION_SUBTRACT),
    of_long_days: Some(id::DATE_SUBTRACT_DAYS),
    ..BINARY
};

const MULTIPLY_RULE: Rule = |t, a| two(t, Bin::Mul, a);
pub(crate) static MULTIPLY: OpDef = OpDef {
    name: "math.multiply",
    aliases: &["multiply"],
    summary: "The product of two numbers. Integers wrap around.",
    meaning: Meaning::Overloads(&[
        strict!(|x: i32, y: i32| -> i32 { x.wrapping_mul(y) }, MULTIPLY_RULE),
        strict!(|x: i64, y: i64| -> i64 { x.wrapping_mul(y) }, MULTIPLY_RULE),
        strict!(|x: f32, y: f32| -> f32 { x * y }, MULTIPLY_RULE),
        strict!(|x: f64, y: f64| -> f64 { x * y }, MULTIPLY_RULE),
    ]),
    laws: &[Law::Commutative],
    examples: &[ex("6 * 7", "42"), ex("math.multiply(65536, 65536)", "0"), ex("3 * 0.5f32", "f64{1.5}")],
    derivative: Some(|d| {
        let [x, y] = [d.operands[0], d.operands[1]];
        all([d.times(y)?, d.times(x)?])
    }),
    of_durations: Some(id::DURATION_MULTIPLY),
    ..BINARY
};

const NEG_RULE: Rule = |t, a| one(t, Un::Neg, a);
pub(crate) static NEG: OpDef = OpDef {
    name: "math.neg",
    aliases: &["neg"],
    summary: "The number with the opposite sign. The smallest integer has no opposite and stays as it is.",
    meaning: Meaning::Overloads(&[
        strict!(|x: i32| -> i32 { x.wrapping_neg() }, NEG_RULE),
        strict!(|x: i64| -> i64 { x.wrapping_neg() }, NEG_RULE),
        strict!(|x: f32| -> f32 { -x }, NEG_RULE),
        strict!(|x: f64| -> f64 { -x }, NEG_RULE),
    ]),
    laws: &[Law::Involution],
    examples: &[ex("math.neg(5)", "-5"), ex("math.neg(0f32)", "-0.")],
    derivative: Some(|d| all([d.minus(d.cotangent)?])),
    of_durations: Some(id::DURATION_NEG),
    ..UNARY
};

const ABS_RULE: Rule = |t, a| one(t, Un::Abs, a);
pub(crate) static ABS: OpDef = OpDef {
    name: "math.abs",
    aliases: &["abs"],
    summary: "The magnitude of a number. The smallest integer has no positive counterpart and stays as it is.",
    meaning: Meaning::Overloads(&[
        strict!(|x: i32| -> i32 { x.wrapping_abs() }, ABS_RULE),
        strict!(|x: i64| -> i64 { x.wrapping_abs() }, ABS_RULE),
        strict!(|x: f32| -> f32 { x.abs() }, ABS_RULE),
        strict!(|x: f64| -> f64 { x.abs() }, ABS_RULE),
    ]),
    laws: &[Law::Idempotent],
    examples: &[ex("abs(-3)", "3"), ex("abs(-2147483648)", "-2147483648"), ex("abs(-0f32)", "0.")],
    derivative: Some(|d| {
        let (x, zero) = (d.operands[0], d.number(0.0));
        let sign = d.apply(id::SIGN, &[x])?;
        // At 0 there is no cotangent.
        let exists = d.apply(id::BOOL_NOT_EQUAL, &[x, zero])?;
        all([Cotangent { value: d.times(sign)?, exists: Some(exists) }])
    }),
    of_durations: Some(id::DURATION_ABS),
    ..UNARY
};

pub(crate) static POS: OpDef = OpDef {
    name: "math.pos",
    aliases: &["pos"],
    summary: "The number or duration itself.",
    meaning: Meaning::Overloads(&[
        strict!(|x: i32| -> i32 { x }, SAME),
        strict!(|x: i64| -> i64 { x }, SAME),
        strict!(|x: f32| -> f32 { x }, SAME),
        strict!(|x: f64| -> f64 { x }, SAME),
        strict!(|x: Duration| -> Duration { x }, SAME),
    ]),
    laws: &[Law::Idempotent],
    examples: &[ex("math.pos(-3)", "-3")],
    derivative: Some(FIRST),
    ..UNARY
};

pub(crate) static FLOAT: OpDef = OpDef {
    name: "math.float",
    aliases: &["float"],
    summary: "The number as a float: an integer becomes an f64, or an f32 with `numbers f32`; a float stays as it is.",
    typing: Typing::Promote(Promotion::Float),
    meaning: Meaning::Overloads(&[strict!(|x: f32| -> f32 { x }, SAME), strict!(|x: f64| -> f64 { x }, SAME)]),
    laws: &[Law::Idempotent],
    examples: &[ex("float(16777217)", "f64{16777217}"), ex("float(0.1f64)", "f64{0.1}")],
    derivative: Some(FIRST),
    ..UNARY
};

const ADD4_RULE: Rule = |t, a| {
    let mut sum = a[0].val(t);
    for term in &a[1..] {
        let term = term.val(t);
        sum = t.bin(Bin::Add, sum, term);
    }
    Cell::num(sum)
};
pub(crate) static ADD4: OpDef = OpDef {
    name: "math._add4",
    summary: "The sum of four numbers, added from left to right. Integers wrap around.",
    params: &[param("a"), param("b"), param("c"), param("d")],
    meaning: Meaning::Overloads(&[
        strict!(
            |a: i32, b: i32, c: i32, d: i32| -> i32 { a.wrapping_add(b).wrapping_add(c).wrapping_add(d) },
            ADD4_RULE
        ),
        strict!(
            |a: i64, b: i64, c: i64, d: i64| -> i64 { a.wrapping_add(b).wrapping_add(c).wrapping_add(d) },
            ADD4_RULE
        ),
        strict!(|a: f32, b: f32, c: f32, d: f32| -> f32 { a + b + c + d }, ADD4_RULE),
        strict!(|a: f64, b: f64, c: f64, d: f64| -> f64 { a + b + c + d }, ADD4_RULE),
    ]),
    examples: &[ex("math._add4(1, 2, 3, 4)", "10"), ex("math._add4(1f32, 1e20, -1e20, 1)", "f64{1}")],
    derivative: Some(|d| all([d.cotangent; 4])),
    ..UNARY
};

const SIGN_RULE: Rule = |t, a| {
    let x = a[0].val(t);
    let (zero, one, minus) = (t.konst_like(x, 0.0), t.konst_like(x, 1.0), t.konst_like(x, -1.0));
    let above = t.cmp(Cmp::Gt, x, zero);
    let below = t.cmp(Cmp::Lt, x, zero);
    let not_below = t.select(below, minus, zero);
    let sign = t.select(above, one, not_below);
    if matches!(t.ty(x), MachineType::F32 | MachineType::F64) {
        let nan = t.is_nan(x);
        return Cell::num(t.select_rare(nan, x, sign));
    }
    Cell::num(sign)
};

macro_rules! float_sign {
    ($x:expr) => {
        if $x > 0.0 {
            1.0
        } else if $x < 0.0 {
            -1.0
        } else if $x == 0.0 {
            0.0
        } else {
            $x
        }
    };
}

pub(crate) static SIGN: OpDef = OpDef {
    name: "math.sign",
    aliases: &["sign"],
    summary: "-1, 0 or 1 if the number is negative, zero or positive; NaN for NaN. The sign of a negative zero is 0.",
    meaning: Meaning::Overloads(&[
        strict!(|x: i32| -> i32 { x.signum() }, SIGN_RULE),
        strict!(|x: i64| -> i64 { x.signum() }, SIGN_RULE),
        strict!(|x: f32| -> f32 { float_sign!(x) }, SIGN_RULE),
        strict!(|x: f64| -> f64 { float_sign!(x) }, SIGN_RULE),
    ]),
    laws: &[Law::Idempotent],
    examples: &[ex("sign(-7)", "-1"), ex("sign(-0f32)", "0."), ex("sign(2.5f64)", "f64{1}")],
    derivative: Some(FLAT),
    ..UNARY
};
