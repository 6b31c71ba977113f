//! Sine, cosine and arc tangent. An angle is reduced to at most an eighth of a turn from a multiple of a quarter turn,
//! with pi/2 as the sum of three numbers. Angles of a billion and more, infinities and NaNs are left to the slow
//! functions of `rare.rs`.

use super::arithmetic::{Arithmetic, Narrowing, add, fma, mul, polynomial, sub, times_plus, within};
use super::exponential::WHOLE;
use crate::RuntimeFn;
use std::f64::consts::{FRAC_2_PI, FRAC_PI_2, FRAC_PI_4};

/// pi/2 as the sum of three numbers, each the rounding error of the sum before it.
const QUARTER: [f64; 3] = [FRAC_PI_2, 6.123_233_995_736_766e-17, -1.497_384_904_859_169_8e-33];

/// The least angle that counts as huge, in radians.
const HUGE: f64 = 1_073_741_824.0;

const SIGN: u64 = 1 << 63;

/// Coefficients of a polynomial for `(sin r - r) / r^3` in powers of `r^2`. `COS` has those for `(cos r - 1 + r^2/2) /
/// r^4`. The constants for a result in binary32 have fewer terms.
const SIN: [f64; 7] = [
    -0.166_666_666_666_666_66,
    0.008_333_333_333_333_038,
    -0.000_198_412_698_409_557_32,
    2.755_731_906_943_852_7e-6,
    -2.505_206_953_611_738e-8,
    1.605_411_521_763_943_7e-10,
    -7.378_972_199_367_829e-13,
];
const COS: [f64; 6] = [
    0.041_666_666_666_666_595,
    -0.001_388_888_888_887_302_5,
    2.480_158_728_883_12e-5,
    -2.755_731_417_321_194_7e-7,
    2.087_569_999_388_971_3e-9,
    -1.135_849_156_663_590_3e-11,
];
const SIN_SINGLE: [f64; 3] = [-0.166_666_545_946_419_86, 0.008_332_159_805_918_192, -0.000_195_151_514_175_970_56];
const COS_SINGLE: [f64; 3] = [0.041_666_645_657_529_64, -0.001_388_731_498_773_281_8, 2.443_300_932_269_531_4e-5];

/// A reduced angle: the rest of an angle after a whole number of quarter turns is subtracted from it.
struct Reduced<A: Arithmetic<f64>> {
    rest: A::Number,
    /// The rounding error of `rest`, the reduced angle.
    low: A::Number,
    /// The number of quarter turns that were subtracted, in the low bits of the word.
    quarters: A::Word,
}

#[inline(always)]
fn reduce<A: Arithmetic<f64>>(m: &mut A, x: A::Number) -> Reduced<A> {
    let shift = m.constant(WHOLE);
    let shifted = times_plus(m, x, FRAC_2_PI, shift);
    let k = m.sub(shifted, shift);
    let high = times_plus(m, k, -QUARTER[0], x);
    let rest = times_plus(m, k, -QUARTER[1], high);
    let off = m.sub(high, rest);
    let low = times_plus(m, k, -QUARTER[1], off);
    let low = times_plus(m, k, -QUARTER[2], low);
    Reduced { rest, low, quarters: m.bits(shifted) }
}

/// The polynomial of the sine, evaluated in pairs of terms, because its latency determines that of the function.
#[inline(always)]
fn sine_series<A: Arithmetic<f64>>(m: &mut A, z: A::Number, square: A::Number) -> A::Number {
    let fourth = m.mul(square, square);
    let mut pair = |low: usize| {
        let c = m.constant(SIN[low + 1]);
        fma(m, z, c, SIN[low])
    };
    let (first, second, third) = (pair(0), pair(2), pair(4));
    let first = m.fma(square, second, first);
    let third = times_plus(m, square, SIN[6], third);
    m.fma(fourth, third, first)
}

/// Sine and cosine of a reduced angle in binary64.
#[inline(always)]
fn sine_and_cosine<A: Arithmetic<f64>>(m: &mut A, angle: &Reduced<A>) -> (A::Number, A::Number) {
    let (r, low) = (angle.rest, angle.low);
    let square = m.mul(r, r);
    let (minus_half, minus_half_r) = (mul(m, square, -0.5), mul(m, r, -0.5));
    let fourth = m.mul(square, square);
    let (odd, even) = (sine_series(m, square, fourth), polynomial(m, square, COS));
    let cube = m.mul(square, r);
    // The error of the angle changes the sine by its product with the cosine, about 1 - r^2/2, and the cosine by its
    // product with minus the sine.
    let share = m.fma(low, minus_half, low);
    // The error of the square changes the sine by its product with minus a sixth of the angle.
    let minus_square = m.neg(square);
    let square_low = m.fma(r, r, minus_square);
    let sixth = mul(m, r, -1.0 / 6.0);
    let share = m.fma(sixth, square_low, share);
    let rest = m.fma(cube, odd, share);
    let sine = m.add(r, rest);
    let one = m.constant(1.0);
    // 1 - r^2/2 as the sum of two numbers, without rounding the square first.
    let near = m.fma(minus_half_r, r, one);
    let lost = m.sub(one, near);
    let lost = m.fma(minus_half_r, r, lost);
    let minus_low = m.neg(low);
    let rest = m.fma(r, minus_low, lost);
    let rest = m.fma(fourth, even, rest);
    (sine, m.add(near, rest))
}

