//! Trigonometry, in radians. Each function is one algorithm of the runtime, called or recorded; integers become FLOAT32.

use super::exponential::{call, function};
use crate::definition::{Meaning, OpDef, ex};
use crate::derivative::all;
use crate::kernel::strict;
use crate::{Rule, id};
use cembra_runtime::{RuntimeFn, math};

const SIN_RULE: Rule = |t, a| call(t, a, RuntimeFn::SinF32, RuntimeFn::SinF64);
pub(crate) static SIN: OpDef = function(
    "math.trig.sin",
    &["sin"],
    "The sine of an angle in radians; NaN for an infinity.",
    Meaning::Overloads(&[
        strict!(|x: f32| -> f32 { math::sin_f32(x) }, SIN_RULE),
        strict!(|x: f64| -> f64 { math::sin_f64(x) }, SIN_RULE),
    ]),
    &[ex("sin(0)", "0."), ex("sin(-0f64)", "f64{-0}"), ex("math.trig.sin(1 / 0)", "nan")],
)
.derived(|d| {
    let cosine = d.apply(id::COS, &[d.operands[0]])?;
    all([d.times(cosine)?])
});

const COS_RULE: Rule = |t, a| call(t, a, RuntimeFn::CosF32, RuntimeFn::CosF64);
pub(crate) static COS: OpDef = function(
    "math.trig.cos",
    &["cos"],
    "The cosine of an angle in radians; NaN for an infinity.",
    Meaning::Overloads(&[
        strict!(|x: f32| -> f32 { math::cos_f32(x) }, COS_RULE),
        strict!(|x: f64| -> f64 { math::cos_f64(x) }, COS_RULE),
    ]),
    &[ex("cos(0)", "1."), ex("cos(1 / 0)", "nan")],
)
.derived(|d| {
    let sine = d.apply(id::SIN, &[d.operands[0]])?;
    let product = d.times(sine)?;
    all([d.minus(product)?])
});

const SINH_RULE: Rule = |t, a| call(t, a, RuntimeFn::SinhF32, RuntimeFn::SinhF64);
pub(crate) static SINH: OpDef = function(
    "math.trig.sinh",
    &["sinh"],
    "The hyperbolic sine; overflows to an infinity.",
    Meaning::Overloads(&[
        strict!(|x: f32| -> f32 { math::sinh_f32(x) }, SINH_RULE),
        strict!(|x: f64| -> f64 { math::sinh_f64(x) }, SINH_RULE),
    ]),
    &[ex("sinh(0)", "0."), ex("sinh(-1000)", "-inf")],
)
.derived(|d| {
    // The hyperbolic cosine, whose square is that of the sine and 1.
    let square = d.apply(id::TENSOR_SQUARE, &[d.result])?;
    let one = d.number(1.0);
    let square = d.apply(id::ADD, &[one, square])?;
    let slope = d.apply(id::SQRT, &[square])?;
    all([d.times(slope)?])
});

const TANH_RULE: Rule = |t, a| call(t, a, RuntimeFn::TanhF32, RuntimeFn::TanhF64);
pub(crate) static TANH: OpDef = function(
    "math.tanh",
    &["tanh"],
    "The hyperbolic tangent, between -1 and 1.",
    Meaning::Overloads(&[
        strict!(|x: f32| -> f32 { math::tanh_f32(x) }, TANH_RULE),
        strict!(|x: f64| -> f64 { math::tanh_f64(x) }, TANH_RULE),
    ]),
    &[
        ex("tanh(0.5f32)", "0.46211717"),
        ex("tanh(-0f32)", "-0."),
        ex("tanh(-1 / 0)", "-1."),
        ex("tanh([20, missing])", "[1, NA]"),
    ],
)
.derived(|d| {
    let square = d.apply(id::TENSOR_SQUARE, &[d.result])?;
    let one = d.number(1.0);
    let slope = d.apply(id::SUBTRACT, &[one, square])?;
    all([d.times(slope)?])
});

const ATAN_RULE: Rule = |t, a| call(t, a, RuntimeFn::AtanF32, RuntimeFn::AtanF64);
pub(crate) static ATAN: OpDef = function(
    "math.trig.atan",
    &["atan"],
    "The angle between -pi/2 and pi/2, in radians, whose tangent is `x`.",
    Meaning::Overloads(&[
        strict!(|x: f32| -> f32 { math::atan_f32(x) }, ATAN_RULE),
        strict!(|x: f64| -> f64 { math::atan_f64(x) }, ATAN_RULE),
    ]),
    &[ex("atan(0)", "0."), ex("atan(1 / 0)", "1.5707964")],
)
.derived(|d| {
    let square = d.apply(id::TENSOR_SQUARE, &[d.operands[0]])?;
    let one = d.number(1.0);
    let divisor = d.apply(id::ADD, &[one, square])?;
    all([d.over(divisor)?])
});
