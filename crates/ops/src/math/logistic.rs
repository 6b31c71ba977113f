//! Conversions between probabilities and log-odds (`math.sigmoid`, `math.logit`), and a logarithm for both signs
//! (`math.symlog1p`). They are combinations of exponentials and logarithms, and each step is rounded in the working
//! precision. Integers become FLOAT32.

use super::exponential::{FUNCTION, call};
use crate::definition::{Meaning, OpDef, Typing, UNARY, ex, param, param_or};
use crate::derivative::all;
use crate::kernel::strict;
use crate::{Promotion, Rule, id};
use cembra_runtime::{RuntimeFn, math};
use cembra_tape::{Bin, Cell, Cmp, Un};
use cembra_value::{ScalarValue, Value};

const SIGMOID_RULE: Rule = |t, a| {
    let (x, half, slope) = (a[0].val(t), a[1].val(t), a[2].val(t));
    let away = t.bin(Bin::Sub, half, x);
    let scaled = t.bin(Bin::Mul, slope, away);
    let exp = call(t, &[Cell::num(scaled)], RuntimeFn::ExpF32, RuntimeFn::ExpF64).val(t);
    let one = t.konst_like(x, 1.0);
    let below = t.bin(Bin::Add, one, exp);
    Cell::num(t.bin(Bin::Div, one, below))
};
pub(crate) static SIGMOID: OpDef = OpDef {
    name: "math.sigmoid",
    aliases: &["sigmoid"],
    summary: "The logistic function `1 / (1 + exp(slope * (half - x)))`: 0.5 where `x` is `half`, and steeper for a larger `slope`.",
    params: &[
        param("x"),
        param_or("half", Value::Scalar(ScalarValue::Float32(0.0))),
        param_or("slope", Value::Scalar(ScalarValue::Float32(1.0))),
    ],
    typing: Typing::Promote(Promotion::Float),
    meaning: Meaning::Overloads(&[
        strict!(
            |x: f32, half: f32, slope: f32| -> f32 { 1.0 / (1.0 + math::exp_f32(slope * (half - x))) },
            SIGMOID_RULE
        ),
        strict!(
            |x: f64, half: f64, slope: f64| -> f64 { 1.0 / (1.0 + math::exp_f64(slope * (half - x))) },
            SIGMOID_RULE
        ),
    ]),
    examples: &[
        ex("sigmoid(0)", "f64{0.5}"),
        ex("sigmoid(3f64, 3, 2)", "f64{0.5}"),
        ex("sigmoid(1e9)", "weak_float{1}"),
    ],
    derivative: Some(|d| {
        let [x, half, slope] = [d.operands[0], d.operands[1], d.operands[2]];
        let one = d.number(1.0);
        let rest = d.apply(id::SUBTRACT, &[one, d.result])?;
        let steepness = d.apply(id::MULTIPLY, &[d.result, rest])?;
        // Far from `half` the steepness goes to 0 faster than the distance, or the slope, grows.
        let by_x = d.apply(id::MULTIPLY, &[steepness, slope])?;
        let is_tame = d.literal(slope).is_some_and(f64::is_finite);
        let by_x = if is_tame { by_x } else { d.or_zero(steepness, by_x)? };
        let of_x = d.times(by_x)?;
        let distance = d.apply(id::SUBTRACT, &[x, half])?;
        let by_slope = d.apply(id::MULTIPLY, &[steepness, distance])?;
        let by_slope = d.or_zero(steepness, by_slope)?;
        all([of_x, d.minus(of_x)?, d.times(by_slope)?])
    }),
    ..UNARY
};