/// Sine and cosine of a reduced angle, for results in binary32.
#[inline(always)]
fn short_sine_and_cosine<A: Arithmetic<f64>>(m: &mut A, r: A::Number) -> (A::Number, A::Number) {
    let square = m.mul(r, r);
    let (odd, even) = (polynomial(m, square, SIN_SINGLE), polynomial(m, square, COS_SINGLE));
    let cube = m.mul(square, r);
    let sine = m.fma(cube, odd, r);
    let even = fma(m, even, square, -0.5);
    (sine, fma(m, even, square, 1.0))
}

/// Selects the value for an even or an odd number of quarter turns, and negates it if bit 1 of `quarters + ahead` is
/// set, which means that the angle is in the second half of a turn.
#[inline(always)]
fn turned<A: Arithmetic<f64>>(
    m: &mut A,
    [even, odd]: [A::Number; 2],
    quarters: A::Word,
    ahead: u64,
    sign: Option<A::Number>,
) -> A::Number {
    let one = m.word(1);
    let lowest = m.and(quarters, one);
    let is_odd = m.not_zero(lowest);
    let value = m.select(is_odd, odd, even);
    let ahead = m.word(ahead);
    let half_turns = m.plus(quarters, ahead);
    let flips = m.left(half_turns, 62);
    let flips = match sign {
        Some(x) => {
            let bits = m.bits(x);
            m.xor(flips, bits)
        }
        None => flips,
    };
    let sign = m.word(SIGN);
    let flip = m.and(flips, sign);
    let bits = m.bits(value);
    let bits = m.xor(bits, flip);
    m.number(bits)
}

#[inline(always)]
fn is_huge<A: Arithmetic<f64>>(m: &mut A, x: A::Number) -> A::Truth {
    let ordinary = within(m, x, HUGE);
    m.not(ordinary)
}

/// The sine of `x` in binary64, computed from the magnitude and the sign of `x`, so that a zero keeps its sign.
#[inline(always)]
pub(super) fn sin_double<A: Arithmetic<f64>>(m: &mut A, x: A::Number) -> A::Number {
    let magnitude = m.abs(x);
    let angle = reduce(m, magnitude);
    let (sine, cosine) = sine_and_cosine(m, &angle);
    let result = turned(m, [sine, cosine], angle.quarters, 0, Some(x));
    let rare = is_huge(m, x);
    m.rare(rare, RuntimeFn::SinF64, &[x], result)
}

/// The cosine in binary64.
#[inline(always)]
pub(super) fn cos_double<A: Arithmetic<f64>>(m: &mut A, x: A::Number) -> A::Number {
    let angle = reduce(m, x);
    let (sine, cosine) = sine_and_cosine(m, &angle);
    let result = turned(m, [cosine, sine], angle.quarters, 1, None);
    let rare = is_huge(m, x);
    m.rare(rare, RuntimeFn::CosF64, &[x], result)
}

/// The sine in binary32.
#[inline(always)]
pub(super) fn sin_single<A: Narrowing>(m: &mut A, x: A::Single) -> A::Single {
    let wide = m.widen(x);
    let magnitude = m.abs(wide);
    let angle = reduce(m, magnitude);
    let (sine, cosine) = short_sine_and_cosine(m, angle.rest);
    let result = turned(m, [sine, cosine], angle.quarters, 0, Some(wide));
    let result = m.narrow(result);
    let rare = is_huge(m, wide);
    m.rare_single(rare, RuntimeFn::SinF32, &[x], result)
}

/// The cosine in binary32.
#[inline(always)]
pub(super) fn cos_single<A: Narrowing>(m: &mut A, x: A::Single) -> A::Single {
    let wide = m.widen(x);
    let angle = reduce(m, wide);
    let (sine, cosine) = short_sine_and_cosine(m, angle.rest);
    let result = turned(m, [cosine, sine], angle.quarters, 1, None);
    let result = m.narrow(result);
    let rare = is_huge(m, wide);
    m.rare_single(rare, RuntimeFn::CosF32, &[x], result)
}

