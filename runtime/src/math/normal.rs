//! The error function, its complement and the normal distribution. Near 0 these functions are polynomials. Away from 0,
//! their tails are products of `e^-(rate x^2)`, of a polynomial of `1 / (x + shift)`, and of `1 / (x + divisor)`. The
//! square is exact, and each factor is the sum of two numbers. So the last rounding is the only one that matters, even
//! where the exponent is -745.

use super::arithmetic::{Arithmetic, Narrowing, add, less_from, mul, polynomial, sub, times_plus, within};
use super::exponential::{BIAS, EXP_SINGLE, EXPM1, LN_2, WHOLE, power_of_two};
use super::power::{Pair, pair_product, product, sum};
use std::f64::consts::{FRAC_2_SQRT_PI, LOG2_E};

/// The polynomial for an odd function near 0: `x (slope + x^2 series(x^2))`.
struct Centre {
    /// The function's derivative at 0, and the rounding error of this derivative.
    slope: [f64; 2],
    series: [f64; 10],
    /// The slope, and then the coefficients of the series, for a result in binary32.
    single: [f64; 6],
    /// The magnitude of `x` below which the function is computed by this polynomial.
    end: f64,
}

/// The tail `f` of a function: `e^(rate x^2) f(x) (x + divisor)` as a polynomial of `v = 8 / (x + shift) - middle`, for
/// `x` from the end of the polynomial near 0 on. The divisor is chosen so that this product hardly changes.
struct Tail {
    /// The rate of the exponent: 1 for the error function, a half for the normal distribution.
    rate: f64,
    divisor: f64,
    shift: f64,
    middle: f64,
    /// The polynomial's coefficient of `v^0`, and the rounding error of this coefficient.
    first: [f64; 2],
    /// The polynomial's coefficients of `v`, `v^2` and so on. With them the polynomial is exact to 2^-58.
    series: [f64; 21],
    /// The derivative of the polynomial in the middle of its range, to a fifth of it.
    slope: f64,
    /// The coefficients of the polynomial for a result in binary32, exact to 2^-32.
    single: [f64; 12],
    /// The argument from which on the tail is zero in binary64.
    end: f64,
    /// The argument from which on the tail is zero in binary32.
    end_single: f64,
}

/// The polynomial for `erf x` near 0, to 2^-64.
const ERF: Centre = Centre {
    slope: [FRAC_2_SQRT_PI, 1.533_545_961_316_588e-17],
    series: [
        -0.376_126_389_031_837_54,
        0.112_837_916_709_553_23,
        -0.026_866_170_645_232_286,
        0.005_223_977_627_983_011,
        -0.000_854_832_738_510_763,
        0.000_120_553_640_366_103_93,
        -1.492_728_731_222_873_8e-5,
        1.651_366_976_943_108_1e-6,
        -1.724_275_861_986_007_7e-7,
        2.051_418_981_896_060_6e-8,
    ],
    single: [
        1.128_379_167_082_606_4,
        -0.376_126_385_295_873_5,
        0.112_837_741_390_562_24,
        -0.026_863_157_122_749_712,
        0.005_200_478_111_740_405,
        -0.000_769_556_415_063_990_2,
    ],
    end: 0.5,
};

/// The tail `erfc x`, for `x` from 0.5 on.
const ERFC: Tail = Tail {
    rate: 1.0,
    divisor: 0.6875,
    shift: 4.0,
    middle: 1.0,
    first: [0.642_184_957_617_475_3, -2.871_613_198_285_855_5e-17],
    series: [
        0.118_385_817_562_813_43,
        0.048_699_765_848_484_323,
        -0.003_250_186_496_599_142_4,
        -0.030_088_937_255_835_942,
        -0.035_033_702_066_793_23,
        -0.027_296_609_809_522_417,
        -0.016_175_517_886_555_524,
        -0.007_337_567_589_473_889_5,
        -0.002_366_148_725_457_551,
        -0.000_382_967_051_031_138_8,
        8.481_909_441_630_362e-5,
        7.108_201_784_462_84e-5,
        1.255_605_028_245_142_7e-5,
        -5.060_360_305_041_984e-6,
        -2.777_038_825_664_524_4e-6,
        9.671_146_262_131_91e-8,
        3.923_830_722_526_002_6e-7,
        3.802_718_211_499_385_3e-8,
        -4.935_985_860_361_718_6e-8,
        -6.399_338_213_327_154_6e-9,
        4.721_264_906_663_414_4e-9,
    ],
    slope: 0.12,
    single: [
        0.642_184_957_699_023_3,
        0.118_385_817_738_635_37,
        0.048_699_748_339_559_42,
        -0.003_250_192_141_123_526_8,
        -0.030_088_326_389_386_68,
        -0.035_033_980_361_962_17,
        -0.027_304_176_261_775_923,
        -0.016_167_522_301_671_247,
        -0.007_300_147_848_623_807,
        -0.002_427_759_822_317_134,
        -0.000_433_152_882_179_503_5,
        0.000_233_908_011_260_464_12,
    ],
    end: 28.0,
    end_single: 10.25,
};

