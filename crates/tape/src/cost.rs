//! Estimates the cost of running a tape (a sequence of instructions without branches): approximately the cycles for
//! which the tape occupies the busiest execution unit of a processor. Latencies of instructions are not counted,
//! because a processor overlaps them with other instructions.

use crate::{Bin, Instr, Tape, Un};
use cembra_runtime::MachineType;

impl Tape {
    /// The sum of the estimated costs of all instructions, in cycles; `None` if an instruction calls a function or may
    /// stop the evaluation.
    #[must_use]
    pub fn cost(&self) -> Option<u32> {
        self.instrs.iter().map(|instr| self.cost_of(instr)).sum()
    }

    fn cost_of(&self, instr: &Instr) -> Option<u32> {
        Some(match instr {
            Instr::Input(_) | Instr::InputMask | Instr::Const(..) | Instr::MaskConst(_) => 0,
            Instr::Begin(_) | Instr::End => 0,
            Instr::Un(Un::Sqrt, _) => 5,
            Instr::Bin(Bin::Div, a, _) => match self.ty(*a) {
                MachineType::F32 | MachineType::F64 => 4,
                _ => 10,
            },
            // Three logical operations, or moves through integer registers.
            Instr::Select { .. } | Instr::Un(Un::Convert(_) | Un::Floor | Un::Ceil | Un::Trunc, _) => 2,
            Instr::Bin(Bin::FMin | Bin::FMax | Bin::Copysign, ..) => 2,
            // The costs of their expansions.
            Instr::Bin(Bin::Scale, ..) => 8,
            Instr::Un(Un::Mantissa | Un::Exponent, _) => 10,
            Instr::Un(..) | Instr::Bin(..) | Instr::Shift(..) | Instr::Fma(..) | Instr::Cmp(..) => 1,
            Instr::MaskAnd(..) | Instr::MaskOr(..) | Instr::MaskXor(..) | Instr::MaskNot(_) => 1,
            Instr::FaultIf { .. } | Instr::Call(..) | Instr::RareCall { .. } => return None,
        })
    }
}