const LOGIT_RULE: Rule = |t, a| {
    let p = a[0].val(t);
    let log = call(t, a, RuntimeFn::LogF32, RuntimeFn::LogF64).val(t);
    let minus = t.un(Un::Neg, p);
    let rest = call(t, &[Cell::num(minus)], RuntimeFn::Log1pF32, RuntimeFn::Log1pF64).val(t);
    Cell::num(t.bin(Bin::Sub, log, rest))
};
pub(crate) static LOGIT: OpDef = OpDef {
    name: "math.logit",
    aliases: &["logit"],
    summary: "The logarithm of the odds of a probability, `log(x) - log1p(-x)`: -inf at 0, inf at 1, NaN below 0 and above 1.",
    meaning: Meaning::Overloads(&[
        strict!(|x: f32| -> f32 { math::log_f32(x) - math::log1p_f32(-x) }, LOGIT_RULE),
        strict!(|x: f64| -> f64 { math::log_f64(x) - math::log1p_f64(-x) }, LOGIT_RULE),
    ]),
    examples: &[
        ex("logit(0.5f32)", "0."),
        ex("logit(1)", "f64{inf}"),
        ex("logit(0f64)", "f64{-inf}"),
        ex("logit(2)", "f64{nan}"),
    ],
    derivative: Some(|d| {
        let (p, one) = (d.without_minus_zero(d.operands[0])?, d.number(1.0));
        let rest = d.apply(id::SUBTRACT, &[one, p])?;
        let product = d.apply(id::MULTIPLY, &[p, rest])?;
        all([d.over(product)?])
    }),
    ..FUNCTION
};

const LOG_SIGMOID_RULE: Rule = |t, a| {
    let x = a[0].val(t);
    // Both branches are `base - log1p(exp(-|x|))`. Subtracting from minus zero gives exactly the negative.
    let magnitude = t.un(Un::Abs, x);
    let minus = t.un(Un::Neg, magnitude);
    let exp = call(t, &[Cell::num(minus)], RuntimeFn::ExpF32, RuntimeFn::ExpF64);
    let log = call(t, &[exp], RuntimeFn::Log1pF32, RuntimeFn::Log1pF64).val(t);
    let (zero, minus_zero) = (t.konst_like(x, 0.0), t.konst_like(x, -0.0));
    let positive = t.cmp(Cmp::Ge, x, zero);
    let base = t.select(positive, minus_zero, x);
    Cell::num(t.bin(Bin::Sub, base, log))
};
pub(crate) static LOG_SIGMOID: OpDef = OpDef {
    name: "math.log_sigmoid",
    aliases: &["log_sigmoid"],
    summary: "The logarithm of `sigmoid(x)`, without overflow.",
    meaning: Meaning::Overloads(&[
        strict!(
            |x: f32| -> f32 {
                if x >= 0.0 { -math::log1p_f32(math::exp_f32(-x)) } else { x - math::log1p_f32(math::exp_f32(x)) }
            },
            LOG_SIGMOID_RULE
        ),
        strict!(
            |x: f64| -> f64 {
                if x >= 0.0 { -math::log1p_f64(math::exp_f64(-x)) } else { x - math::log1p_f64(math::exp_f64(x)) }
            },
            LOG_SIGMOID_RULE
        ),
    ]),
    examples: &[ex("log_sigmoid(-1000)", "f64{-1000}"), ex("log_sigmoid(0f64)", "f64{-0.6931471805599453}")],
    derivative: Some(|d| {
        let minus = d.minus(d.operands[0])?;
        let [half, slope] = [d.number(0.0), d.number(1.0)];
        let rest = d.apply(id::SIGMOID, &[minus, half, slope])?;
        all([d.times(rest)?])
    }),
    ..FUNCTION
};

const SYMLOG1P_RULE: Rule = |t, a| {
    let x = a[0].val(t);
    let magnitude = t.un(Un::Abs, x);
    let log = call(t, &[Cell::num(magnitude)], RuntimeFn::Log1pF32, RuntimeFn::Log1pF64).val(t);
    Cell::num(t.bin(Bin::Copysign, log, x))
};
pub(crate) static SYMLOG1P: OpDef = OpDef {
    name: "math.symlog1p",
    aliases: &["symlog1p"],
    summary: "`log1p(x)`, continued to negative numbers by `-log1p(-x)`.",
    meaning: Meaning::Overloads(&[
        strict!(|x: f32| -> f32 { if x >= 0.0 { math::log1p_f32(x) } else { -math::log1p_f32(-x) } }, SYMLOG1P_RULE),
        strict!(|x: f64| -> f64 { if x >= 0.0 { math::log1p_f64(x) } else { -math::log1p_f64(-x) } }, SYMLOG1P_RULE),
    ]),
    examples: &[ex("symlog1p(-0f32)", "-0."), ex("symlog1p(-inf)", "weak_float{-inf}")],
    derivative: Some(|d| {
        let (magnitude, one) = (d.apply(id::ABS, &[d.operands[0]])?, d.number(1.0));
        let divisor = d.apply(id::ADD, &[one, magnitude])?;
        all([d.over(divisor)?])
    }),
    ..FUNCTION
};
