//! Logarithms: `x = 2^e m` with the mantissa `m` from sqrt 1/2 to sqrt 2, and `ln m = 2 artanh s` with `s = (m-1) / (m+1)`: one division and a short
//! series. Zeros, infinities, NaNs, negative and subnormal numbers are rare arguments, which `rare.rs` computes. `single.rs` has the functions for
//! binary32.

use super::arithmetic::{Arithmetic, add, less_from, mul, polynomial, sub, times_plus};
use crate::RuntimeFn;
use std::f64::consts::{FRAC_1_SQRT_2, LOG2_E, LOG10_E};

/// Coefficients of the polynomial `series` in `2 artanh s = s (2 + z series)`, with `z = s^2`, to 2^-59.
const SERIES: [f64; 7] = [
    0.666_666_666_666_673_4,
    0.399_999_999_994_166_2,
    0.285_714_287_420_341_16,
    0.222_221_986_044_556_84,
    0.181_835_628_800_383_65,
    0.153_140_841_800_846_08,
    0.147_956_392_104_538_68,
];
/// The coefficients of [`SERIES`] for a precision of 2^-42.
pub(super) const LONG_SINGLE: [f64; 5] = [
    0.666_666_667_103_093_4,
    0.399_999_846_322_374_23,
    0.285_731_829_248_223_9,
    0.221_351_707_320_593_48,
    0.201_218_305_155_744_63,
];

/// `ln 2` as the sum of two numbers. The first has so few bits that its product with an exponent is exact; the second is the
/// rest.
pub(super) const LN_2_CUT: [f64; 2] = [0.693_147_180_559_663, 2.823_529_056_303_157_7e-13];
const LOG10_2_CUT: [f64; 2] = [0.301_029_995_663_839_14, 1.420_502_322_726_61e-13];
/// The rounding errors of the logarithms of e to base 2 and 10.
const LOG2_E_LOW: f64 = 2.035_527_374_093_103_3e-17;
const LOG10_E_LOW: f64 = 1.098_319_650_216_765e-17;

/// 2^52, the value of the exponent's lowest bit if the bits of a binary64 number are read as an integer.
pub(super) const PLACE: f64 = 4_503_599_627_370_496.0;

/// The exponent `e` and the mantissa `m` of a positive normal number `2^e m`.
pub(super) struct Parts<A: Arithmetic<f64>> {
    /// `-e`, shifted to the position of the exponent in the bits of a number.
    pub(super) field: A::Word,
    /// `-e` as a number times [`PLACE`]. For arguments that are not positive and normal (zero, subnormal, negative, infinite,
    /// NaN) its magnitude is at least 1022 times `PLACE`.
    pub(super) minus: A::Number,
    /// `m - 1`, exactly.
    pub(super) above: A::Number,
}

/// Splits a positive normal number `x` into exponent and mantissa. For other arguments only the exponent is meaningful.
#[inline(always)]
pub(super) fn parts<A: Arithmetic<f64>>(m: &mut A, x: A::Number) -> Parts<A> {
    const LEAST: u64 = FRAC_1_SQRT_2.to_bits() + 0xF_FFFF_FFFF_FFFF;
    let (bits, most, places) = (m.bits(x), m.word(LEAST), m.word(0xFFF << 52));
    let below = m.minus(most, bits);
    let field = m.and(below, places);
    let mantissa = m.plus(bits, field);
    let mantissa = m.number(mantissa);
    Parts { field, minus: m.count(field), above: sub(m, mantissa, 1.0) }
}

/// `s = (m-1) / (m+1)` and its square, for `above = m - 1`.
#[inline(always)]
pub(super) fn ratio<A: Arithmetic<f64>>(m: &mut A, above: A::Number) -> (A::Number, A::Number) {
    let sum = add(m, above, 2.0);
    let s = m.div(above, sum);
    (s, m.mul(s, s))
}

/// True where the magnitude of `exponent` is above `bound`. `exponent` must not be NaN.
#[inline(always)]
pub(super) fn beyond<F, A: Arithmetic<F>>(m: &mut A, exponent: A::Number, bound: F) -> A::Truth {
    let (magnitude, bound) = (m.abs(exponent), m.constant(bound));
    m.less(bound, magnitude)
}

/// An upper bound, times [`PLACE`], for the magnitude of the exponents of positive finite binary32 numbers, including subnormal
/// ones.
pub(super) const SINGLE_EXPONENTS: f64 = 1000.0 * PLACE;
/// A bound, times [`PLACE`]: a binary64 number whose exponent has a smaller magnitude is normal.
pub(super) const DOUBLE_EXPONENTS: f64 = 1021.5 * PLACE;

/// `m - 1` where `1 + x = 2^e m`, rounded once, so that a tiny `x` and the sign of a zero are kept. The second result is `2^-e
/// - 1`.
#[inline(always)]
fn above_one<A: Arithmetic<f64>>(m: &mut A, x: A::Number, inverse: A::Number) -> (A::Number, A::Number) {
    let less = less_from(m, 1.0, inverse);
    let base = m.neg(less);
    (m.fma(x, inverse, base), base)
}

