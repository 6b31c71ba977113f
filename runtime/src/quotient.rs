//! Divisions of many numbers by the same divisor, without a division for each of them: the product of a number with the rounded inverse, corrected by
//! the remainder, equals the quotient in every bit. This module states for which divisors and products that is true; otherwise the callers divide.
//!
//! Let `r` be the rounded inverse of `s`, `q = x * r`, `left = s * q - x`, and the result `q - left * r`, each rounded once. Then
//! the result is `x / s` rounded once, for all `x` and `s`, unless an intermediate value is too large or too small for its type.
//! `docs/wide.md` has the proof.

/// The bits of a divisor, and the bits of its rounded inverse, for dividing many numbers by it.
pub type Parts = [u64; 2];

/// The range of divisors that have [`Parts`] (a rounded inverse that can be used): from the first number to below the
/// second. In this range the inverse is a normal number, and the remainder of a [moderate] quotient is a multiple of
/// the least number of the type.
#[inline]
const fn range(element: u8) -> [f64; 2] {
    if element == 8 { [power(-459), power(1022)] } else { [power(-40), power(126)] }
}

/// Two to a power that is a normal number.
#[inline]
const fn power(exponent: i64) -> f64 {
    f64::from_bits((exponent + 1023).cast_unsigned() << 52)
}

/// Returns two numbers, `added` and `bit`, for testing whether a float of `element` bytes is moderate: the float is if `bit` is set
/// in the sum of `added` and the float's bits. A float of 8 bytes is moderate if its binary exponent is from -511 to 512, one of 4
/// bytes from -63 to 64. Moderate products can be corrected, and so can products of zeros.
#[must_use]
#[inline]
pub const fn moderate(element: u8) -> [u64; 2] {
    if element == 8 { [1 << 61, 1 << 62] } else { [1 << 29, 1 << 30] }
}

/// Returns the bits of a divisor and of its rounded inverse. The divisor is a float of `element` bytes, 8 or 4, given by its bits.
/// `None` if it is zero, negative, NaN, or so far from one that division by multiplication is not exact.
#[must_use]
#[inline]
pub fn parts(element: u8, bits: u64) -> Option<Parts> {
    let [least, end] = range(element);
    if element == 8 {
        let number = f64::from_bits(bits);
        return (number >= least && number < end).then(|| [number, 1.0 / number].map(f64::to_bits));
    }
    let number = f32::from_bits(bits as u32);
    let fits = f64::from(number) >= least && f64::from(number) < end;
    fits.then(|| [number, 1.0 / number].map(|part| part.to_bits().into()))
}
