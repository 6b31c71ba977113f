//! The distance of a point of the plane from the origin, and its polar angle.

use super::arithmetic::{Arithmetic, Narrowing, fma, mul, polynomial, times_plus};
use super::power::{product, sum};
use super::trigonometric::{ATAN, ATAN_SINGLE, EIGHTH_LOW, TAN_3_PI_8, TAN_PI_8};
use crate::RuntimeFn;
use std::f64::consts::FRAC_PI_4;

/// True where at least one of two magnitudes is infinite.
#[inline(always)]
fn is_one_infinite<A: Arithmetic<f64>>(m: &mut A, x: A::Number, y: A::Number) -> A::Truth {
    let infinity = m.constant(f64::INFINITY);
    let (of_x, of_y) = (m.equal(x, infinity), m.equal(y, infinity));
    m.either(of_x, of_y)
}

/// `sqrt(x^2 + y^2)` in binary64, without overflow of the squares.
#[inline(always)]
pub(super) fn hypot_double<A: Arithmetic<f64>>(m: &mut A, x: A::Number, y: A::Number) -> A::Number {
    const UP: f64 = f64::from_bits((1023 + 600) << 52);
    const DOWN: f64 = f64::from_bits((1023 - 600) << 52);
    let (x, y) = (m.abs(x), m.abs(y));
    let infinite = is_one_infinite(m, x, y);
    // A comparison with NaN is false, so neither selection drops a NaN.
    let is_less = m.less(x, y);
    let (larger, smaller) = (m.select(is_less, y, x), m.select(is_less, x, y));
    // The squares of numbers between 2^-500 and 2^500 are exact in two numbers, as far as they matter.
    let (least, most) =
        (m.constant(f64::from_bits((1023 - 500) << 52)), m.constant(f64::from_bits((1023 + 500) << 52)));
    let (is_small, is_large) = (m.less(larger, least), m.less(most, larger));
    let (one, up, down) = (m.constant(1.0), m.constant(UP), m.constant(DOWN));
    let factor = m.select(is_small, up, one);
    let factor = m.select(is_large, down, factor);
    let back = m.select(is_small, down, one);
    let back = m.select(is_large, up, back);
    let (a, b) = (m.mul(larger, factor), m.mul(smaller, factor));
    let ([a_square, a_low], [b_square, b_low]) = (product::<A>(m, a, a), product::<A>(m, b, b));
    let [square, low] = sum::<A>(m, a_square, b_square);
    let low = m.add(low, a_low);
    let low = m.add(low, b_low);
    let root = m.sqrt(square);
    // A step of Newton's method: half of the error of the root's square, divided by the root.
    let minus = m.neg(root);
    let rest = m.fma(minus, root, square);
    let rest = m.add(rest, low);
    let half = mul(m, rest, 0.5);
    let rest = m.div(half, root);
    let result = m.add(root, rest);
    let result = m.mul(result, back);
    let zero = m.constant(0.0);
    let is_zero = m.equal(square, zero);
    let result = m.select(is_zero, zero, result);
    let infinity = m.constant(f64::INFINITY);
    m.select(infinite, infinity, result)
}

/// `sqrt(x^2 + y^2)` in binary32.
#[inline(always)]
pub(super) fn hypot_single<A: Narrowing>(m: &mut A, x: A::Single, y: A::Single) -> A::Single {
    let (x, y) = (m.widen(x), m.widen(y));
    let (x, y) = (m.abs(x), m.abs(y));
    let infinite = is_one_infinite(m, x, y);
    let square = m.mul(x, x);
    let square = m.fma(y, y, square);
    let root = m.sqrt(square);
    let infinity = m.constant(f64::INFINITY);
    let result = m.select(infinite, infinity, root);
    m.narrow(result)
}

/// The arc tangent of `y / x`, for non-negative `x` and `y`, as `base + atan(above / below)`. Here `above / below` is at most the tangent of pi/8.
struct Eighths<A: Arithmetic<f64>> {
    /// The number of eighths of a turn in `base`: 0, 1 or 2.
    number: A::Number,
    above: A::Number,
    below: A::Number,
    /// Masks for the two cases in which the ratio is not `y / x`. The first is true where the ratio is `(y-x) / (y+x)` or `-x / y`, the second only
    /// where it is `-x / y`.
    beyond: [A::Truth; 2],
}

#[inline(always)]
fn eighths<A: Arithmetic<f64>>(m: &mut A, y: A::Number, x: A::Number) -> Eighths<A> {
    let (low, high) = (mul(m, x, TAN_PI_8), mul(m, x, TAN_3_PI_8));
    let beyond = [m.less(low, y), m.less(high, y)];
    let (zero, one, two) = (m.constant(0.0), m.constant(1.0), m.constant(2.0));
    let (less, more, minus_x) = (m.sub(y, x), m.add(y, x), m.neg(x));
    let mut choice = |near, middle, far| {
        let value = m.select(beyond[0], middle, near);
        m.select(beyond[1], far, value)
    };
    Eighths { above: choice(y, less, minus_x), below: choice(x, more, y), number: choice(zero, one, two), beyond }
}

