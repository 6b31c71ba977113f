//! Floor division of floats and its remainder, as in Python and NumPy. Both are computed from the exact remainder of the truncating division, or with
//! integers if the quotient is too large for that. Operators test for a zero divisor first and report an error; here a zero divisor gives NaN.

use super::fused::parts;

/// The quotients below this limit are computed as floats. There the error before rounding is at most a quarter.
const LIMIT: f64 = (1_u64 << 50) as f64;

macro_rules! remainder {
    ($(#[$doc:meta])* $name:ident: $float:ty) => {
        $(#[$doc])*
        #[must_use]
        pub fn $name(x: $float, y: $float) -> $float {
            let rest = x % y;
            if rest == 0.0 {
                return rest.copysign(y);
            }
            if (rest < 0.0) == (y < 0.0) { rest } else { rest + y }
        }
    };
}

remainder! {
    /// The remainder of the floor division of `x` by `y`, rounded once, with the sign of `y`. NaN for an infinite `x` and for `y = 0`.
    remainder_f64: f64
}

remainder! {
    /// The remainder of the floor division of `x` by `y`, rounded once, with the sign of `y`. NaN for an infinite `x` and for `y = 0`.
    remainder_f32: f32
}

/// The floor of the exact quotient `x / y`: the largest whole number that is not above it. If no float is equal to the floor, the result is the
/// nearest float to it. A result of zero has the sign of the quotient. NaN for an infinite `x`.
#[must_use]
pub fn floor_divide_f64(x: f64, y: f64) -> f64 {
    let quotient = x / y;
    if quotient.is_nan() || quotient.abs() >= LIMIT {
        return if x.is_finite() && y != 0.0 && !y.is_nan() { floor_of_large(x, y) } else { f64::NAN };
    }
    let rest = x % y;
    let whole = ((x - rest) / y).round_ties_even();
    if rest != 0.0 && (rest < 0.0) != (y < 0.0) {
        whole - 1.0
    } else if whole == 0.0 {
        whole.copysign(quotient)
    } else {
        whole
    }
}

/// The floor of the exact quotient `x / y`: the largest whole number that is not above it. If no float is equal to the floor, the result is the
/// nearest float to it. A result of zero has the sign of the quotient. NaN for an infinite `x`.
#[must_use]
pub fn floor_divide_f32(x: f32, y: f32) -> f32 {
    // The quotient of two 24-bit numbers is a number between two `f32` or differs from it by more than 2^-50 of itself, which is more
    // than the first rounding and the floor change a quotient that is not exact in binary64. So the second rounding is right.
    floor_divide_f64(f64::from(x), f64::from(y)) as f32
}

/// The floor of a quotient whose magnitude is at least about [`LIMIT`], in whole numbers. Both numbers are finite and not zero.
fn floor_of_large(x: f64, y: f64) -> f64 {
    let ((mx, ex), (my, ey)) = (parts(x), parts(y));
    // Such a quotient has a power of at least 48 here.
    let power = (ex - ey).max(0).unsigned_abs();
    let shift = power.min(74);
    let (dividend, divisor) = (u128::from(mx) << shift, u128::from(my));
    let (whole, rest) = (dividend / divisor, dividend % divisor);
    // The quotient is (`whole` + `rest` / `divisor`) * 2^left. Of the second term only the whole part matters, and beyond a power of 64 only
    // whether it is zero.
    let left = power - shift;
    let units = left.min(64);
    let negative = x.is_sign_negative() != y.is_sign_negative();
    let low = if negative { (rest << units).div_ceil(divisor) } else { (rest << units) / divisor };
    let whole = whole + (low >> units);
    let sticky = u128::from(low & ((1 << units) - 1) != 0);
    // Where something is left below the last bit of `whole`, it has 20 bits more than a float.
    let magnitude = (whole | sticky) as f64 * power_of_two(left);
    if negative { -magnitude } else { magnitude }
}

/// Two to a power, or infinity.
fn power_of_two(power: u32) -> f64 {
    f64::from_bits(u64::from((power + 1023).min(2047)) << 52)
}
