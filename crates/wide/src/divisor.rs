//! Division by a divisor that all rows share, computed by multiplication with corrected products. [`cembra_runtime::quotient`]
//! explains them, and for which divisors they are right.

use cembra_runtime::MachineType;
use cembra_runtime::quotient::{Parts, parts};

/// A divisor at a port that all rows share.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Divisor {
    /// The index of the port.
    pub(crate) port: u32,
    /// The bytes of the float: 4 or 8.
    pub(crate) element: u8,
}

/// The `r` for which `x * r` equals `x / c` in every bit, where `c` is the constant with these bits; `None` unless `c` is a power
/// of two whose reciprocal is a normal number.
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
    /// The parts of a divisor, given by its bits. For a divisor that has none, the parts make every product zero or NaN, which is
    /// not moderate, so that such rows are divided. Zeros and NaN are not tested for that; with these parts, their products equal
    /// their quotients.
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
