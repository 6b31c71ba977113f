//! Exponentials and logarithms of binary32 numbers, computed in binary32, because a vector holds twice as many numbers as in binary64. Values
//! whose rounding could lose more than an ulp are sums of two numbers, or exact by the choice of intervals. Every argument was tested:
//! `runtime/tests/functions/exhaustive.rs`.

use super::arithmetic::{Arithmetic, add, by_halves, fma, less_from, mul, polynomial, scaled_from, sub, times_plus};
use super::logarithm::beyond;
use crate::RuntimeFn;
use std::f32::consts::{LOG2_E, LOG10_2, LOG10_E};

/// Adding this to a number below 2^22 leaves the nearest integer in the low bits of the sum.
const WHOLE: f32 = 12_582_912.0;
/// The bias of exponents.
const BIAS: f32 = 127.0;

/// `ln 2`, and its rounding error.
const LN_2: [f32; 2] = [std::f32::consts::LN_2, -1.904_654_3e-9];

/// Coefficients of a polynomial for `(e^r - 1 - r) / r^2`, to 2^-28 of `e^r`.
const EXP: [f32; 5] = [0.499_999_94, 0.166_665_21, 0.041_668_326, 0.008_368_694, 0.001_381_458_5];

/// Coefficients of a polynomial for `(e^r - 1 - r) / r^2`, to 2^-26 of `e^r - 1`.
const EXPM1: [f32; 5] = [0.499_999_97, 0.166_665_43, 0.041_667_35, 0.008_366_63, 0.001_388_263_8];

/// `e^x` in binary32, computed as `2^k e^r`.
#[inline(always)]
pub(super) fn exp<A: Arithmetic<f32>>(m: &mut A, x: A::Number) -> A::Number {
    // Beyond this the result is infinite anyway.
    let most = m.constant(89.0);
    let x = m.min(most, x);
    // Increased by the bias that scaling needs.
    let shift = m.constant(WHOLE + 2.0 * BIAS);
    let shifted = times_plus(m, x, LOG2_E, shift);
    let k = m.sub(shifted, shift);
    let high = times_plus(m, k, -LN_2[0], x);
    let r = times_plus(m, k, -LN_2[1], high);
    let series = polynomial(m, r, EXP);
    let series = fma(m, series, r, 1.0);
    let power = fma(m, series, r, 1.0);
    scaled_from(m, x, -104.0, power, k)
}

/// `e^x - 1` in binary32, computed as `2^k (e^r - 1) + (2^k - 1)`. The terms with the largest rounding error, `2^k r + (2^k - 1)` with an exact `r`,
/// are added first.
#[inline(always)]
pub(super) fn expm1<A: Arithmetic<f32>>(m: &mut A, x: A::Number) -> A::Number {
    let least = m.constant(-30.0);
    let bounded = m.max(least, x);
    let shift = m.constant(WHOLE + BIAS);
    let shifted = times_plus(m, bounded, LOG2_E, shift);
    let k = m.sub(shifted, shift);
    // Exact while k is small, where it matters.
    let high = times_plus(m, k, -LN_2[0], bounded);
    let low = mul(m, k, -LN_2[1]);
    let r = m.add(high, low);
    let (square, series) = (m.mul(r, r), polynomial(m, r, EXPM1));
    let rest = m.fma(square, series, low);
    let bits = m.bits(shifted);
    let bits = m.left(bits, 23);
    let scale = m.number(bits);
    let base = sub(m, scale, 1.0);
    let sum = m.fma(scale, high, base);
    let result = m.fma(scale, rest, sum);
    let result = m.copysign(result, x);
    // For slightly larger arguments 2^k overflows.
    let most = m.constant(88.0);
    let rare = m.less(most, x);
    m.rare(rare, RuntimeFn::Expm1F32, &[x], result)
}

/// Coefficients of a polynomial for `(ln(1 + f) - f) / f^2`, for `f` from -1/4 to 1/2, to 2^-27 of `ln(1 + f)`.
const LN: [f32; 9] = [
    -0.5,
    0.333_334_5,
    -0.250_000_98,
    0.199_908_44,
    -0.166_472_61,
    0.144_783_42,
    -0.131_611_3,
    0.104_629_576,
    -0.045_074_433,
];

/// Coefficients of a polynomial for `(log2(1 + f) - f log2(e)) / f^2`, for `1 + f` from sqrt 1/2 to sqrt 2.
const LOG2: [f32; 9] = [
    -0.721_347_33,
    0.480_898_2,
    -0.360_696_85,
    0.288_568_14,
    -0.239_618_72,
    0.204_600_63,
    -0.191_056_25,
    0.186_172_98,
    -0.109_960_22,
];

/// Coefficients of a polynomial for `(log10(1 + f) - f log10(e)) / f^2`, for `1 + f` from sqrt 1/2 to sqrt 2.
const LOG10: [f32; 9] = [
    -0.217_147_19,
    0.144_764_78,
    -0.108_580_56,
    0.086_867_645,
    -0.072_132_33,
    0.061_590_95,
    -0.057_513_654,
    0.056_043_603,
    -0.033_101_346,
];

/// The rounding error of the decimal logarithm of 2.
const LOG10_2_LOW: f32 = -1.432_098_9e-8;

