//! Expansions: tapes that compute the instructions `Bin::Scale`, `Un::Mantissa` and `Un::Exponent` with simpler
//! instructions, for processors without machine instructions for them. All backends use the same expansions, so they
//! give the same bits.

use crate::{Bin, Cmp, Output, Shift, Tape, Un, Val};
use cembra_runtime::MachineType;
use std::sync::LazyLock;

/// The bit layout of a float type.
struct Float {
    ty: MachineType,
    bits: MachineType,
    /// The number of stored mantissa bits.
    mantissa: u8,
    /// The bias of the exponent.
    bias: u32,
}

const F32: Float = Float { ty: MachineType::F32, bits: MachineType::I32, mantissa: 23, bias: 127 };
const F64: Float = Float { ty: MachineType::F64, bits: MachineType::I64, mantissa: 52, bias: 1023 };

/// Returns a tape of two inputs and one output that computes [`Bin::Scale`](crate::Bin::Scale) for floats of type `ty`.
#[must_use]
pub fn scaling(ty: MachineType) -> &'static Tape {
    static TAPES: LazyLock<[Tape; 2]> = LazyLock::new(|| [F32, F64].map(|float| scale(&float)));
    &TAPES[usize::from(ty == MachineType::F64)]
}

/// Returns a tape of one input and two outputs that computes `Un::Mantissa` and `Un::Exponent` for floats of type `ty`.
#[must_use]
pub fn splitting(ty: MachineType) -> &'static Tape {
    static TAPES: LazyLock<[Tape; 2]> = LazyLock::new(|| [F32, F64].map(|float| split(&float)));
    &TAPES[usize::from(ty == MachineType::F64)]
}

impl Float {
    fn number(&self, tape: &mut Tape, value: f64) -> Val {
        let bits = if self.ty == MachineType::F32 { u64::from((value as f32).to_bits()) } else { value.to_bits() };
        tape.konst(self.ty, bits)
    }

    /// The float 2 to the power `mantissa`, whose lowest mantissa bit has the value 1.
    fn unit(&self) -> f64 {
        (1_u64 << self.mantissa) as f64
    }
}

/// Records a tape that computes `a * 2^power` as a product of `a` with two powers of two, whose exponents are the
/// halves of `power`. Each factor is a normal number, made by adding the exponent bias to its half of `power` and
/// shifting the sum to the exponent bits. The product with the first factor is rounded only if the product with the
/// second factor is zero anyway.
fn scale(float: &Float) -> Tape {
    let mut tape = Tape::new();
    let (a, power) = (tape.input(float.ty), tape.input(float.ty));
    // Adding this offset to a small whole number leaves the number plus twice the bias in the low bits of the sum.
    let offset = float.number(&mut tape, 1.5 * float.unit() + f64::from(2 * float.bias));
    let biased = tape.bin(Bin::Add, power, offset);
    let biased = tape.un(Un::Bitcast(float.bits), biased);
    let half = tape.shift(Shift::Right, biased, 1);
    let rest = tape.bin(Bin::Sub, biased, half);
    let mut result = a;
    for part in [half, rest] {
        let exponent = tape.shift(Shift::Left, part, float.mantissa);
        let factor = tape.un(Un::Bitcast(float.ty), exponent);
        result = tape.bin(Bin::Mul, result, factor);
    }
    tape.output(Output::Number(result));
    tape.finish();
    tape
}