/// The polynomial for the probability that a standard normal variable is between 0 and `x`, to 2^-63.
const BETWEEN: Centre = Centre {
    slope: [0.398_942_280_401_432_7, -2.492_327_202_277_73e-17],
    series: [
        -0.066_490_380_066_905_44,
        0.009_973_557_010_035_48,
        -0.001_187_328_215_472_73,
        0.000_115_434_687_528_849_86,
        -9.444_655_699_229_992e-6,
        6.659_671_712_093_352e-7,
        -4.122_141_570_285_479e-8,
        2.265_805_227_815_725e-9,
        -1.065_766_288_097_385_5e-10,
        2.609_381_875_358_008_7e-12,
    ],
    single: [
        0.398_942_280_392_304_95,
        -0.066_490_378_891_826_06,
        0.009_973_532_484_726_029,
        -0.001_187_140_687_331_202,
        0.000_114_783_871_889_400_48,
        -8.392_313_279_832_279e-6,
    ],
    end: 0.75,
};

/// The tail of the normal distribution, for `x` from 0.75 on: the probability that a standard normal variable is above
/// `x`.
const BEYOND: Tail = Tail {
    rate: 0.5,
    divisor: 1.0,
    shift: 5.0,
    middle: 0.75,
    first: [0.455_917_086_264_644_1, -2.282_013_432_605_525_8e-17],
    series: [
        0.109_475_331_368_837_75,
        0.050_536_867_717_780_35,
        -0.008_378_683_998_152_047,
        -0.047_773_902_784_995_9,
        -0.059_082_664_735_139_93,
        -0.047_682_344_743_847_1,
        -0.027_132_632_847_798_37,
        -0.009_786_258_888_443_323,
        -0.000_818_073_588_372_213_8,
        0.001_336_963_854_532_82,
        0.000_678_725_408_723_946_6,
        -3.929_697_767_827_819e-5,
        -0.000_154_368_905_131_159_77,
        -2.739_899_666_050_820_4e-5,
        3.077_405_779_247_868e-5,
        1.111_480_612_914_952_5e-5,
        -6.574_468_271_513_416_4e-6,
        -3.163_102_229_394_005_6e-6,
        1.601_187_375_018_923_6e-6,
        6.025_241_047_898_51e-7,
        -3.377_663_478_498_594e-7,
    ],
    slope: 0.11,
    single: [
        0.455_917_086_243_048_5,
        0.109_475_330_924_085_9,
        0.050_536_874_933_100_83,
        -0.008_378_638_825_066_906,
        -0.047_774_322_572_360_83,
        -0.059_083_714_621_986_16,
        -0.047_673_159_543_114_02,
        -0.027_127_905_914_901_003,
        -0.009_871_989_091_335_019,
        -0.000_758_485_734_777_512_7,
        0.001_619_398_865_984_786_2,
        0.000_238_375_872_027_835_1,
    ],
    end: 39.0,
    end_single: 14.5,
};

/// The odd function `centre` at `x` near 0, as the sum of two numbers.
#[inline(always)]
fn near_in_two<A: Arithmetic<f64>>(m: &mut A, x: A::Number, centre: &Centre) -> Pair<A> {
    let square = m.mul(x, x);
    let series = polynomial(m, square, centre.series);
    let slope = m.constant(centre.slope[0]);
    let [high, low] = product(m, x, slope);
    let low = times_plus(m, x, centre.slope[1], low);
    let cube = m.mul(square, x);
    [high, m.fma(cube, series, low)]
}

