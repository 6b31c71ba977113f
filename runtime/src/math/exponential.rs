//! The exponential, the exponential minus 1, and the hyperbolic sine and tangent: `e^x = 2^k e^r` with `|r|` at most half of
//! `ln 2`, and polynomials for `r`. An argument takes the slow path only if a result is about to overflow. `single.rs` has
//! the functions for binary32.

use super::arithmetic::{
    Arithmetic, Narrowing, add, clamp, fma, mul, polynomial, scaled_from, sub, times_plus, within,
};
use crate::RuntimeFn;
use std::f64::consts::LOG2_E;

/// 1.5 times 2^52. If this constant is added to a number of magnitude below 2^51, the low bits of the sum are the integer nearest to the number.
pub(super) const WHOLE: f64 = 6_755_399_441_055_744.0;
/// The bias of the exponent in binary64.
pub(super) const BIAS: f64 = 1023.0;

/// The rounded value of `ln 2`, and the rounding error of that value.
pub(super) const LN_2: [f64; 2] = [std::f64::consts::LN_2, 2.319_046_813_846_299_6e-17];

/// Coefficients of a polynomial for `(e^r - 1 - r) / r^2`, precise to 2^-57 relative to `e^r`.
pub(super) const EXP: [f64; 10] = [
    0.500_000_000_000_000_6,
    0.166_666_666_666_666_85,
    0.041_666_666_666_573_55,
    0.008_333_333_333_314_619,
    0.001_388_888_893_240_543_6,
    0.000_198_412_699_029_740_26,
    2.480_150_441_185_865_5e-5,
    2.755_722_800_357_967_4e-6,
    2.762_634_076_326_376_7e-7,
    2.511_445_779_610_916_4e-8,
];

/// Coefficients of a polynomial for `(e^r - 1 - r) / r^2`, precise to 2^-61 relative to `e^r - 1`.
pub(super) const EXPM1: [f64; 11] = [
    0.5,
    0.166_666_666_666_666_77,
    0.041_666_666_666_666_7,
    0.008_333_333_333_321_606,
    0.001_388_888_888_886_675_7,
    0.000_198_412_698_861_861_85,
    2.480_158_736_069_688e-5,
    2.755_724_415_134_824e-6,
    2.755_724_265_207_428e-7,
    2.510_905_643_232_043e-8,
    2.092_447_351_681_969_8e-9,
];

/// Coefficients of a polynomial for `e^r`, precise to 2^-34 for `r` up to half of `ln 2`, for results in binary32.
pub(super) const EXP_SINGLE: [f64; 8] = [
    0.999_999_999_961_689_1,
    1.000_000_000_243_527,
    0.500_000_010_452_544_8,
    0.166_666_651_232_152_07,
    0.041_666_225_449_526_88,
    0.008_333_561_582_455_561,
    0.001_394_818_198_967_622,
    0.000_197_749_356_106_703_96,
];

/// The integer nearest to `x / ln 2`: as a number, and in the low bits of a word, where it is increased by `bias`.
#[inline(always)]
fn halves<A: Arithmetic<f64>>(m: &mut A, x: A::Number, bias: f64) -> (A::Number, A::Word) {
    let shift = m.constant(WHOLE + bias);
    let shifted = times_plus(m, x, LOG2_E, shift);
    (m.sub(shifted, shift), m.bits(shifted))
}

/// Reduces `x`: returns `k` in the low bits of a word, where it is increased by `bias`, and `x - k ln 2` as the sum of
/// two numbers. `k` is the integer nearest to `x / ln 2`.
#[inline(always)]
fn reduced<A: Arithmetic<f64>>(m: &mut A, x: A::Number, bias: f64) -> (A::Word, A::Number, A::Number) {
    let (k, biased) = halves(m, x, bias);
    let high = times_plus(m, k, -LN_2[0], x);
    let r = times_plus(m, k, -LN_2[1], high);
    let off = m.sub(high, r);
    (biased, r, times_plus(m, k, -LN_2[1], off))
}

/// `scale * r + base` and its rounding error. `base` must be zero or at least `|scale * r|`.
#[inline(always)]
fn sum_in_two<A: Arithmetic<f64>>(
    m: &mut A,
    scale: A::Number,
    r: A::Number,
    base: A::Number,
) -> (A::Number, A::Number) {
    let sum = m.fma(scale, r, base);
    let lost = m.sub(base, sum);
    (sum, m.fma(scale, r, lost))
}

