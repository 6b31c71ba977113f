//! The sets of vector instructions that loops are compiled for, and the test whether a loop can execute an instruction of a tape (a straight-line
//! program). The test needs no compilation.

use crate::divisor::exact_inverse;
use cembra_runtime::{MachineType, RuntimeFn};
use cembra_tape::{Bin, CanPlay, Instr, Output, Port, Tape, Un, Val};

/// A set of vector instructions that loops are compiled for: AVX-512 or AVX2.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Isa {
    /// AVX-512 F, DQ, BW and VL: vectors of 512 bits.
    Avx512,
    /// AVX2, FMA, BMI1 and BMI2: vectors of 256 bits.
    Avx2,
}

impl Isa {
    /// Both instruction sets, the one with wider vectors first.
    pub const ALL: [Isa; 2] = [Isa::Avx512, Isa::Avx2];

    /// The instruction set with the widest vectors that this machine supports; `None` if it supports neither.
    #[must_use]
    pub fn best() -> Option<Isa> {
        Isa::ALL.into_iter().find(|isa| isa.is_supported())
    }

    /// Returns true if this machine supports the instruction set.
    #[must_use]
    pub fn is_supported(self) -> bool {
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::is_x86_feature_detected as has;
            match self {
                Isa::Avx512 => has!("avx512f") && has!("avx512dq") && has!("avx512bw") && has!("avx512vl"),
                Isa::Avx2 => has!("avx2") && has!("fma") && has!("bmi1") && has!("bmi2"),
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        {
            false
        }
    }

    /// The instruction set that runs a tape fastest on a machine that supports `self`: this set, or a narrower one. `inputs` are the memory layouts
    /// of the inputs. Dividing two narrow vectors takes no longer than dividing a wide one, and processors run slower while they use wide vectors. So
    /// narrow vectors are better if divisions take most of the time.
    #[must_use]
    pub fn suited(self, tape: &Tape, inputs: &[Port]) -> Isa {
        if self != Isa::Avx512 || !Isa::Avx2.is_supported() {
            return self;
        }
        let is_mended = |divisor: Val| is_shared(tape, inputs, divisor);
        let live = tape.live();
        let mends = self.divides_by_inverse(tape, live);
        let work = Work::of(tape, live, |divisor| mends && is_mended(divisor));
        if work.is_dividing(Isa::Avx2) { Isa::Avx2 } else { self }
    }

    /// Returns true if divisions by a value that all rows share should be computed as multiplications by its inverse, because divisions would take
    /// most of the tape's time. `played` is true for each instruction of the tape that is executed.
    pub(crate) fn divides_by_inverse(self, tape: &Tape, played: &[bool]) -> bool {
        Work::of(tape, played, |_| false).is_dividing(self)
    }

    /// Returns the function that tells, for this instruction set, whether a loop can execute an instruction of a tape.
    #[must_use]
    pub fn can_play(self) -> CanPlay {
        match self {
            // Both sets can execute the same instructions: one that a set lacks is composed of others.
            Isa::Avx512 | Isa::Avx2 => plays,
        }
    }
}

/// The cost of loading or storing a mask as bits, with narrow vectors, in the units of [`Work`].
const BITS: usize = 4;

/// The cost of a division that is computed as a multiplication by the inverse, in the units of [`Work`].
const CORRECTED_DIVISION_COST: usize = 7;

/// An estimate of a tape's time, in cycles that narrow vectors take for as many rows as a wide vector has: for
/// divisions and square roots, for other instructions, and for masks that are stored as bits.
#[derive(Clone, Copy, Debug, Default)]
struct Work {
    dividing: usize,
    others: usize,
    bits: usize,
}

impl Work {
    /// Estimates the time of the instructions in `played`. Divisions by a divisor for which `is_mended` holds are
    /// computed by multiplication.
    fn of(tape: &Tape, played: &[bool], is_mended: impl Fn(Val) -> bool) -> Work {
        let mut work = Work::default();
        for (instr, _) in tape.instrs().iter().zip(played).filter(|(_, played)| **played) {
            let is_double = |val: Val| bits(tape.ty(val)) == 64;
            match instr {
                &Instr::Bin(Bin::Div, _, b) if tape.ty(b).is_float() && !is_power_of_two(tape, b) => {
                    if is_mended(b) {
                        work.others += CORRECTED_DIVISION_COST;
                    } else {
                        work.dividing += if is_double(b) { 16 } else { 10 };
                    }
                }
                &Instr::Un(Un::Sqrt, a) => work.dividing += if is_double(a) { 20 } else { 12 },
                Instr::InputMask => work.bits += BITS,
                _ if instr.is_shared() => {}
                _ => work.others += 1,
            }
        }
        work.bits += BITS * tape.outputs().iter().filter(|output| matches!(output, Output::Mask(_))).count();
        work
    }

