//! Powers: `x^y = e^(y ln x)`, with the logarithm and the product as sums of two numbers, so that even for an exponent
//! of hundreds the result is within an ulp. Only positive normal bases with normal results are computed here.

use super::arithmetic::{Arithmetic, Narrowing, add, fma, less_from, mul, polynomial, sub, times_plus, within};
use super::exponential::{BIAS, EXPM1, LN_2, WHOLE, exp2_for_single, power_of_two};
use super::logarithm::{DOUBLE_EXPONENTS, LN_2_CUT, LONG_SINGLE, PLACE, Parts, SINGLE_EXPONENTS, beyond, parts, ratio};
use crate::RuntimeFn;
use std::f64::consts::LOG2_E;

/// True where a power is not computed by logarithms: if the base is not positive and normal, if the product of exponent
/// and logarithm is out of bounds or NaN, or if the exponent is one half, because a square root is rounded correctly.
#[inline(always)]
fn unusual<A: Arithmetic<f64>>(
    m: &mut A,
    base_exponent: A::Number,
    most: f64,
    exponent: A::Number,
    product: A::Number,
    bound: f64,
) -> A::Truth {
    let (odd, ordinary) = (beyond(m, base_exponent, most), within(m, product, bound));
    let extreme = m.not(ordinary);
    let half = m.constant(0.5);
    let root = m.equal(exponent, half);
    let rare = m.either(odd, extreme);
    m.either(root, rare)
}

/// `x^y` in binary32. The logarithm to base 2 and the product are in binary64, which is more than precise enough.
#[inline(always)]
pub(super) fn pow_single<A: Narrowing>(m: &mut A, x: A::Single, y: A::Single) -> A::Single {
    let (base, power) = (m.widen(x), m.widen(y));
    let Parts { above, minus, .. } = parts(m, base);
    let (s, z) = ratio(m, above);
    let series = polynomial(m, z, LONG_SINGLE.map(|c| c * LOG2_E));
    let series = fma(m, series, z, 2.0 * LOG2_E);
    let whole = mul(m, minus, -1.0 / PLACE);
    let logarithm = m.fma(s, series, whole);
    let product = m.mul(power, logarithm);
    let result = exp2_for_single(m, product);
    let result = m.narrow(result);
    // An infinite or NaN power shows in the product.
    let rare = unusual(m, minus, SINGLE_EXPONENTS, power, product, f64::MAX);
    m.rare_single(rare, RuntimeFn::PowF32, &[x, y], result)
}

/// Coefficients of the polynomial `tail` in `2 artanh s = 2 s + s^3 (2/3 + z tail)`, with `z = s^2`, to 2^-69.
const TAIL: [f64; 8] = [
    0.399_999_999_999_997_25,
    0.285_714_285_715_771_8,
    0.222_222_221_912_750_48,
    0.181_818_215_235_079_5,
    0.153_844_067_745_493_58,
    0.133_411_410_965_888_1,
    0.115_924_059_018_382_67,
    0.125_711_606_386_536_22,
];
const TWO_THIRDS: [f64; 2] = [0.666_666_666_666_666_6, 3.700_743_415_417_188e-17];

/// A number of higher precision, as the sum of two numbers. The second is below the last place of the first.
pub(super) type Pair<A> = [<A as Arithmetic<f64>>::Number; 2];

/// The rounded sum of `a` and `b`, and its rounding error. `b` must not be larger than `a`, unless `a` is zero.
#[inline(always)]
pub(super) fn sum<A: Arithmetic<f64>>(m: &mut A, a: A::Number, b: A::Number) -> Pair<A> {
    let high = m.add(a, b);
    let rest = m.sub(a, high);
    [high, m.add(rest, b)]
}

/// The exact product of `a` and `b`: the rounded product and its rounding error.
#[inline(always)]
pub(super) fn product<A: Arithmetic<f64>>(m: &mut A, a: A::Number, b: A::Number) -> Pair<A> {
    let high = m.mul(a, b);
    let minus = m.neg(high);
    [high, m.fma(a, b, minus)]
}

/// The product of the numbers `a` and `b`, which are pairs, as a pair.
#[inline(always)]
pub(super) fn pair_product<A: Arithmetic<f64>>(m: &mut A, a: Pair<A>, b: Pair<A>) -> Pair<A> {
    let [high, low] = product::<A>(m, a[0], b[0]);
    let low = m.fma(a[0], b[1], low);
    [high, m.fma(a[1], b[0], low)]
}

/// The natural logarithm as a sum of two numbers, to 2^-65.
#[inline(always)]
fn long_log<A: Arithmetic<f64>>(m: &mut A, above: A::Number, minus_exponent: A::Number) -> Pair<A> {
    let divisor = add(m, above, 2.0);
    let kept = sub(m, divisor, 2.0);
    let divisor_low = m.sub(above, kept);
    let one = m.constant(1.0);
    let inverse = m.div(one, divisor);
    let s = m.mul(above, inverse);
    let minus_s = m.neg(s);
    let rest = m.fma(minus_s, divisor, above);
    let rest = m.fma(minus_s, divisor_low, rest);
    let s = [s, m.mul(rest, inverse)];
    let z = pair_product(m, s, s);
    let tail = polynomial(m, z[0], TAIL);
    let leading = fma(m, z[0], tail, TWO_THIRDS[0]);
    let lost = less_from(m, TWO_THIRDS[0], leading);
    let lost = m.fma(z[0], tail, lost);
    let lost = m.fma(z[1], tail, lost);
    let leading = [leading, add(m, lost, TWO_THIRDS[1])];
    let cube = pair_product(m, s, z);
    let cubic = pair_product(m, cube, leading);
    let twice = [m.add(s[0], s[0]), m.add(s[1], s[1])];
    let base = mul(m, minus_exponent, -LN_2_CUT[0] / PLACE);
    let first = sum(m, base, twice[0]);
    let second = sum(m, first[0], cubic[0]);
    let low = m.add(second[1], cubic[1]);
    let low = m.add(low, first[1]);
    let low = m.add(low, twice[1]);
    let low = times_plus(m, minus_exponent, -LN_2_CUT[1] / PLACE, low);
    sum(m, second[0], low)
}

/// `x^y` in binary64.
#[inline(always)]
pub(super) fn pow_double<A: Arithmetic<f64>>(m: &mut A, x: A::Number, y: A::Number) -> A::Number {
    let Parts { above, minus, .. } = parts(m, x);
    let logarithm = long_log(m, above, minus);
    let [power, low] = product(m, logarithm[0], y);
    let low = m.fma(logarithm[1], y, low);
    let shift = m.constant(WHOLE + BIAS);
    let shifted = times_plus(m, power, LOG2_E, shift);
    let k = m.sub(shifted, shift);
    let r = times_plus(m, k, -LN_2[0], power);
    let low = times_plus(m, k, -LN_2[1], low);
    let (square, series) = (m.mul(r, r), polynomial(m, r, EXPM1));
    // r is exact; its missing part is multiplied by the power of r.
    let above = m.fma(square, series, r);
    let low = m.fma(low, above, low);
    let rest = m.fma(square, series, low);
    let one = m.constant(1.0);
    let [result, lost] = sum(m, one, r);
    let rest = m.add(lost, rest);
    let result = m.add(result, rest);
    let biased = m.bits(shifted);
    let scale = power_of_two(m, biased);
    let result = m.mul(result, scale);
    let rare = unusual(m, minus, DOUBLE_EXPONENTS, y, power, 708.0);
    m.rare(rare, RuntimeFn::PowF64, &[x, y], result)
}