/// `e^-(rate x^2)` as the sum of two numbers, times 2 to the power of the third number.
#[inline(always)]
fn bell_in_two<A: Arithmetic<f64>>(m: &mut A, x: A::Number, rate: f64) -> (Pair<A>, A::Number) {
    let opposite = mul(m, x, -rate);
    let [exponent, lost] = product(m, x, opposite);
    // Increased by the bias that scaling needs.
    let shift = m.constant(WHOLE + 2.0 * BIAS);
    let shifted = times_plus(m, exponent, LOG2_E, shift);
    let k = m.sub(shifted, shift);
    // Exact, as in `exp_double`.
    let high = times_plus(m, k, -LN_2[0], exponent);
    let low = times_plus(m, k, -LN_2[1], lost);
    let r = m.add(high, low);
    let (square, series) = (m.mul(r, r), polynomial(m, r, EXPM1));
    let one = m.constant(1.0);
    let [near, lost] = sum(m, one, high);
    let rest = m.add(lost, low);
    ([near, m.fma(square, series, rest)], k)
}

/// The tail at `x`, which must not be negative. If `x` is so near 0 that the other polynomial is used, the result is
/// arbitrary.
#[inline(always)]
fn far<A: Arithmetic<f64>>(m: &mut A, x: A::Number, tail: &Tail) -> A::Number {
    let end = m.constant(tail.end);
    let x = m.min(end, x);
    let (eight, shift) = (m.constant(8.0), m.constant(tail.shift));
    let (larger, smaller) = (m.max(x, shift), m.min(shift, x));
    let [shifted, lost] = sum::<A>(m, larger, smaller);
    let ratio = m.div(eight, shifted);
    let minus = m.neg(ratio);
    let rest = m.fma(minus, shifted, eight);
    let rest = m.fma(minus, lost, rest);
    let v = sub(m, ratio, tail.middle);
    let series = polynomial(m, v, tail.series);
    let first = m.constant(tail.first[0]);
    let value = m.fma(v, series, first);
    let low = m.sub(first, value);
    let low = m.fma(v, series, low);
    let low = add(m, low, tail.first[1]);
    // The error of the ratio is an eighth of its product with the rest.
    let change = mul(m, ratio, tail.slope / 8.0);
    let low = m.fma(rest, change, low);
    // The inverse of the divisor as the sum of two numbers.
    let (one, summand) = (m.constant(1.0), m.constant(tail.divisor));
    let (larger, smaller) = (m.max(x, summand), m.min(summand, x));
    let [divisor, divisor_low] = sum::<A>(m, larger, smaller);
    let inverse = m.div(one, divisor);
    let minus = m.neg(inverse);
    let rest = m.fma(minus, divisor, one);
    let rest = m.fma(minus, divisor_low, rest);
    let inverse = [inverse, m.mul(rest, inverse)];
    let factor = pair_product::<A>(m, [value, low], inverse);
    let (bell, power) = bell_in_two(m, x, tail.rate);
    let [result, low] = product::<A>(m, bell[0], factor[0]);
    let low = m.fma(bell[0], factor[1], low);
    let low = m.fma(bell[1], factor[0], low);
    let result = m.add(result, low);
    m.scale(result, power)
}

/// `erf x` in binary64.
#[inline(always)]
pub(super) fn erf_double<A: Arithmetic<f64>>(m: &mut A, x: A::Number) -> A::Number {
    let magnitude = m.abs(x);
    let [near, low] = near_in_two(m, magnitude, &ERF);
    let near = m.add(near, low);
    // Beyond this it is 1.
    let most = m.constant(6.0);
    let bounded = m.min(most, magnitude);
    let far = far(m, bounded, &ERFC);
    let far = less_from(m, 1.0, far);
    let is_near = within(m, x, ERF.end);
    let result = m.select(is_near, near, far);
    m.copysign(result, x)
}

/// A function that falls from `total` to 0, and is half of `total` at 0. Near 0 it is this half minus the odd function
/// `centre`. Further from 0 it is `tail`, and on the left `total` minus `tail`.
#[inline(always)]
fn falling<A: Arithmetic<f64>>(m: &mut A, x: A::Number, total: f64, centre: &Centre, tail: &Tail) -> A::Number {
    let [high, low] = near_in_two(m, x, centre);
    let (minus, half) = (m.neg(high), m.constant(0.5 * total));
    let [near, lost] = sum(m, half, minus);
    let low = m.sub(lost, low);
    let near = m.add(near, low);
    let magnitude = m.abs(x);
    let right = far(m, magnitude, tail);
    let left = less_from(m, total, right);
    choose_part(m, x, [left, near, right], centre)
}

