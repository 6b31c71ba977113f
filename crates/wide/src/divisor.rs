//! Division by a divisor that all rows share, computed as a multiplication by its inverse and a correction of the product.
//! [`cembra_runtime::quotient`] explains the method, and for which divisors it gives the bits of a division.

use cembra_runtime::MachineType;
use cembra_runtime::quotient::{Parts, parts};

/// A divisor that all rows share, which the loop reads from an input with one element.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Divisor {
    /// The index of the loop's input whose one element is the divisor.
    pub(crate) port: u32,
    /// The size of the divisor, a float, in bytes: 4 or 8.
    pub(crate) element: u8,
}

/// The `r` for which `x * r` equals `x / c` in every bit, where `c` is the constant of type `ty` with these bits. `None` if `c` is not a power of
/// two, or if its reciprocal is not a normal number.
pub(crate) fn exact_inverse(ty: MachineType, bits: u64) -> Option<u64> {
    if ty == MachineType::F32 {
        let number = f32::from_bits(bits as u32);
        let reciprocal = 1.0 / number;
        let exact = number.to_bits() << 9 == 0 && number.is_normal() && reciprocal.is_normal();
        return exact.then(|| reciprocal.to_bits().into());
    }
    let number = f64::from_bits(bits);
    let reciprocal = 1.0 / number;
    let exact = number.to_bits() << 12 == 0 && number.is_normal() && reciprocal.is_normal();
    exact.then(|| reciprocal.to_bits())
}

impl Divisor {
    /// Returns the divisor with these bits and its rounded inverse. If the inverse cannot be used, returns two other numbers, with which the product
    /// of every row is zero or NaN, so that the loop divides the row instead. Rows whose dividend is zero or NaN are not divided: for them, the two
    /// numbers give the true quotient.
    pub(crate) fn parts(self, bits: u64) -> Parts {
        parts(self.element, bits).unwrap_or_else(|| {
            if self.element == 8 {
                let number = f64::from_bits(bits);
                let kept = if number == 0.0 || number.is_nan() { f64::NAN } else { 0_f64.copysign(number) };
                [0, kept.to_bits()]
            } else {
                let number = f32::from_bits(bits as u32);
                let kept = if number == 0.0 || number.is_nan() { f32::NAN } else { 0_f32.copysign(number) };
                [0, kept.to_bits().into()]
            }
        })
    }
}
