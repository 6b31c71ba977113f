//! The error function, its complement and the normal distribution. A tape calls a function of the runtime for each of
//! them, or contains the function inlined as instructions; integers become FLOAT32.

use super::exponential::{FUNCTION, call};
use crate::definition::{Meaning, OpDef, ex};
use crate::derivative::{Cotangents, DerivativeCall, all};
use crate::kernel::strict;
use crate::typing::TypeFault;
use crate::{Rule, id};
use cembra_runtime::{RuntimeFn, math};

/// The cotangent of an operand `x` if the derivative of the operator is `scale * exp(rate * x^2)`, a bell curve.
fn bell(d: &mut DerivativeCall<'_>, scale: f64, rate: f64) -> Result<Cotangents, TypeFault> {
    let square = d.apply(id::TENSOR_SQUARE, &[d.operands[0]])?;
    let (scale, rate) = (d.number(scale), d.number(rate));
    let exponent = d.apply(id::MULTIPLY, &[rate, square])?;
    let power = d.apply(id::EXP, &[exponent])?;
    let slope = d.apply(id::MULTIPLY, &[scale, power])?;
    all([d.times(slope)?])
}

const ERF_RULE: Rule = |t, a| call(t, a, RuntimeFn::ErfF32, RuntimeFn::ErfF64);
pub(crate) static ERF: OpDef = OpDef {
    name: "math.erf",
    aliases: &["erf"],
    summary: "The error function: the probability that a normal variable with the variance 1/2 lies between `-x` and `x`, with the sign of `x`.",
    meaning: Meaning::Overloads(&[
        strict!(|x: f32| -> f32 { math::erf_f32(x) }, ERF_RULE),
        strict!(|x: f64| -> f64 { math::erf_f64(x) }, ERF_RULE),
    ]),
    examples: &[
        ex("erf(0.5f64)", "f64{0.5204998778130465}"),
        ex("erf(-0f32)", "-0."),
        ex("erf([-1 / 0, missing])", "[-1, NA]"),
    ],
    derivative: Some(|d| bell(d, std::f64::consts::FRAC_2_SQRT_PI, -1.0)),
    ..FUNCTION
};

const ERFC_RULE: Rule = |t, a| call(t, a, RuntimeFn::ErfcF32, RuntimeFn::ErfcF64);
pub(crate) static ERFC: OpDef = OpDef {
    name: "math.erfc",
    aliases: &["erfc"],
    summary: "`1 - erf(x)`, without cancellation for large `x`: 2 at -inf, 0 at inf.",
    meaning: Meaning::Overloads(&[
        strict!(|x: f32| -> f32 { math::erfc_f32(x) }, ERFC_RULE),
        strict!(|x: f64| -> f64 { math::erfc_f64(x) }, ERFC_RULE),
    ]),
    examples: &[ex("erfc(0)", "f64{1}"), ex("erfc(2f64)", "f64{0.004677734981047266}")],
    derivative: Some(|d| bell(d, -std::f64::consts::FRAC_2_SQRT_PI, -1.0)),
    ..FUNCTION
};

const NORMAL_CDF_RULE: Rule = |t, a| call(t, a, RuntimeFn::NormalCdfF32, RuntimeFn::NormalCdfF64);
pub(crate) static NORMAL_CDF: OpDef = OpDef {
    name: "math.normal_distribution_cdf",
    aliases: &["normal_distribution_cdf"],
    summary: "The probability that a standard normal variable is at most `x`, accurate in both tails.",
    meaning: Meaning::Overloads(&[
        strict!(|x: f32| -> f32 { math::normal_cdf_f32(x) }, NORMAL_CDF_RULE),
        strict!(|x: f64| -> f64 { math::normal_cdf_f64(x) }, NORMAL_CDF_RULE),
    ]),
    examples: &[
        ex("normal_distribution_cdf(0)", "f64{0.5}"),
        ex("normal_distribution_cdf(1.96f64)", "f64{0.9750021048517795}"),
        ex("normal_distribution_cdf(-6f64)", "f64{0.000000000986587645037698}"),
    ],
    derivative: Some(|d| bell(d, 0.398_942_280_401_432_7, -0.5)),
    ..FUNCTION
};