/// `2^k`. The low bits of `biased` are `k + 1023`, a number from 1 to 2046.
#[inline(always)]
pub(super) fn power_of_two<A: Arithmetic<f64>>(m: &mut A, biased: A::Word) -> A::Number {
    let bits = m.left(biased, 52);
    m.number(bits)
}

/// `e^x` in binary64.
#[inline(always)]
pub(super) fn exp_double<A: Arithmetic<f64>>(m: &mut A, x: A::Number) -> A::Number {
    // Beyond this the result is infinite anyway.
    let most = m.constant(710.0);
    let x = m.min(most, x);
    // Increased by the bias that scaling needs.
    let (k, _) = halves(m, x, 2.0 * BIAS);
    // Exact: both are integer multiples of the last place of the difference.
    let high = times_plus(m, k, -LN_2[0], x);
    let r = times_plus(m, k, -LN_2[1], high);
    let (square, series) = (m.mul(r, r), polynomial(m, r, EXP));
    // 1 + r as the sum of two numbers: only the last rounding matters.
    let near = add(m, high, 1.0);
    let kept = sub(m, near, 1.0);
    let lost = m.sub(high, kept);
    let lost = times_plus(m, k, -LN_2[1], lost);
    let rest = m.fma(square, series, lost);
    let power = m.add(near, rest);
    scaled_from(m, x, -745.2, power, k)
}

/// `2^x` in binary64, computed as `2^k e^(r ln 2)`, with `r ln 2` as the sum of two numbers.
#[inline(always)]
pub(super) fn exp2_double<A: Arithmetic<f64>>(m: &mut A, x: A::Number) -> A::Number {
    // Beyond this the result is infinite anyway.
    let most = m.constant(1025.0);
    let x = m.min(most, x);
    // Increased by the bias that scaling needs.
    let shift = m.constant(WHOLE + 2.0 * BIAS);
    let shifted = m.add(x, shift);
    let k = m.sub(shifted, shift);
    let r = m.sub(x, k);
    let high = mul(m, r, LN_2[0]);
    let minus = m.neg(high);
    let low = times_plus(m, r, LN_2[0], minus);
    let low = times_plus(m, r, LN_2[1], low);
    let (square, series) = (m.mul(high, high), polynomial(m, high, EXP));
    let near = add(m, high, 1.0);
    let kept = sub(m, near, 1.0);
    let lost = m.sub(high, kept);
    // 1 + `high` is near enough to the derivative, by which the error of `high` is multiplied.
    let low = m.fma(low, high, low);
    let lost = m.add(lost, low);
    let rest = m.fma(square, series, lost);
    let power = m.add(near, rest);
    scaled_from(m, x, -1075.0, power, k)
}

/// `2^x` in binary32.
#[inline(always)]
pub(super) fn exp2_single<A: Narrowing>(m: &mut A, x: A::Single) -> A::Single {
    let x = m.widen(x);
    let x = clamp(m, x, -200.0, 200.0);
    let shifted = add(m, x, WHOLE + BIAS);
    let k = sub(m, shifted, WHOLE + BIAS);
    let r = m.sub(x, k);
    let r = mul(m, r, LN_2[0]);
    let power = polynomial(m, r, EXP_SINGLE);
    let biased = m.bits(shifted);
    let scale = power_of_two(m, biased);
    let result = m.mul(power, scale);
    m.narrow(result)
}

/// `e^x - 1` as the sum of two numbers, the second being the smaller, for `x` between -40 and 709. It is computed as
/// `2^k (e^r - 1) + (2^k - 1)`, where `r` and the sum have two numbers each.
#[inline(always)]
fn expm1_in_two<A: Arithmetic<f64>>(m: &mut A, x: A::Number) -> (A::Number, A::Number) {
    let (biased, r, low) = reduced(m, x, BIAS);
    let (square, series) = (m.mul(r, r), polynomial(m, r, EXPM1));
    // For the error of r, 1 + r is near enough to the derivative.
    let low = m.fma(low, r, low);
    let above = m.fma(square, series, low);
    let scale = power_of_two(m, biased);
    let base = sub(m, scale, 1.0);
    let cut = m.sub(scale, base);
    let cut = sub(m, cut, 1.0);
    let (sum, lost) = sum_in_two(m, scale, r, base);
    let lost = m.add(lost, cut);
    (sum, m.fma(scale, above, lost))
}

