//! The instruction sets, and which instructions of a tape each of them plays. Says so before anything is compiled.

use cembra_runtime::{MachineType, RuntimeFn};
use cembra_tape::{Bin, CanPlay, Instr, Tape, Un};

/// A set of vector instructions.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Isa {
    /// 512 bits: AVX-512 F, DQ, BW and VL.
    Avx512,
    /// 256 bits: AVX2, FMA, BMI1 and BMI2.
    Avx2,
}

impl Isa {
    /// Both, the wider first.
    pub const ALL: [Isa; 2] = [Isa::Avx512, Isa::Avx2];

    /// The widest set that this machine has.
    #[must_use]
    pub fn best() -> Option<Isa> {
        Isa::ALL.into_iter().find(|isa| isa.is_supported())
    }

    /// True if this machine has the instructions.
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

    /// Says of each instruction of a tape whether loops of this set play it.
    #[must_use]
    pub fn can_play(self) -> CanPlay {
        match self {
            // What one has no instruction for is made of others.
            Isa::Avx512 | Isa::Avx2 => plays,
        }
    }
}

/// The most arguments of a function that is called for single lanes.
pub(crate) const MOST_ARGUMENTS: usize = 3;

/// True if a function takes and gives numbers, and knows no context.
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

/// True if there is an instruction at a position that makes a mask.
pub(crate) fn is_mask(tape: &Tape, at: usize) -> bool {
    use Instr::{Cmp, InputMask, MaskAnd, MaskConst, MaskNot, MaskOr, MaskXor};
    matches!(
        tape.instrs().get(at),
        Some(InputMask | MaskConst(_) | Cmp(..) | MaskAnd(..) | MaskOr(..) | MaskXor(..) | MaskNot(_))
    )
}

/// True if an instruction is well formed and can be played.
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

/// The type's bytes in an array; masks have bits there.
pub(crate) const fn element(ty: MachineType) -> u8 {
    bits(ty) / 8
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let plays = |isa: Isa, val: cembra_tape::Val| isa.can_play()(&tape, val.index());
        for isa in Isa::ALL {
            assert!(plays(isa, x) && plays(isa, n) && plays(isa, converted));
            assert!(![called, divided, mixed, texts].into_iter().any(|val| plays(isa, val)));
            assert!(!isa.can_play()(&tape, 1000));
        }
    }
}