/// The base in eighths of a turn, and the sign that the ratio is multiplied by, for a point with this `x`. Left of the origin the angle is half a
/// turn less the angle of the magnitudes.
#[inline(always)]
fn reflected<A: Arithmetic<f64>>(m: &mut A, x: A::Number, number: A::Number) -> (A::Number, A::Number) {
    let bits = m.bits(x);
    let sign = m.word(1 << 63);
    let sign = m.and(bits, sign);
    let is_left = m.not_zero(sign);
    let (one, minus_one, four) = (m.constant(1.0), m.constant(-1.0), m.constant(4.0));
    let rest = m.sub(four, number);
    (m.select(is_left, rest, number), m.select(is_left, minus_one, one))
}

/// The angle of the point with the coordinates `x` and `y`, from -pi to pi, in binary64.
#[inline(always)]
pub(super) fn atan2_double<A: Arithmetic<f64>>(m: &mut A, y: A::Number, x: A::Number) -> A::Number {
    let (y_size, x_size) = (m.abs(y), m.abs(x));
    let Eighths { number, above, below, beyond } = eighths(m, y_size, x_size);
    let one = m.constant(1.0);
    let inverse = m.div(one, below);
    let q = m.mul(above, inverse);
    let minus_q = m.neg(q);
    // The rounding errors of y - x and y + x.
    let (larger, smaller) = (m.max(y_size, x_size), m.min(x_size, y_size));
    let [_, below_low] = sum::<A>(m, larger, smaller);
    let minus_smaller = m.neg(smaller);
    let [_, difference_low] = sum::<A>(m, larger, minus_smaller);
    let is_less = m.less(y_size, x_size);
    let minus_low = m.neg(difference_low);
    let above_low = m.select(is_less, minus_low, difference_low);
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
    // 1 - q^2 is near enough to the derivative, which the error of q is multiplied by.
    let minus_low = m.neg(low);
    let low = m.fma(square, minus_low, low);
    let rest = m.fma(cube, series, low);
    let (number, direction) = reflected(m, x, number);
    let (q, rest) = (m.mul(q, direction), m.mul(rest, direction));
    // The base is zero or the larger one.
    let eighth = m.constant(FRAC_PI_4);
    let [base, base_low] = product::<A>(m, number, eighth);
    let base_low = times_plus(m, number, EIGHTH_LOW, base_low);
    let [result, lost] = sum::<A>(m, base, q);
    let rest = m.add(rest, base_low);
    let rest = m.add(lost, rest);
    let result = m.add(result, rest);
    let result = m.copysign(result, y);
    // Beyond these bounds an inverse may be subnormal or infinite. Neither holds for a NaN.
    let (least, most) =
        (m.constant(f64::from_bits((1023 - 500) << 52)), m.constant(f64::from_bits((1023 + 500) << 52)));
    let is_large = m.less(larger, most);
    let is_small = m.less(least, larger);
    let ordinary_x = m.equal(x, x);
    let (too_large, too_small, nan) = (m.not(is_large), m.not(is_small), m.not(ordinary_x));
    let rare = m.either(too_large, too_small);
    let rare = m.either(rare, nan);
    m.rare(rare, RuntimeFn::Atan2F64, &[y, x], result)
}

/// The angle of the point with the coordinates `x` and `y`, from -pi to pi, in binary32.
#[inline(always)]
pub(super) fn atan2_single<A: Narrowing>(m: &mut A, y: A::Single, x: A::Single) -> A::Single {
    let (y, x) = (m.widen(y), m.widen(x));
    let (y_size, x_size) = (m.abs(y), m.abs(x));
    // Two infinities are at an eighth of a turn.
    let most = m.constant(1e300);
    let (y_size, x_size) = (m.min(most, y_size), m.min(most, x_size));
    let Eighths { number, above, below, .. } = eighths(m, y_size, x_size);
    let (zero, one) = (m.constant(0.0), m.constant(1.0));
    let at_origin = m.equal(below, zero);
    let below = m.select(at_origin, one, below);
    let q = m.div(above, below);
    let square = m.mul(q, q);
    let series = polynomial(m, square, ATAN_SINGLE);
    let series = fma(m, series, square, 1.0);
    let (number, direction) = reflected(m, x, number);
    let q = m.mul(q, direction);
    let base = mul(m, number, FRAC_PI_4);
    let result = m.fma(series, q, base);
    let result = m.copysign(result, y);
    m.narrow(result)
}
