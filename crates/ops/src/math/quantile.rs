//! Quantiles of distributions. Machine code calls their kernels, because the algorithms are long and rarely used.

use crate::definition::{Meaning, OpDef, Typing, UNARY, ex, param};
use crate::derivative::all;
use crate::kernel::strict;
use crate::strings::invalid;
use crate::{Promotion, id};
use cembra_runtime::{FaultKind, quantile};

const QUANTILE: OpDef = OpDef { faults: &[FaultKind::Invalid], typing: Typing::Promote(Promotion::Float), ..UNARY };

const NORMAL_DOMAIN: &str = "a normal quantile needs a probability from 0 to 1";
pub(crate) static NORMAL_INVERSE_CDF: OpDef = OpDef {
    name: "math.normal_distribution_inverse_cdf",
    aliases: &["normal_distribution_inverse_cdf"],
    summary: "The number below which a standard normal variable lies with probability `x`: -inf at 0, inf at 1. An error unless `x` is from 0 to 1.",
    params: const { &[param("x")] },
    meaning: Meaning::Overloads(&[
        strict!(try |x: f32| -> f32 {
            quantile::normal(f64::from(x)).map(|z| z as f32).ok_or_else(|| invalid(NORMAL_DOMAIN))
        }),
        strict!(try |x: f64| -> f64 { quantile::normal(x).ok_or_else(|| invalid(NORMAL_DOMAIN)) }),
    ]),
    examples: &[
        ex("normal_distribution_inverse_cdf(0.5f32)", "0."),
        ex("normal_distribution_inverse_cdf(0f64)", "f64{-inf}"),
        ex("normal_distribution_inverse_cdf(0.975f64)", "f64{1.9599639845400538}"),
    ],
    derivative: Some(|d| {
        // The slope is one divided by the density at the quantile.
        let square = d.apply(id::MULTIPLY, &[d.result, d.result])?;
        let (half, scale) = (d.number(0.5), d.number(2.506_628_274_631_000_5));
        let exponent = d.apply(id::MULTIPLY, &[half, square])?;
        let growth = d.apply(id::EXP, &[exponent])?;
        let slope = d.apply(id::MULTIPLY, &[scale, growth])?;
        all([d.times(slope)?])
    }),
    ..QUANTILE
};

const T_DOMAIN: &str = "a quantile of Student's t needs a probability from 0 to 1 and positive degrees of freedom";
pub(crate) static T_INVERSE_CDF: OpDef = OpDef {
    name: "math.t_distribution_inverse_cdf",
    aliases: &["t_distribution_inverse_cdf"],
    summary: "The number below which a variable of Student's t distribution with `df` degrees of freedom lies with probability `x`. An error unless `x` is a probability and `df` is positive and finite.",
    params: const { &[param("x"), param("df")] },
    meaning: Meaning::Overloads(&[
        strict!(try |x: f32, df: f32| -> f32 {
            let t = quantile::student_t(f64::from(x), f64::from(df));
            t.map(|t| t as f32).ok_or_else(|| invalid(T_DOMAIN))
        }),
        strict!(try |x: f64, df: f64| -> f64 { quantile::student_t(x, df).ok_or_else(|| invalid(T_DOMAIN)) }),
    ]),
    examples: &[
        ex("t_distribution_inverse_cdf(0.5, 3)", "f64{0}"),
        ex("t_distribution_inverse_cdf(0.75, 1)", "f64{1}"),
        ex("t_distribution_inverse_cdf(1, 7)", "f64{inf}"),
    ],
    ..QUANTILE
};

const BETA_DOMAIN: &str = "a beta quantile needs a probability from 0 to 1 and positive shapes";
pub(crate) static BETA_INVERSE_CDF: OpDef = OpDef {
    name: "math.beta_distribution_inverse_cdf",
    aliases: &["beta_distribution_inverse_cdf"],
    summary: "The number below which a variable of the beta distribution with the shapes `alpha` and `beta` lies with probability `x`. An error unless `x` is a probability and the shapes are positive and finite.",
    params: const { &[param("x"), param("alpha"), param("beta")] },
    meaning: Meaning::Overloads(&[
        strict!(try |x: f32, alpha: f32, beta: f32| -> f32 {
            let value = quantile::beta(f64::from(x), f64::from(alpha), f64::from(beta));
            value.map(|value| value as f32).ok_or_else(|| invalid(BETA_DOMAIN))
        }),
        strict!(try |x: f64, alpha: f64, beta: f64| -> f64 {
            quantile::beta(x, alpha, beta).ok_or_else(|| invalid(BETA_DOMAIN))
        }),
    ]),
    examples: &[
        ex("beta_distribution_inverse_cdf(0.25, 1, 1)", "f64{0.25}"),
        ex("beta_distribution_inverse_cdf(1f64, 3, 3)", "f64{1}"),
    ],
    ..QUANTILE
};