/// The least mantissa: in `2^e m`, `m` is from this number to below twice this number. It is sqrt 1/2, but 3/4 for the
/// natural logarithm, because `log1p` then gets mantissas without rounding. With these ranges, the last place of a
/// number's logarithm is not below the last place of its mantissa's logarithm.
const ROOT: f32 = std::f32::consts::FRAC_1_SQRT_2;
const THREE_QUARTERS: f32 = 0.75;

/// 2^23, the value of the exponent's lowest bit if the bits of a binary32 number are read as an integer.
const PLACE: f32 = 8_388_608.0;
/// A bound, times [`PLACE`]: a number whose exponent has a smaller magnitude is normal.
const EXPONENTS: f32 = 125.5 * PLACE;

/// The negated exponent `-e` of a positive normal number `2^e m`, with `m` from `least` to twice that, from the number's bits. It is returned
/// at the position of the exponent in the bits, and as a number times [`PLACE`]. For other numbers (zero, subnormal, negative, infinite, NaN)
/// it is beyond [`EXPONENTS`]. It is negated because the product of an exponent of zero and a negative constant is -0, which changes no sum.
#[inline(always)]
fn minus_exponent<A: Arithmetic<f32>>(m: &mut A, bits: A::Word, least: f32) -> (A::Word, A::Number) {
    let (above, field) = (m.word(u64::from(least.to_bits()) + 0x7F_FFFF), m.word(0xFF80_0000));
    let below = m.minus(above, bits);
    let minus = m.and(below, field);
    (minus, m.count(minus))
}

/// `m - 1`, exactly, from the bits of a number `2^e m` and `-e` at the position of the exponent.
#[inline(always)]
fn above_one<A: Arithmetic<f32>>(m: &mut A, bits: A::Word, minus: A::Word) -> A::Number {
    let bits = m.plus(bits, minus);
    let mantissa = m.number(bits);
    sub(m, mantissa, 1.0)
}

/// `e ln 2 + ln(1 + f)`. A single number is enough for `ln 2`, because the product is not rounded.
#[inline(always)]
fn natural<A: Arithmetic<f32>>(m: &mut A, f: A::Number, minus: A::Number) -> A::Number {
    let square = m.mul(f, f);
    let series = by_halves(m, f, square, LN);
    let near = m.fma(square, series, f);
    times_plus(m, minus, -LN_2[0] / PLACE, near)
}

/// The natural logarithm in binary32.
#[inline(always)]
pub(super) fn log<A: Arithmetic<f32>>(m: &mut A, x: A::Number) -> A::Number {
    let bits = m.bits(x);
    let (minus, exponent) = minus_exponent(m, bits, THREE_QUARTERS);
    let f = above_one(m, bits, minus);
    let result = natural(m, f, exponent);
    let rare = beyond(m, exponent, EXPONENTS);
    m.rare(rare, RuntimeFn::LogF32, &[x], result)
}

/// `ln(1 + x)` in binary32. The rounded sum `1 + x` determines the exponent only. The mantissa minus 1 is computed from `x`, and is exact unless the
/// exponent is large.
#[inline(always)]
pub(super) fn log1p<A: Arithmetic<f32>>(m: &mut A, x: A::Number) -> A::Number {
    let sum = add(m, x, 1.0);
    let bits = m.bits(sum);
    let (minus, exponent) = minus_exponent(m, bits, THREE_QUARTERS);
    let one = m.word(u64::from(1.0_f32.to_bits()));
    let inverse = m.plus(one, minus);
    let inverse = m.number(inverse);
    // The negation of 1 - 1 is -0, which keeps a minus zero.
    let less = less_from(m, 1.0, inverse);
    let base = m.neg(less);
    let f = m.fma(x, inverse, base);
    let result = natural(m, f, exponent);
    let rare = beyond(m, exponent, EXPONENTS);
    m.rare(rare, RuntimeFn::Log1pF32, &[x], result)
}

/// `e unit + f scale + f^2 series`, the logarithm to another base.
#[inline(always)]
fn scaled<A: Arithmetic<f32>>(
    m: &mut A,
    x: A::Number,
    function: RuntimeFn,
    unit: [f32; 2],
    scale: f32,
    series: [f32; 9],
) -> A::Number {
    let bits = m.bits(x);
    let (minus, exponent) = minus_exponent(m, bits, ROOT);
    let f = above_one(m, bits, minus);
    let square = m.mul(f, f);
    let series = by_halves(m, f, square, series);
    let rest = m.mul(square, series);
    let near = times_plus(m, f, scale, rest);
    let near = if unit[1] == 0.0 { near } else { times_plus(m, exponent, -unit[1] / PLACE, near) };
    let result = times_plus(m, exponent, -unit[0] / PLACE, near);
    let rare = beyond(m, exponent, EXPONENTS);
    m.rare(rare, function, &[x], result)
}

/// The logarithm to base 2 in binary32.
#[inline(always)]
pub(super) fn log2<A: Arithmetic<f32>>(m: &mut A, x: A::Number) -> A::Number {
    scaled(m, x, RuntimeFn::Log2F32, [1.0, 0.0], LOG2_E, LOG2)
}

/// The logarithm to base 10 in binary32.
#[inline(always)]
pub(super) fn log10<A: Arithmetic<f32>>(m: &mut A, x: A::Number) -> A::Number {
    scaled(m, x, RuntimeFn::Log10F32, [LOG10_2, LOG10_2_LOW], LOG10_E, LOG10)
}
