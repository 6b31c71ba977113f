//! Quotients by a number that is the same for all rows, without dividing row by row: a product with its rounded inverse, mended
//! by what is left, has the bits of a division. Which divisors that is right for, and what a loop does where it is not. Which
//! instructions of a tape are made so is not known here.
//!
//! With `r` the inverse of `s`, rounded, `q = x * r`, `left = s * q - x` and `q - left * r`, each rounded once, the last is `x / s`
//! rounded once: for all `x` and `s`, as long as nothing on the way is too large or too small for its type. `docs/wide.md`
//! has the proof.

use crate::encode::{Assembler, Code, Label, Length, Operands, Rm};
use crate::program::Info;
use crate::registers::Registers;
use cembra_runtime::MachineType;

/// A number that all rows are divided by, at a port that all rows share.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Divisor {
    /// The port that it is at.
    pub(crate) port: u32,
    /// Its bytes, of a float.
    pub(crate) element: u8,
}

/// What stands for a divisor in loops: the number that products are compared with, and the one that rows are multiplied with.
pub(crate) type Parts = [u64; 2];

/// The binary exponents of the divisors that have parts, the least and the one that all are below: the inverse is a normal
/// number, and what is left of a [moderate] quotient is a multiple of the least number of the type.
const fn range(element: u8) -> [i32; 2] {
    if element == 8 { [-459, 1022] } else { [-40, 126] }
}

/// How it is told that a float is moderate, a binary exponent from -511 to 512 or from -63 to 64: a bit that is set in its bits if
/// this is added to them.
pub(crate) const fn moderate(element: u8) -> [u64; 2] {
    if element == 8 { [1 << 61, 1 << 62] } else { [1 << 29, 1 << 30] }
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

/// The parts of a divisor that is not zero, negative or far from one.
pub(crate) fn parts(element: u8, bits: u64) -> Option<Parts> {
    let [least, end] = range(element).map(|power| f64::from(power).exp2());
    if element == 8 {
        let number = f64::from_bits(bits);
        return (number >= least && number < end).then(|| [number, 1.0 / number].map(f64::to_bits));
    }
    let number = f32::from_bits(bits as u32);
    let fits = f64::from(number) >= least && f64::from(number) < end;
    fits.then(|| [number, 1.0 / number].map(|part| part.to_bits().into()))
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

/// A place of a loop where rows are divided after all, if one of them asks for that.
#[derive(Clone, Debug)]
pub(crate) struct Division {
    /// The jump away.
    pub(crate) jump: Label,
    /// Where to come back to.
    pub(crate) back: usize,
    /// The register of what is divided.
    pub(crate) dividend: u8,
    /// Where the divisor is.
    pub(crate) divisor: Info,
    /// That of the quotient.
    pub(crate) result: (u8, Length),
    pub(crate) rows: u32,
}

impl Division {
    /// Writes what the place jumps to: all lanes are divided.
    pub(crate) fn write(&self, asm: &mut Assembler, registers: &Registers) {
        let start = asm.position();
        asm.bind(self.jump, start);
        let (result, length) = self.result;
        registers.load_home(asm, &self.divisor, self.rows, result);
        let code = if self.divisor.element == 8 { Code::Div64 } else { Code::Div32 };
        let operands = Operands::new(result, self.dividend, Rm::Register(result));
        asm.vector(registers.prefix(), code, length, operands);
        let back = asm.jump();
        asm.bind(back, self.back);
    }
}