/// Selects the value for `x`: `near` where `x` is near 0, else `left` for a negative and `right` for a positive `x`.
#[inline(always)]
fn choose_part<A: Arithmetic<f64>>(
    m: &mut A,
    x: A::Number,
    [left, near, right]: [A::Number; 3],
    centre: &Centre,
) -> A::Number {
    let zero = m.constant(0.0);
    let is_left = m.less(x, zero);
    let away = m.select(is_left, left, right);
    let is_near = within(m, x, centre.end);
    m.select(is_near, near, away)
}

/// `erfc x` in binary64.
#[inline(always)]
pub(super) fn erfc_double<A: Arithmetic<f64>>(m: &mut A, x: A::Number) -> A::Number {
    falling(m, x, 2.0, &ERF, &ERFC)
}

/// The probability that a standard normal variable is at most `x`, in binary64.
#[inline(always)]
pub(super) fn normal_cdf_double<A: Arithmetic<f64>>(m: &mut A, x: A::Number) -> A::Number {
    let opposite = m.neg(x);
    falling(m, opposite, 1.0, &BETWEEN, &BEYOND)
}

/// The odd function `centre` at `x` near 0, for a result in binary32.
#[inline(always)]
fn near_for_single<A: Arithmetic<f64>>(m: &mut A, x: A::Number, centre: &Centre) -> A::Number {
    let square = m.mul(x, x);
    let series = polynomial(m, square, centre.single);
    m.mul(series, x)
}

/// The tail at `x`, which must not be negative, for a result in binary32.
#[inline(always)]
fn far_for_single<A: Arithmetic<f64>>(m: &mut A, x: A::Number, tail: &Tail) -> A::Number {
    // For larger arguments the tail is below half of the least binary32 number.
    let end = m.constant(tail.end_single);
    let x = m.min(end, x);
    let (eight, shifted) = (m.constant(8.0), add(m, x, tail.shift));
    let v = m.div(eight, shifted);
    let v = sub(m, v, tail.middle);
    let factor = polynomial(m, v, tail.single);
    let opposite = mul(m, x, -tail.rate);
    let exponent = m.mul(x, opposite);
    let shift = m.constant(WHOLE + BIAS);
    let shifted = times_plus(m, exponent, LOG2_E, shift);
    let k = m.sub(shifted, shift);
    let r = times_plus(m, k, -LN_2[0], exponent);
    let power = polynomial(m, r, EXP_SINGLE);
    let biased = m.bits(shifted);
    let scale = power_of_two(m, biased);
    let result = m.mul(power, factor);
    let divisor = add(m, x, tail.divisor);
    let result = m.div(result, divisor);
    m.mul(result, scale)
}

/// `erf x` in binary32.
#[inline(always)]
pub(super) fn erf_single<A: Narrowing>(m: &mut A, x: A::Single) -> A::Single {
    let x = m.widen(x);
    let magnitude = m.abs(x);
    let near = near_for_single(m, magnitude, &ERF);
    let far = far_for_single(m, magnitude, &ERFC);
    let far = less_from(m, 1.0, far);
    let is_near = within(m, x, ERF.end);
    let result = m.select(is_near, near, far);
    let result = m.copysign(result, x);
    m.narrow(result)
}

/// The function that falls from `total` to 0, as [`falling`] computes it, for a result in binary32.
#[inline(always)]
fn falling_for_single<A: Narrowing>(m: &mut A, x: A::Number, total: f64, centre: &Centre, tail: &Tail) -> A::Single {
    let near = near_for_single(m, x, centre);
    let near = less_from(m, 0.5 * total, near);
    let magnitude = m.abs(x);
    let right = far_for_single(m, magnitude, tail);
    let left = less_from(m, total, right);
    let result = choose_part(m, x, [left, near, right], centre);
    m.narrow(result)
}

/// `erfc x` in binary32.
#[inline(always)]
pub(super) fn erfc_single<A: Narrowing>(m: &mut A, x: A::Single) -> A::Single {
    let x = m.widen(x);
    falling_for_single(m, x, 2.0, &ERF, &ERFC)
}

/// The probability that a standard normal variable is at most `x`, in binary32.
#[inline(always)]
pub(super) fn normal_cdf_single<A: Narrowing>(m: &mut A, x: A::Single) -> A::Single {
    let x = m.widen(x);
    let opposite = m.neg(x);
    falling_for_single(m, opposite, 1.0, &BETWEEN, &BEYOND)
}
