//! Finds which instructions of a tape are needed by outputs and faults, counts the uses of each instruction, and decides for which instructions a
//! jump that skips them is worth its cost. The operands that a fault reports are not needed, because a slower backend evaluates failed rows once more
//! and reports them.

use cembra_runtime::MachineType;
use cembra_tape::{Bin, Instr, Port, Tape, Un};

/// The lowest cost of a stretch, in plain instructions, for which a jump is written that may skip it.
const WORTH_A_JUMP: u32 = 20;

/// The use of each instruction of a tape: whether it is needed, how often it is used, and which instruction uses it first.
#[derive(Debug, Default)]
pub(super) struct Needs {
    /// For each instruction, the number of instructions and outputs that use it. Unneeded instructions are not counted.
    pub(super) uses: Vec<u32>,
    /// For each instruction, the first instruction in the order of the tape that uses it.
    pub(super) user: Vec<u32>,
    /// For each instruction, true if it is needed, so that it is translated.
    pub(super) played: Vec<bool>,
    /// The stretches (instructions that a jump may skip) that are open while the tape is walked backwards: the index of
    /// the end, and the cost of all instructions after it.
    open: Vec<(usize, u32)>,
}

impl Needs {
    pub(super) fn find(&mut self, tape: &Tape) {
        let length = tape.instrs().len();
        self.uses.clear();
        self.uses.resize(length, 0);
        self.user.clear();
        self.user.resize(length, u32::MAX);
        self.played.clear();
        self.played.resize(length, false);
        self.open.clear();
        for output in tape.outputs() {
            self.uses[output.index()] += 1;
        }
        let mut cost = 0;
        for (at, instr) in tape.instrs().iter().enumerate().rev() {
            let played = match instr {
                Instr::FaultIf { .. } => true,
                Instr::End => {
                    self.open.push((at, cost));
                    false
                }
                Instr::Begin(_) => match self.open.pop() {
                    Some((end, before)) if cost - before >= WORTH_A_JUMP => {
                        self.played[end] = true;
                        true
                    }
                    _ => false,
                },
                _ => self.uses[at] > 0,
            };
            if !played {
                continue;
            }
            self.played[at] = true;
            cost += price(instr);
            let mut using = |operand: usize| {
                if operand < at {
                    self.uses[operand] += 1;
                    self.user[operand] = at as u32;
                }
            };
            match instr {
                Instr::FaultIf { mask, .. } => using(mask.index()),
                _ => instr.for_each_operand(using),
            }
        }
    }

    /// Returns true if the tape's instruction at index `at` is a conversion from `F32` to `F64` whose only use is an output
    /// that is summed over rows.
    pub(super) fn is_widened_in_sum(&self, tape: &Tape, outputs: &[Port], at: usize) -> bool {
        let Instr::Un(Un::Convert(MachineType::F64), narrow) = &tape.instrs()[at] else { return false };
        let mut ports = tape.outputs().iter().zip(outputs);
        tape.ty(*narrow) == MachineType::F32
            && self.uses[at] == 1
            && ports.any(|(output, port)| output.index() == at && *port == Port::Chains)
    }

    /// Returns true if a needed instruction reads or computes a 64-bit number. A conversion whose only use is a sum over rows does not count.
    pub(super) fn has_double(&self, tape: &Tape, outputs: &[Port]) -> bool {
        let double = |ty: MachineType| matches!(ty, MachineType::I64 | MachineType::F64);
        let is_double = |(at, instr): (usize, &Instr)| match instr {
            _ if self.is_widened_in_sum(tape, outputs, at) => false,
            Instr::Input(ty) | Instr::Const(ty, _) | Instr::Un(Un::Convert(ty) | Un::Bitcast(ty), _) => double(*ty),
            Instr::RareCall { function, .. } => double(function.signature().1),
            _ => false,
        };
        tape.instrs().iter().enumerate().zip(&self.played).any(|(instr, played)| *played && is_double(instr))
    }
}

/// The cost of an instruction, in plain instructions.
fn price(instr: &Instr) -> u32 {
    match instr {
        _ if instr.is_shared() => 0,
        Instr::Begin(_) | Instr::End | Instr::Un(Un::Bitcast(_), _) => 0,
        Instr::Un(Un::Sqrt, _) | Instr::Bin(Bin::Div, ..) => 8,
        Instr::RareCall { .. } => 4,
        _ => 1,
    }
}
