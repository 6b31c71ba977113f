//! Quotients of many numbers by one of them, without dividing each: a product with the rounded inverse, mended by what is left, has
//! the bits of a division. Which divisors and which products that is right for; what is done where it is not is the user's.
//!
//! With `r` the inverse of `s`, rounded, `q = x * r`, `left = s * q - x` and `q - left * r`, each rounded once, the last is `x / s`
//! rounded once: for all `x` and `s`, as long as nothing on the way is too large or too small for its type. `docs/wide.md`
//! has the proof.

/// What stands for a divisor: the number that products are compared with, and the one that is multiplied with.
pub type Parts = [u64; 2];

/// The divisors that have parts, the least and the one that all are below: the inverse is a normal number, and what is left of a
/// [moderate] quotient is a multiple of the least number of the type.
#[inline]
const fn range(element: u8) -> [f64; 2] {
    if element == 8 { [power(-459), power(1022)] } else { [power(-40), power(126)] }
}

/// Two to the power of a normal number's exponent.
#[inline]
const fn power(exponent: i64) -> f64 {
    f64::from_bits((exponent + 1023).cast_unsigned() << 52)
}

/// How it is told that a float of so many bytes, 8 or 4, is moderate, a binary exponent from -511 to 512 or from -63 to 64: a bit
/// that is set in its bits if this is added to them. Products that are moderate can be mended, and those of zeros.
#[must_use]
#[inline]
pub const fn moderate(element: u8) -> [u64; 2] {
    if element == 8 { [1 << 61, 1 << 62] } else { [1 << 29, 1 << 30] }
}

/// The parts of a divisor of so many bytes, 8 or 4, given by its bits; none of one that is zero, negative or far from one.
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