/// Records a tape that splits a float into mantissa and exponent. Adding 1 at the mantissa's highest bit carries into
/// the exponent bits if the number is at least 3/2 of a power of two. So the sum, shifted to the right, is the exponent
/// plus its bias. A subnormal number is scaled up first.
fn split(float: &Float) -> Tape {
    let mut tape = Tape::new();
    let digits = u32::from(float.mantissa);
    let x = tape.input(float.ty);
    let least = float.number(&mut tape, (1.0 - f64::from(float.bias)).exp2());
    let is_small = tape.cmp(Cmp::Lt, x, least);
    let up = float.number(&mut tape, f64::from(digits + 2).exp2());
    let scaled = tape.bin(Bin::Mul, x, up);
    let normal = tape.select(is_small, scaled, x);
    let bits = tape.un(Un::Bitcast(float.bits), normal);
    let half = tape.konst(float.bits, 1 << (digits - 1));
    let carried = tape.bin(Bin::Add, bits, half);
    let exponent = tape.shift(Shift::Right, carried, float.mantissa);
    let (shifted, one) = (
        tape.shift(Shift::Left, exponent, float.mantissa),
        tape.konst(float.bits, u64::from(float.bias) << float.mantissa),
    );
    let above = tape.bin(Bin::Sub, bits, shifted);
    let mantissa = tape.bin(Bin::Add, above, one);
    let mantissa = tape.un(Un::Bitcast(float.ty), mantissa);
    // Placed in the low bits of `unit`, the exponent becomes a float.
    let unit = float.number(&mut tape, float.unit());
    let unit = tape.un(Un::Bitcast(float.bits), unit);
    let counted = tape.bin(Bin::Or, exponent, unit);
    let counted = tape.un(Un::Bitcast(float.ty), counted);
    let [bias, small_bias] =
        [0, digits + 2].map(|more| float.number(&mut tape, float.unit() + f64::from(float.bias + more)));
    let bias = tape.select(is_small, small_bias, bias);
    let exponent = tape.bin(Bin::Sub, counted, bias);
    tape.output(Output::Number(mantissa));
    tape.output(Output::Number(exponent));
    tape.finish();
    tape
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Outcome;

    fn run(tape: &Tape, inputs: &[u64]) -> Vec<u64> {
        // SAFETY: STRING-VIEW: there are no strings.
        let Outcome::Done(results) = (unsafe { tape.run_on_bits(inputs) }) else { panic!("no fault is possible") };
        tape.outputs().iter().map(|output| results[output.index()]).collect()
    }

    /// The results of the instruction itself, as the reference evaluator computes them, for comparison with its
    /// expansion.
    fn instruction(ty: MachineType, inputs: &[u64]) -> Vec<u64> {
        let mut tape = Tape::new();
        let x = tape.input(ty);
        if inputs.len() == 2 {
            let power = tape.input(ty);
            let scaled = tape.scale(x, power);
            tape.output(Output::Number(scaled));
        } else {
            let (mantissa, exponent) = tape.split(x);
            tape.output(Output::Number(mantissa));
            tape.output(Output::Number(exponent));
        }
        tape.finish();
        run(&tape, inputs)
    }

    #[test]
    fn scaling_rounds_once() {
        let mantissas =
            [1.0, -1.0, 1.5, 1.0 + f64::EPSILON, 2.0 - f64::EPSILON, 0.75, -0.0, 0.0, f64::INFINITY, 1e-280, 1e300];
        for p in mantissas.into_iter().chain([f64::NEG_INFINITY]) {
            for k in (-2044..=2044).map(f64::from) {
                let inputs = [p.to_bits(), k.to_bits()];
                assert_eq!(run(scaling(MachineType::F64), &inputs), instruction(MachineType::F64, &inputs), "{p} {k}");
            }
        }
        for p in
            [1.0_f32, -1.0, 1.5, 1.0 + f32::EPSILON, 2.0 - f32::EPSILON, 0.75, 0.0, -0.0, f32::INFINITY, 1e-29, 3e38]
        {
            for k in -252_i16..=252 {
                let inputs = [u64::from(p.to_bits()), u64::from(f32::from(k).to_bits())];
                assert_eq!(run(scaling(MachineType::F32), &inputs), instruction(MachineType::F32, &inputs), "{p} {k}");
            }
        }
        // NaN scaled by NaN, with any bits.
        for nan in [0x7FC0_0000, 0xFFC0_0000, 0x7FFF_FFFF, 0xFFFF_FFFF] {
            for tape in [run(scaling(MachineType::F32), &[nan; 2]), instruction(MachineType::F32, &[nan; 2])] {
                assert!(f32::from_bits(tape[0] as u32).is_nan(), "{nan:x}");
            }
            let nan = f64::from(f32::from_bits(nan as u32)).to_bits();
            for tape in [run(scaling(MachineType::F64), &[nan; 2]), instruction(MachineType::F64, &[nan; 2])] {
                assert!(f64::from_bits(tape[0]).is_nan(), "{nan:x}");
            }
        }
        // A subnormal of 51 bits: half of the last one is rounded to even, once.
        let (p, k) = (1.0 + f64::EPSILON, -1024.0_f64);
        assert_eq!(run(scaling(MachineType::F64), &[p.to_bits(), k.to_bits()]), [1 << 50]);
    }

    #[test]
    fn splitting_gives_back_the_number() {
        let mut bits = 1_u64;
        while bits < f64::INFINITY.to_bits() {
            for x in [bits - 1, bits, bits + 1].map(f64::from_bits).into_iter().filter(|x| *x > 0.0 && x.is_finite()) {
                let found = run(splitting(MachineType::F64), &[x.to_bits()]);
                let [m, e] = [0, 1].map(|at| f64::from_bits(found[at]));
                assert!((0.75..1.5).contains(&m), "{x:e}: {m}");
                assert_eq!(libm::scalbn(m, e as i32), x, "{m} {e}");
                assert_eq!(found, instruction(MachineType::F64, &[x.to_bits()]), "{x:e}");
            }
            bits += bits / 3 + 1;
        }
        for bits in (1..f32::INFINITY.to_bits()).step_by(65_521) {
            let found = run(splitting(MachineType::F32), &[u64::from(bits)]);
            let [m, e] = [0, 1].map(|at| f32::from_bits(found[at] as u32));
            assert!((0.75..1.5).contains(&m), "{m}");
            assert_eq!(libm::scalbnf(m, e as i32).to_bits(), bits, "{m} {e}");
            assert_eq!(found, instruction(MachineType::F32, &[u64::from(bits)]), "{bits:x}");
        }
    }
}
