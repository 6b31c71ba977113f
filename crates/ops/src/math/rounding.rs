//! Rounding to whole numbers. The type stays the same, and integers do not change. Rounding to decimal digits is in
//! `decimal.rs`.

use crate::Rule;
use crate::definition::{Law, Meaning, OpDef, UNARY, ex};
use crate::derivative::FLAT;
use crate::kernel::{SAME, one, strict};
use cembra_tape::{Bin, Cell, Cmp, Un};

const ROUNDING: OpDef = OpDef { laws: &[Law::Idempotent], ..UNARY };

const FLOOR_RULE: Rule = |t, a| one(t, Un::Floor, a);
pub(crate) static FLOOR: OpDef = OpDef {
    name: "math.floor",
    summary: "The largest whole number that is not greater than `x`.",
    meaning: Meaning::Overloads(&[
        strict!(|x: i32| -> i32 { x }, SAME),
        strict!(|x: i64| -> i64 { x }, SAME),
        strict!(|x: f32| -> f32 { x.floor() }, FLOOR_RULE),
        strict!(|x: f64| -> f64 { x.floor() }, FLOOR_RULE),
    ]),
    examples: &[ex("math.floor(-2.5f32)", "-3."), ex("math.floor(7)", "7")],
    derivative: Some(FLAT),
    ..ROUNDING
};

const CEIL_RULE: Rule = |t, a| one(t, Un::Ceil, a);
pub(crate) static CEIL: OpDef = OpDef {
    name: "math.ceil",
    summary: "The smallest whole number that is not less than `x`; `ceil(-0.5)` is `-0.0`.",
    meaning: Meaning::Overloads(&[
        strict!(|x: i32| -> i32 { x }, SAME),
        strict!(|x: i64| -> i64 { x }, SAME),
        strict!(|x: f32| -> f32 { x.ceil() }, CEIL_RULE),
        strict!(|x: f64| -> f64 { x.ceil() }, CEIL_RULE),
    ]),
    examples: &[ex("math.ceil(2.1f32)", "3."), ex("math.ceil(-0.5f32)", "-0.")],
    derivative: Some(FLAT),
    ..ROUNDING
};

// Half away from zero: the whole part, and one more in the direction of x if at least a half was cut off. The part that was cut
// off is exact; for infinities and NaN the comparison fails and the whole part is the result.
const ROUND_RULE: Rule = |t, a| {
    let x = a[0].val(t);
    let whole = t.un(Un::Trunc, x);
    let cut = t.bin(Bin::Sub, x, whole);
    let cut = t.un(Un::Abs, cut);
    let half = t.konst_like(x, 0.5);
    let away = t.cmp(Cmp::Ge, cut, half);
    let one = t.konst_like(x, 1.0);
    let step = t.bin(Bin::Copysign, one, x);
    let moved = t.bin(Bin::Add, whole, step);
    Cell::num(t.select(away, moved, whole))
};
pub(crate) static ROUND: OpDef = OpDef {
    name: "math.round",
    summary: "The nearest whole number; halves are rounded away from zero.",
    meaning: Meaning::Overloads(&[
        strict!(|x: i32| -> i32 { x }, SAME),
        strict!(|x: i64| -> i64 { x }, SAME),
        strict!(|x: f32| -> f32 { x.round() }, ROUND_RULE),
        strict!(|x: f64| -> f64 { x.round() }, ROUND_RULE),
    ]),
    examples: &[ex("round(2.5f32)", "3."), ex("round(-2.5f32)", "-3."), ex("round(-0.4f32)", "-0.")],
    derivative: Some(FLAT),
    ..ROUNDING
};

const TRUNC_RULE: Rule = |t, a| one(t, Un::Trunc, a);
pub(crate) static TRUNC: OpDef = OpDef {
    name: "math.trunc",
    aliases: &["tensor.trunc"],
    summary: "The number rounded to a whole number towards zero; `trunc(-0.5)` is `-0.0`.",
    meaning: Meaning::Overloads(&[
        strict!(|x: i32| -> i32 { x }, SAME),
        strict!(|x: i64| -> i64 { x }, SAME),
        strict!(|x: f32| -> f32 { x.trunc() }, TRUNC_RULE),
        strict!(|x: f64| -> f64 { x.trunc() }, TRUNC_RULE),
    ]),
    examples: &[ex("math.trunc(-2.5f32)", "-2."), ex("math.trunc(-0.5f64)", "f64{-0}")],
    derivative: Some(FLAT),
    ..ROUNDING
};