/// `e ln 2 + ln(1 + f)` in binary64, for a mantissa `1 + f` and the rounding error of `f`.
///
/// `ln(1 + f) = f - f^2/2 + s (f^2/2 + z series)`: the first two terms and the exponent's are nearly exact, the others small.
#[inline(always)]
fn natural<A: Arithmetic<f64>>(
    m: &mut A,
    f: A::Number,
    lacking: Option<A::Number>,
    minus_exponent: A::Number,
) -> A::Number {
    let (s, z) = ratio(m, f);
    let series = polynomial(m, z, SERIES);
    let minus_half = mul(m, f, -0.5);
    let half = m.neg(minus_half);
    let half_square = m.mul(half, f);
    let inner = m.fma(z, series, half_square);
    // The exponent's term is exact, and it is zero or the larger one. So its sum with f is exact in two numbers, and so is the
    // sum of all three.
    let base = mul(m, minus_exponent, -LN_2_CUT[0] / PLACE);
    let sum = m.add(base, f);
    let kept = m.sub(sum, base);
    let lost = m.sub(f, kept);
    let high = m.fma(minus_half, f, sum);
    let low = m.sub(sum, high);
    let low = m.fma(minus_half, f, low);
    let low = m.add(low, lost);
    let low = lacking.map_or(low, |lacking| m.add(low, lacking));
    let low = times_plus(m, minus_exponent, -LN_2_CUT[1] / PLACE, low);
    let rest = m.fma(s, inner, low);
    m.add(high, rest)
}

/// The natural logarithm in binary64.
#[inline(always)]
pub(super) fn log_double<A: Arithmetic<f64>>(m: &mut A, x: A::Number) -> A::Number {
    let Parts { above: f, minus, .. } = parts(m, x);
    let result = natural(m, f, None, minus);
    let rare = beyond(m, minus, DOUBLE_EXPONENTS);
    m.rare(rare, RuntimeFn::LogF64, &[x], result)
}

/// `ln(1 + x)` in binary64. The rounded sum `1 + x` determines the exponent only.
#[inline(always)]
pub(super) fn log1p_double<A: Arithmetic<f64>>(m: &mut A, x: A::Number) -> A::Number {
    let sum = add(m, x, 1.0);
    let Parts { field, minus, .. } = parts(m, sum);
    let one = m.word(1.0_f64.to_bits());
    let inverse = m.plus(one, field);
    let inverse = m.number(inverse);
    let (f, base) = above_one(m, x, inverse);
    // If the sum is between sqrt 2 and 3/2, f is rounded.
    let rest = m.sub(base, f);
    let lacking = m.fma(x, inverse, rest);
    let result = natural(m, f, Some(lacking), minus);
    let result = m.copysign(result, x);
    let rare = beyond(m, minus, DOUBLE_EXPONENTS);
    m.rare(rare, RuntimeFn::Log1pF64, &[x], result)
}

/// A logarithm to another base in binary64: the natural logarithm of the mantissa in two numbers, times the logarithm of e in
/// two numbers, plus the exponent's term, whose larger part is exact.
#[inline(always)]
fn scaled<A: Arithmetic<f64>>(
    m: &mut A,
    x: A::Number,
    function: RuntimeFn,
    unit: [f64; 2],
    scale: [f64; 2],
) -> A::Number {
    let Parts { above: f, minus, .. } = parts(m, x);
    let (s, z) = ratio(m, f);
    let series = polynomial(m, z, SERIES);
    let minus_half = mul(m, f, -0.5);
    let half = m.neg(minus_half);
    let half_square = m.mul(half, f);
    let inner = m.fma(z, series, half_square);
    // f - f^2/2 in two numbers, and the error of the ratio. An approximate error is enough, because it matters in the first
    // factor only.
    let high = m.fma(minus_half, f, f);
    let low = m.sub(f, high);
    let low = m.fma(minus_half, f, low);
    let lacks = m.sub(half, s);
    let lacks = m.fma(s, minus_half, lacks);
    let low = m.fma(lacks, inner, low);
    let low = m.fma(s, inner, low);
    let product = mul(m, high, scale[0]);
    let minus_product = m.neg(product);
    let rest = times_plus(m, high, scale[0], minus_product);
    let rest = times_plus(m, high, scale[1], rest);
    let rest = times_plus(m, low, scale[0], rest);
    let rest = if unit[1] == 0.0 { rest } else { times_plus(m, minus, -unit[1] / PLACE, rest) };
    // The exponent's term is zero or the larger one.
    let base = mul(m, minus, -unit[0] / PLACE);
    let sum = m.add(base, product);
    let lost = m.sub(base, sum);
    let lost = m.add(lost, product);
    let rest = m.add(rest, lost);
    let result = m.add(sum, rest);
    let rare = beyond(m, minus, DOUBLE_EXPONENTS);
    m.rare(rare, function, &[x], result)
}

/// The logarithm to base 2 in binary64.
#[inline(always)]
pub(super) fn log2_double<A: Arithmetic<f64>>(m: &mut A, x: A::Number) -> A::Number {
    scaled(m, x, RuntimeFn::Log2F64, [1.0, 0.0], [LOG2_E, LOG2_E_LOW])
}

/// The logarithm to base 10 in binary64.
#[inline(always)]
pub(super) fn log10_double<A: Arithmetic<f64>>(m: &mut A, x: A::Number) -> A::Number {
    scaled(m, x, RuntimeFn::Log10F64, LOG10_2_CUT, [LOG10_E, LOG10_E_LOW])
}
