//! Trigonometric functions, in radians. A tape calls a function of the runtime for each of them, or contains the
//! function inlined as instructions; integers become FLOAT32.

use super::exponential::{FUNCTION, call};
use crate::definition::{Meaning, OpDef, ex, param};
use crate::derivative::all;
use crate::kernel::strict;
use crate::{Rule, id};
use cembra_runtime::{MachineType, RuntimeFn, math};
use cembra_tape::Cell;

const SIN_RULE: Rule = |t, a| call(t, a, RuntimeFn::SinF32, RuntimeFn::SinF64);
pub(crate) static SIN: OpDef = OpDef {
    name: "math.trig.sin",
    aliases: &["sin"],
    summary: "The sine of an angle in radians; NaN for an infinity.",
    meaning: Meaning::Overloads(&[
        strict!(|x: f32| -> f32 { math::sin_f32(x) }, SIN_RULE),
        strict!(|x: f64| -> f64 { math::sin_f64(x) }, SIN_RULE),
    ]),
    examples: &[ex("sin(0)", "f64{0}"), ex("sin(-0f64)", "f64{-0}"), ex("math.trig.sin(1 / 0)", "f64{nan}")],
    derivative: Some(|d| {
        let cosine = d.apply(id::COS, &[d.operands[0]])?;
        all([d.times(cosine)?])
    }),
    ..FUNCTION
};

const COS_RULE: Rule = |t, a| call(t, a, RuntimeFn::CosF32, RuntimeFn::CosF64);
pub(crate) static COS: OpDef = OpDef {
    name: "math.trig.cos",
    aliases: &["cos"],
    summary: "The cosine of an angle in radians; NaN for an infinity.",
    meaning: Meaning::Overloads(&[
        strict!(|x: f32| -> f32 { math::cos_f32(x) }, COS_RULE),
        strict!(|x: f64| -> f64 { math::cos_f64(x) }, COS_RULE),
    ]),
    examples: &[ex("cos(0)", "f64{1}"), ex("cos(1 / 0)", "f64{nan}")],
    derivative: Some(|d| {
        let sine = d.apply(id::SIN, &[d.operands[0]])?;
        let product = d.times(sine)?;
        all([d.minus(product)?])
    }),
    ..FUNCTION
};

const SINH_RULE: Rule = |t, a| call(t, a, RuntimeFn::SinhF32, RuntimeFn::SinhF64);
pub(crate) static SINH: OpDef = OpDef {
    name: "math.trig.sinh",
    aliases: &["sinh"],
    summary: "The hyperbolic sine; a result that overflows is an infinity.",
    meaning: Meaning::Overloads(&[
        strict!(|x: f32| -> f32 { math::sinh_f32(x) }, SINH_RULE),
        strict!(|x: f64| -> f64 { math::sinh_f64(x) }, SINH_RULE),
    ]),
    examples: &[ex("sinh(0)", "f64{0}"), ex("sinh(-1000)", "f64{-inf}")],
    derivative: Some(|d| {
        // The slope is the hyperbolic cosine: the square root of 1 plus the square of the hyperbolic sine. Where the sine is
        // large, the cosine rounds to its magnitude, long before the square overflows.
        let square = d.apply(id::TENSOR_SQUARE, &[d.result])?;
        let (one, large) = (d.number(1.0), d.number(1e10));
        let square = d.apply(id::ADD, &[one, square])?;
        let root = d.apply(id::SQRT, &[square])?;
        let size = d.apply(id::ABS, &[d.result])?;
        let is_large = d.apply(id::BOOL_GREATER, &[size, large])?;
        let slope = d.apply(id::TENSOR_WHERE, &[is_large, size, root])?;
        all([d.times(slope)?])
    }),
    ..FUNCTION
};

const TANH_RULE: Rule = |t, a| call(t, a, RuntimeFn::TanhF32, RuntimeFn::TanhF64);
pub(crate) static TANH: OpDef = OpDef {
    name: "math.tanh",
    aliases: &["tanh"],
    summary: "The hyperbolic tangent, between -1 and 1.",
    meaning: Meaning::Overloads(&[
        strict!(|x: f32| -> f32 { math::tanh_f32(x) }, TANH_RULE),
        strict!(|x: f64| -> f64 { math::tanh_f64(x) }, TANH_RULE),
    ]),
    examples: &[
        ex("tanh(0.5f32)", "0.46211717"),
        ex("tanh(-0f32)", "-0."),
        ex("tanh(-1 / 0)", "f64{-1}"),
        ex("tanh([20, missing])", "[1, NA]"),
    ],
    derivative: Some(|d| {
        let square = d.apply(id::TENSOR_SQUARE, &[d.result])?;
        let one = d.number(1.0);
        let slope = d.apply(id::SUBTRACT, &[one, square])?;
        all([d.times(slope)?])
    }),
    ..FUNCTION
};

const ATAN_RULE: Rule = |t, a| call(t, a, RuntimeFn::AtanF32, RuntimeFn::AtanF64);
pub(crate) static ATAN: OpDef = OpDef {
    name: "math.trig.atan",
    aliases: &["atan"],
    summary: "The angle between -pi/2 and pi/2, in radians, whose tangent is `x`.",
    meaning: Meaning::Overloads(&[
        strict!(|x: f32| -> f32 { math::atan_f32(x) }, ATAN_RULE),
        strict!(|x: f64| -> f64 { math::atan_f64(x) }, ATAN_RULE),
    ]),
    examples: &[ex("atan(0)", "f64{0}"), ex("atan(1 / 0)", "f64{1.5707963267948966}")],
    derivative: Some(|d| {
        let square = d.apply(id::TENSOR_SQUARE, &[d.operands[0]])?;
        let one = d.number(1.0);
        let divisor = d.apply(id::ADD, &[one, square])?;
        all([d.over(divisor)?])
    }),
    ..FUNCTION
};

const ATAN2_RULE: Rule = |t, a| {
    let (y, x) = (a[0].val(t), a[1].val(t));
    let function = if t.ty(x) == MachineType::F32 { RuntimeFn::Atan2F32 } else { RuntimeFn::Atan2F64 };
    Cell::num(t.function(function, &[y, x]))
};
pub(crate) static ATAN2: OpDef = OpDef {
    name: "math.trig.atan2",
    aliases: &["atan2"],
    summary: "The angle of the point with the coordinates `x` and `y`, in radians from -pi to pi, with the special cases of C's `atan2` for zeros and infinities.",
    params: const { &[param("y"), param("x")] },
    meaning: Meaning::Overloads(&[
        strict!(|y: f32, x: f32| -> f32 { math::atan2_f32(y, x) }, ATAN2_RULE),
        strict!(|y: f64, x: f64| -> f64 { math::atan2_f64(y, x) }, ATAN2_RULE),
    ]),
    examples: &[
        ex("atan2(1, -1)", "f64{2.356194490192345}"),
        ex("atan2(-0f64, -1f64)", "f64{-3.141592653589793}"),
        ex("atan2(0, 0)", "f64{0}"),
    ],
    derivative: Some(|d| {
        let [y, x] = [d.operands[0], d.operands[1]];
        let distance = d.apply(id::HYPOT, &[x, y])?;
        let mut slope = |side| {
            let ratio = d.apply(id::DIVIDE, &[side, distance])?;
            let slope = d.apply(id::DIVIDE, &[ratio, distance])?;
            d.times(slope)
        };
        let (of_y, of_x) = (slope(x)?, slope(y)?);
        all([of_y, d.minus(of_x)?])
    }),
    ..FUNCTION
};
