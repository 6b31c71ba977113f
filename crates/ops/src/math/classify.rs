//! Operators that test whether numbers are NaN, infinite or finite. The results are masks. The result for an integer is
//! known from its type: it is finite.

use crate::Rule;
use crate::definition::{Meaning, OpDef, UNARY, ex};
use crate::kernel::{MaskValue, mask, strict};
use cembra_tape::{Cell, Cmp, Datum, Presence, Un};

const NEVER: Rule = |_, _| Cell { presence: Presence::Missing, datum: Datum::Unit };
const ALWAYS: Rule = |_, _| Cell::present(Datum::Unit);

const IS_NAN_RULE: Rule = |t, a| {
    let x = a[0].val(t);
    Cell::mask(t.is_nan(x))
};
pub(crate) static IS_NAN: OpDef = OpDef {
    name: "math.is_nan",
    aliases: &["is_nan"],
    summary: "Present if `x` is NaN.",
    meaning: Meaning::Overloads(&[
        strict!(|_x: i32| -> MaskValue { None }, NEVER),
        strict!(|_x: i64| -> MaskValue { None }, NEVER),
        strict!(|x: f32| -> MaskValue { mask(x.is_nan()) }, IS_NAN_RULE),
        strict!(|x: f64| -> MaskValue { mask(x.is_nan()) }, IS_NAN_RULE),
    ]),
    examples: &[ex("is_nan(nan)", "present"), ex("is_nan(1)", "missing")],
    ..UNARY
};

const IS_INF_RULE: Rule = |t, a| {
    let x = a[0].val(t);
    let magnitude = t.un(Un::Abs, x);
    let inf = t.konst_like(x, f64::INFINITY);
    Cell::mask(t.cmp(Cmp::Eq, magnitude, inf))
};
pub(crate) static IS_INF: OpDef = OpDef {
    name: "math.is_inf",
    aliases: &["is_inf"],
    summary: "Present if `x` is an infinity.",
    meaning: Meaning::Overloads(&[
        strict!(|_x: i32| -> MaskValue { None }, NEVER),
        strict!(|_x: i64| -> MaskValue { None }, NEVER),
        strict!(|x: f32| -> MaskValue { mask(x.is_infinite()) }, IS_INF_RULE),
        strict!(|x: f64| -> MaskValue { mask(x.is_infinite()) }, IS_INF_RULE),
    ]),
    examples: &[ex("is_inf(-1 / 0)", "present"), ex("is_inf(nan)", "missing")],
    ..UNARY
};

const IS_FINITE_RULE: Rule = |t, a| {
    let x = a[0].val(t);
    let magnitude = t.un(Un::Abs, x);
    let inf = t.konst_like(x, f64::INFINITY);
    Cell::mask(t.cmp(Cmp::Lt, magnitude, inf))
};
pub(crate) static IS_FINITE: OpDef = OpDef {
    name: "math.is_finite",
    aliases: &["is_finite"],
    summary: "Present if `x` is neither infinite nor NaN. For an integer that is not optional the result is of type `unit`, which is always present.",
    meaning: Meaning::Overloads(&[
        strict!(|_x: i32| -> () {}, ALWAYS),
        strict!(|_x: i64| -> () {}, ALWAYS),
        strict!(|x: f32| -> MaskValue { mask(x.is_finite()) }, IS_FINITE_RULE),
        strict!(|x: f64| -> MaskValue { mask(x.is_finite()) }, IS_FINITE_RULE),
    ]),
    examples: &[ex("is_finite(1)", "unit"), ex("is_finite(inf)", "missing"), ex("is_finite(missing[i32])", "missing")],
    ..UNARY
};
