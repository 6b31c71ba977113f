//! Divisors that are the same for all rows, so that rows are multiplied instead of divided: mended products, of which
//! [`cembra_runtime::quotient`] says what they are and for which divisors they are right.

use cembra_runtime::MachineType;
use cembra_runtime::quotient::{Parts, parts};

/// A number that all rows are divided by, at a port that all rows share.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Divisor {
    /// The port that it is at.
    pub(crate) port: u32,
    /// Its bytes, of a float.
    pub(crate) element: u8,
}

/// The number that a product with is a division by a constant, if there is one: the reciprocal of a power of two that has an exact
/// one.
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
    /// The parts of any divisor. Of one that has none, they are such that a product is zero or NaN, which is not moderate, and that
    /// zeros and NaN, for which nobody asks that, give what dividing them gives.
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