/// Coefficients of a polynomial for `(atan q - q) / q^3` in powers of `q^2`, for `q` up to the tangent of pi/8.
pub(super) const ATAN: [f64; 12] = [
    -0.333_333_333_333_333_26,
    0.199_999_999_999_976_9,
    -0.142_857_142_853_904_88,
    0.111_111_110_883_323_26,
    -0.090_909_081_501_081_76,
    0.076_922_828_849_417_3,
    -0.066_662_286_240_347_05,
    0.058_770_400_960_377_46,
    -0.052_185_223_020_635_48,
    0.045_040_294_108_448_3,
    -0.033_485_644_013_554_57,
    0.015_206_528_316_599_62,
];
pub(super) const ATAN_SINGLE: [f64; 5] = [
    -0.333_333_154_893_025_2,
    0.199_984_883_420_983_5,
    -0.142_438_264_678_772_2,
    0.105_958_269_580_325_17,
    -0.060_829_883_767_929_22,
];
/// The rounding error of pi/4 in binary64.
pub(super) const EIGHTH_LOW: f64 = 3.061_616_997_868_383e-17;

/// The tangent of pi/8. [`TAN_3_PI_8`] is the tangent of 3 pi/8.
pub(super) const TAN_PI_8: f64 = 0.414_213_562_373_095_03;
pub(super) const TAN_3_PI_8: f64 = 2.414_213_562_373_095;

/// `atan x`, for non-negative `x`, as `base + atan(above / below)`, where the ratio is at most the tangent of pi/8. The
/// base is `number` times pi/4.
struct Eighths<A: Arithmetic<f64>> {
    number: A::Number,
    above: A::Number,
    below: A::Number,
    /// Masks for the two cases in which the ratio is not `x`. The first is true where the ratio is `(x-1) / (x+1)` or `-1 / x`, the second only where
    /// it is `-1 / x`.
    beyond: [A::Truth; 2],
}

#[inline(always)]
fn eighths<A: Arithmetic<f64>>(m: &mut A, x: A::Number) -> Eighths<A> {
    let (low, high) = (m.constant(TAN_PI_8), m.constant(TAN_3_PI_8));
    let beyond = [m.less(low, x), m.less(high, x)];
    let (zero, one, two, minus_one) = (m.constant(0.0), m.constant(1.0), m.constant(2.0), m.constant(-1.0));
    let (less, more) = (m.sub(x, one), m.add(x, one));
    let mut choice = |near, middle, far| {
        let value = m.select(beyond[0], middle, near);
        m.select(beyond[1], far, value)
    };
    Eighths { above: choice(x, less, minus_one), below: choice(one, more, x), number: choice(zero, one, two), beyond }
}

/// The arc tangent in binary64.
#[inline(always)]
pub(super) fn atan_double<A: Arithmetic<f64>>(m: &mut A, x: A::Number) -> A::Number {
    // Beyond this the result is pi/2; an infinity could not be divided.
    let magnitude = m.abs(x);
    let far = m.constant(1e60);
    let magnitude = m.min(far, magnitude);
    let Eighths { number, above, below, beyond } = eighths(m, magnitude);
    let one = m.constant(1.0);
    let inverse = m.div(one, below);
    let q = m.mul(above, inverse);
    let minus_q = m.neg(q);
    // The rounding errors of x - 1 and x + 1.
    let (less, more) = (add(m, above, 1.0), sub(m, below, 1.0));
    let (above_low, below_low) = (m.sub(magnitude, less), m.sub(magnitude, more));
    let lost = m.fma(minus_q, below_low, above_low);
    let zero = m.constant(0.0);
    let lost = m.select(beyond[0], lost, zero);
    let lost = m.select(beyond[1], zero, lost);
    let low = m.fma(minus_q, below, above);
    let low = m.add(low, lost);
    let low = m.mul(low, inverse);
    let square = m.mul(q, q);
    let cube = m.mul(square, q);
    let series = polynomial(m, square, ATAN);
    // For the error of q, 1 - q^2 is near enough to the derivative.
    let minus_low = m.neg(low);
    let low = m.fma(square, minus_low, low);
    let rest = m.fma(cube, series, low);
    let rest = times_plus(m, number, EIGHTH_LOW, rest);
    // The base is zero or the larger one.
    let base = mul(m, number, FRAC_PI_4);
    let sum = m.add(base, q);
    let lost = m.sub(base, sum);
    let lost = m.add(lost, q);
    let rest = m.add(lost, rest);
    let result = m.add(sum, rest);
    m.copysign(result, x)
}

/// The arc tangent in binary32.
#[inline(always)]
pub(super) fn atan_single<A: Narrowing>(m: &mut A, x: A::Single) -> A::Single {
    let wide = m.widen(x);
    let magnitude = m.abs(wide);
    let Eighths { number, above, below, .. } = eighths(m, magnitude);
    let q = m.div(above, below);
    let square = m.mul(q, q);
    let series = polynomial(m, square, ATAN_SINGLE);
    let series = fma(m, series, square, 1.0);
    let base = mul(m, number, FRAC_PI_4);
    let result = m.fma(series, q, base);
    let result = m.copysign(result, wide);
    m.narrow(result)
}