/// `e^x - 1` in binary64.
#[inline(always)]
pub(super) fn expm1_double<A: Arithmetic<f64>>(m: &mut A, x: A::Number) -> A::Number {
    // Below this it is -1.
    let bound = m.constant(-40.0);
    let bounded = m.max(bound, x);
    let (sum, rest) = expm1_in_two(m, bounded);
    let result = m.add(sum, rest);
    let result = m.copysign(result, x);
    // For slightly larger arguments 2^k overflows.
    let most = m.constant(709.0);
    let rare = m.less(most, x);
    m.rare(rare, RuntimeFn::Expm1F64, &[x], result)
}

/// `tanh x` in binary64: `t / (t + 2)` for `t = e^2|x| - 1`, with the rounding errors of the quotient and of its operands
/// added.
#[inline(always)]
pub(super) fn tanh_double<A: Arithmetic<f64>>(m: &mut A, x: A::Number) -> A::Number {
    let magnitude = m.abs(x);
    // Beyond this it is 1.
    let most = m.constant(20.0);
    let bounded = m.min(most, magnitude);
    let twice = m.add(bounded, bounded);
    let (sum, rest) = expm1_in_two(m, twice);
    let above = m.add(sum, rest);
    let lost = m.sub(above, sum);
    let above_low = m.sub(rest, lost);
    let (one, two) = (m.constant(1.0), m.constant(2.0));
    let (larger, smaller) = (m.max(above, two), m.min(two, above));
    let below = m.add(larger, smaller);
    let kept = m.sub(below, larger);
    let below_low = m.sub(smaller, kept);
    let below_low = m.add(below_low, above_low);
    let inverse = m.div(one, below);
    let q = m.mul(above, inverse);
    let minus_q = m.neg(q);
    let low = m.fma(minus_q, below, above);
    let low = m.add(low, above_low);
    let low = m.fma(minus_q, below_low, low);
    let result = m.fma(low, inverse, q);
    m.copysign(result, x)
}

/// Coefficients of a polynomial for `(sinh r - r) / r^3` in powers of `r^2`. `COSH` has those for `(cosh r - 1) / r^2`.
/// The constants for a result in binary32 have fewer terms.
const SINH: [f64; 5] = [
    0.166_666_666_666_666_77,
    0.008_333_333_333_321_606,
    0.000_198_412_698_861_874_37,
    2.755_724_414_989_045_6e-6,
    2.510_905_697_762_98e-8,
];
const COSH: [f64; 6] = [
    0.5,
    0.041_666_666_666_666_71,
    0.001_388_888_888_886_391_2,
    2.480_158_736_344_212e-5,
    2.755_724_178_592_063_5e-7,
    2.092_443_742_148_988e-9,
];
const SINH_SINGLE: [f64; 3] = [0.166_666_667_546_015, 0.008_333_288_937_310_087, 0.000_199_049_731_476_763_22];
const COSH_SINGLE: [f64; 3] = [0.500_000_007_918_346, 0.041_666_266_918_133_826, 0.001_394_624_137_181_828_3];

/// `2^(k-1)` and `2^(-k-1)` from `k + 1022` in the low bits.
#[inline(always)]
fn half_powers<A: Arithmetic<f64>>(m: &mut A, biased: A::Word) -> (A::Number, A::Number) {
    let twice = m.word(2 * 1022);
    let opposite = m.minus(twice, biased);
    (power_of_two(m, biased), power_of_two(m, opposite))
}

