//! Questions about floats: NaN, infinite, finite. The answers are masks. Integers are always finite, and say so by type.

use crate::definition::{Meaning, OpDef, Typing, UNARY, ex};
use crate::kernel::{MaskValue, mask, strict};
use crate::{Example, Promotion, Rule};
use cembra_tape::{Cell, Cmp, Datum, Presence, Un};

const fn question(
    name: &'static str,
    aliases: &'static [&'static str],
    summary: &'static str,
    meaning: Meaning,
    examples: &'static [Example],
) -> OpDef {
    OpDef { name, aliases, summary, typing: Typing::Promote(Promotion::Numeric), meaning, examples, ..UNARY }
}

const NEVER: Rule = |_, _| Cell { presence: Presence::Missing, datum: Datum::Unit };
const ALWAYS: Rule = |_, _| Cell::present(Datum::Unit);

const IS_NAN_RULE: Rule = |t, a| {
    let x = a[0].val(t);
    Cell::mask(t.is_nan(x))
};
pub(crate) static IS_NAN: OpDef = question(
    "math.is_nan",
    &["is_nan"],
    "Present if `x` is NaN.",
    Meaning::Overloads(&[
        strict!(|_x: i32| -> MaskValue { None }, NEVER),
        strict!(|_x: i64| -> MaskValue { None }, NEVER),
        strict!(|x: f32| -> MaskValue { mask(x.is_nan()) }, IS_NAN_RULE),
        strict!(|x: f64| -> MaskValue { mask(x.is_nan()) }, IS_NAN_RULE),
    ]),
    &[ex("is_nan(nan)", "present"), ex("is_nan(1)", "missing")],
);

const IS_INF_RULE: Rule = |t, a| {
    let x = a[0].val(t);
    let magnitude = t.un(Un::Abs, x);
    let inf = t.konst_like(x, f64::INFINITY);
    Cell::mask(t.cmp(Cmp::Eq, magnitude, inf))
};
pub(crate) static IS_INF: OpDef = question(
    "math.is_inf",
    &["is_inf"],
    "Present if `x` is an infinity.",
    Meaning::Overloads(&[
        strict!(|_x: i32| -> MaskValue { None }, NEVER),
        strict!(|_x: i64| -> MaskValue { None }, NEVER),
        strict!(|x: f32| -> MaskValue { mask(x.is_infinite()) }, IS_INF_RULE),
        strict!(|x: f64| -> MaskValue { mask(x.is_infinite()) }, IS_INF_RULE),
    ]),
    &[ex("is_inf(-1 / 0)", "present"), ex("is_inf(nan)", "missing")],
);

const IS_FINITE_RULE: Rule = |t, a| {
    let x = a[0].val(t);
    let magnitude = t.un(Un::Abs, x);
    let inf = t.konst_like(x, f64::INFINITY);
    Cell::mask(t.cmp(Cmp::Lt, magnitude, inf))
};
pub(crate) static IS_FINITE: OpDef = question(
    "math.is_finite",
    &["is_finite"],
    "Present if `x` is neither infinite nor NaN. For a plain integer the result is a unit, present by type.",
    Meaning::Overloads(&[
        strict!(|_x: i32| -> () {}, ALWAYS),
        strict!(|_x: i64| -> () {}, ALWAYS),
        strict!(|x: f32| -> MaskValue { mask(x.is_finite()) }, IS_FINITE_RULE),
        strict!(|x: f64| -> MaskValue { mask(x.is_finite()) }, IS_FINITE_RULE),
    ]),
    &[ex("is_finite(1)", "unit"), ex("is_finite(inf)", "missing"), ex("is_finite(missing[i32])", "missing")],
);