    /// Returns true if divisions and square roots take most of the time with the instruction set `isa`.
    fn is_dividing(self, isa: Isa) -> bool {
        let bits = if isa == Isa::Avx2 { self.bits } else { 0 };
        self.dividing > self.others + bits
    }
}

/// Returns true for a constant and for an input that all rows share.
fn is_shared(tape: &Tape, inputs: &[Port], val: Val) -> bool {
    match tape.instrs()[val.index()] {
        Instr::Const(..) => true,
        Instr::Input(_) => tape.input_at(val.index()).is_some_and(|number| inputs.get(number) == Some(&Port::Shared)),
        _ => false,
    }
}

/// Returns true for a constant whose inverse is exact, so that a division by it is a multiplication.
fn is_power_of_two(tape: &Tape, val: Val) -> bool {
    match tape.instrs()[val.index()] {
        Instr::Const(ty, bits) => exact_inverse(ty, bits).is_some(),
        _ => false,
    }
}

/// The most arguments that a scalar function may have if vector code calls the function for one lane at a time.
pub(crate) const MOST_ARGUMENTS: usize = 3;

/// Returns true if a function takes at most [`MOST_ARGUMENTS`] numbers, returns a number and needs no context.
fn is_numeric(function: RuntimeFn) -> bool {
    let (takes, gives) = function.signature();
    let is_number = |ty: &MachineType| *ty != MachineType::Flag;
    !function.takes_context() && takes.len() <= MOST_ARGUMENTS && takes.iter().all(is_number) && is_number(&gives)
}

const fn bits(ty: MachineType) -> u8 {
    match ty {
        MachineType::Flag => 1,
        MachineType::I32 | MachineType::F32 => 32,
        MachineType::I64 | MachineType::F64 => 64,
    }
}

/// Returns true if the tape has an instruction at index `at` and this instruction makes a mask.
pub(crate) fn is_mask(tape: &Tape, at: usize) -> bool {
    use Instr::{Cmp, InputMask, MaskAnd, MaskConst, MaskNot, MaskOr, MaskXor};
    matches!(
        tape.instrs().get(at),
        Some(InputMask | MaskConst(_) | Cmp(..) | MaskAnd(..) | MaskOr(..) | MaskXor(..) | MaskNot(_))
    )
}

/// Returns true if the tape's instruction at index `at` is well formed and a loop can execute it.
pub(crate) fn plays(tape: &Tape, at: usize) -> bool {
    use MachineType::{Flag, I32, I64};
    let Some(instr) = tape.instrs().get(at) else { return false };
    let mut earlier = true;
    instr.for_each_operand(|operand| earlier &= operand < at);
    if !earlier {
        return false;
    }
    let is_mask = |operand: usize| is_mask(tape, operand);
    match instr {
        Instr::Input(ty) | Instr::Const(ty, _) => *ty != Flag,
        Instr::InputMask | Instr::MaskConst(_) | Instr::End => true,
        Instr::Un(op, a) => {
            let ty = tape.ty(*a);
            match op {
                Un::Neg | Un::Abs => ty != Flag,
                Un::Sqrt | Un::Floor | Un::Ceil | Un::Trunc | Un::Mantissa | Un::Exponent => ty.is_float(),
                Un::Bitcast(to) => ty != Flag && bits(ty) == bits(*to),
                Un::Convert(to) => ty != Flag && *to != Flag,
            }
        }
        Instr::Bin(op, a, b) => {
            let ty = tape.ty(*a);
            let suits = match op {
                Bin::Add | Bin::Sub | Bin::Mul => ty != Flag,
                Bin::Div | Bin::FMin | Bin::FMax | Bin::Copysign | Bin::Scale => ty.is_float(),
                Bin::And | Bin::Or | Bin::Xor => matches!(ty, I32 | I64),
            };
            suits && ty == tape.ty(*b)
        }
        Instr::Shift(_, a, by) => matches!(tape.ty(*a), I32 | I64) && *by < bits(tape.ty(*a)),
        Instr::Fma(a, b, c) => {
            let ty = tape.ty(*a);
            ty.is_float() && ty == tape.ty(*b) && ty == tape.ty(*c)
        }
        Instr::Cmp(_, a, b) => tape.ty(*a) != Flag && tape.ty(*a) == tape.ty(*b),
        Instr::Select { mask, on, off, .. } => {
            is_mask(mask.index()) && tape.ty(*on) != Flag && tape.ty(*on) == tape.ty(*off)
        }
        Instr::MaskAnd(a, b) | Instr::MaskOr(a, b) | Instr::MaskXor(a, b) => is_mask(a.index()) && is_mask(b.index()),
        Instr::MaskNot(a) => is_mask(a.index()),
        Instr::FaultIf { mask, .. } | Instr::Begin(mask) => is_mask(mask.index()),
        Instr::Call(..) => false,
        Instr::RareCall { mask, function, args, otherwise } => {
            let (takes, gives) = function.signature();
            is_numeric(*function)
                && is_mask(mask.index())
                && tape.ty(*otherwise) == gives
                && args.iter().map(|arg| tape.ty(*arg)).eq(takes.iter().copied())
        }
    }
}

/// The size in bytes of an array element of type `ty`; 0 for masks, which are stored as bits.
pub(crate) const fn element(ty: MachineType) -> u8 {
    bits(ty) / 8
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The roots of a quadratic suit narrow vectors, a logistic function does not.
    #[test]
    fn what_is_little_but_divisions_suits_narrow_vectors() {
        let mut tape = Tape::new();
        let (x, y) = (tape.input(MachineType::F64), tape.input(MachineType::F64));
        let two = tape.konst(MachineType::F64, 2_f64.to_bits());
        let half = tape.bin(Bin::Div, x, two);
        let root = tape.un(Un::Sqrt, half);
        let quotient = tape.bin(Bin::Div, root, y);
        let mut sum = quotient;
        let mut suited = Vec::new();
        for _ in 0..40 {
            sum = tape.bin(Bin::Add, sum, y);
            let mut finished = tape.clone();
            finished.output(Output::Number(sum));
            finished.finish();
            suited.push(Isa::Avx512.suited(&finished, &[Port::Rows; 2]));
            assert_eq!(Isa::Avx2.suited(&finished, &[Port::Rows; 2]), Isa::Avx2);
        }
        let narrow = suited.iter().filter(|isa| **isa == Isa::Avx2).count();
        // A division counts 16 and a root 20; against them count a multiplication and the additions.
        let expected = if Isa::Avx2.is_supported() { 34 } else { 0 };
        assert_eq!(narrow, expected);
        assert!(suited[..narrow].iter().all(|isa| *isa == Isa::Avx2), "the shorter ones");
    }

    /// Divisions by a shared value count as multiplications, as long as divisions take most of the time.
    #[test]
    fn what_is_divided_by_a_shared_number_suits_wide_vectors() {
        let mut tape = Tape::new();
        let (x, s) = (tape.input(MachineType::F64), tape.input(MachineType::F64));
        let mut quotient = tape.bin(Bin::Div, x, s);
        let suited = |tape: &Tape, quotient: Val, ports: [Port; 2]| {
            let mut tape = tape.clone();
            tape.output(Output::Number(quotient));
            tape.finish();
            (Isa::Avx512.suited(&tape, &ports), Isa::ALL.map(|isa| isa.divides_by_inverse(&tape, tape.live())))
        };
        let narrow = if Isa::Avx2.is_supported() { Isa::Avx2 } else { Isa::Avx512 };
        assert_eq!(suited(&tape, quotient, [Port::Rows; 2]), (narrow, [true; 2]));
        assert_eq!(suited(&tape, quotient, [Port::Rows, Port::Shared]), (Isa::Avx512, [true; 2]));
        let three = tape.konst(MachineType::F64, 3_f64.to_bits());
        let third = tape.bin(Bin::Div, x, three);
        assert_eq!(suited(&tape, third, [Port::Rows; 2]), (Isa::Avx512, [true; 2]));
        for _ in 0..16 {
            quotient = tape.bin(Bin::Add, quotient, x);
        }
        assert_eq!(suited(&tape, quotient, [Port::Rows, Port::Shared]), (Isa::Avx512, [false; 2]));
    }

    #[test]
    fn what_needs_a_cut_is_refused() {
        let mut tape = Tape::new();
        let (x, n) = (tape.input(MachineType::F64), tape.input(MachineType::I64));
        let called = tape.call(RuntimeFn::ExpF64, &[x]);
        let divided = tape.bin(Bin::Div, n, n);
        let converted = tape.un(Un::Convert(MachineType::F64), n);
        let mixed = tape.bin(Bin::Add, x, n);
        let texts = tape.input_mask();
        let difference = tape.konst(MachineType::I32, 0);
        let texts = tape.call_where(texts, RuntimeFn::TextsDiffer, &[n, n, n], difference);
        let plays = |isa: Isa, val: Val| isa.can_play()(&tape, val.index());
        for isa in Isa::ALL {
            assert!(plays(isa, x) && plays(isa, n) && plays(isa, converted));
            assert!(![called, divided, mixed, texts].into_iter().any(|val| plays(isa, val)));
            assert!(!isa.can_play()(&tape, 1000));
        }
    }
}