/// `sinh x` in binary64: `sinh(k ln 2) cosh r + cosh(k ln 2) sinh r`, with the rounding errors of the leading terms added.
#[inline(always)]
pub(super) fn sinh_double<A: Arithmetic<f64>>(m: &mut A, x: A::Number) -> A::Number {
    let magnitude = m.abs(x);
    let (biased, r, low) = reduced(m, magnitude, BIAS - 1.0);
    let (up, down) = half_powers(m, biased);
    let (sinh, cosh) = (m.sub(up, down), m.add(up, down));
    let cut = m.sub(up, sinh);
    let cut = m.sub(cut, down);
    let square = m.mul(r, r);
    let (odd, even) = (polynomial(m, square, SINH), polynomial(m, square, COSH));
    let cube = m.mul(square, r);
    let odd = m.fma(cube, odd, low);
    let even = m.mul(square, even);
    let (sum, lost) = sum_in_two(m, cosh, r, sinh);
    let lost = m.add(lost, cut);
    // The error of r, times the derivative of the even part.
    let slope = m.mul(r, low);
    let even = m.add(even, slope);
    let rest = m.fma(sinh, even, lost);
    let rest = m.fma(cosh, odd, rest);
    let result = m.add(sum, rest);
    let result = m.copysign(result, x);
    let ordinary = within(m, x, 700.0);
    let rare = m.not(ordinary);
    m.rare(rare, RuntimeFn::SinhF64, &[x], result)
}

/// The terms of `sinh x` and `cosh x`, for results in binary32: `sinh` and `cosh` of `k ln 2`, and of `r` (`odd` and `even`).
struct Hyperbolic<A: Arithmetic<f64>> {
    sinh: A::Number,
    cosh: A::Number,
    odd: A::Number,
    even: A::Number,
}

/// The terms of `sinh x` and `cosh x`, for `x` up to 700.
#[inline(always)]
fn hyperbolic_for_single<A: Arithmetic<f64>>(m: &mut A, x: A::Number) -> Hyperbolic<A> {
    let (k, biased) = halves(m, x, BIAS - 1.0);
    let r = times_plus(m, k, -LN_2[0], x);
    let (up, down) = half_powers(m, biased);
    let (minus_sinh, cosh) = (m.sub(down, up), m.add(up, down));
    // Negating, instead of adding zero, keeps a minus zero.
    let sinh = m.neg(minus_sinh);
    let square = m.mul(r, r);
    let (odd, even) = (polynomial(m, square, SINH_SINGLE), polynomial(m, square, COSH_SINGLE));
    let odd = fma(m, square, odd, 1.0);
    let even = fma(m, square, even, 1.0);
    let odd = m.mul(odd, r);
    Hyperbolic { sinh, cosh, odd, even }
}

/// `sinh x` in binary32.
#[inline(always)]
pub(super) fn sinh_single<A: Narrowing>(m: &mut A, x: A::Single) -> A::Single {
    let x = m.widen(x);
    let x = clamp(m, x, -130.0, 130.0);
    let Hyperbolic { sinh, cosh, odd, even } = hyperbolic_for_single(m, x);
    let odd = m.mul(cosh, odd);
    let result = m.fma(sinh, even, odd);
    m.narrow(result)
}

/// `tanh x` in binary32.
#[inline(always)]
pub(super) fn tanh_single<A: Narrowing>(m: &mut A, x: A::Single) -> A::Single {
    let x = m.widen(x);
    // Beyond this it is 1.
    let x = clamp(m, x, -20.0, 20.0);
    let Hyperbolic { sinh, cosh, odd, even } = hyperbolic_for_single(m, x);
    let (across, along) = (m.mul(cosh, odd), m.mul(cosh, even));
    let above = m.fma(sinh, even, across);
    let below = m.fma(sinh, odd, along);
    let result = m.div(above, below);
    m.narrow(result)
}

/// Coefficients of a polynomial for `(2^r - 1) / r`, to 2^-28 of `2^r`.
const EXP2_SINGLE: [f64; 6] = [
    0.693_147_202_881_508_6,
    0.240_226_479_106_235_57,
    0.055_503_324_094_911_696,
    0.009_618_437_563_396_878,
    0.001_339_890_009_317_773_4,
    0.000_153_533_525_349_828_9,
];

/// `2^x` in binary64, for a result that is rounded to binary32. `x` must not be NaN.
#[inline(always)]
pub(super) fn exp2_for_single<A: Arithmetic<f64>>(m: &mut A, x: A::Number) -> A::Number {
    let x = clamp(m, x, -200.0, 200.0);
    let shifted = add(m, x, WHOLE + BIAS);
    let k = sub(m, shifted, WHOLE + BIAS);
    let r = m.sub(x, k);
    let series = polynomial(m, r, EXP2_SINGLE);
    let power = fma(m, series, r, 1.0);
    let biased = m.bits(shifted);
    let scale = power_of_two(m, biased);
    m.mul(power, scale)
}
