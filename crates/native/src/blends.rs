//! Blends: selections of floats by comparisons of floats, played in vector registers, where a mask is as wide as a number and
//! taking one of two is three logical operations. Through integer registers, as the scalar player chooses otherwise, each
//! number moves to the other side of the processor and back. The vectors hold the number in every lane, and the first is the
//! result: nothing else is computed in them. The players of `crate::lanes` compute rows; this is one row.

use crate::instructions;
use crate::isa;
use crate::player::Player;
use cembra_ops::{Bin, Instr, Tape, Un};
use cembra_runtime::MachineType;
use cranelift_codegen::ir::{self, InstBuilder, types};
use cranelift_codegen::isa::TargetIsa;

/// Which instructions of a tape are played in vectors; empty if none is.
///
/// Selections are, what makes their masks, and the arithmetic that is for nothing else. It pays where there are more
/// selections to save than numbers to bring into vectors.
pub(crate) fn find(isa: &dyn TargetIsa, tape: &Tape, live: &[bool]) -> Vec<bool> {
    let instrs = tape.instrs();
    // Other machines select floats in one instruction.
    if !isa::is_x86_64(isa) {
        return Vec::new();
    }
    if !instrs.iter().any(|instr| matches!(instr, Instr::Select { rare: false, .. })) {
        return Vec::new();
    }
    // The type whose vectors a mask can be in: of the floats that were compared for it.
    let mut widths: Vec<Option<MachineType>> = Vec::with_capacity(instrs.len());
    for instr in instrs {
        widths.push(match instr {
            Instr::Cmp(_, a, _) => Some(tape.ty(*a)).filter(|ty| vector_of(*ty).is_some()),
            Instr::MaskAnd(a, b) | Instr::MaskOr(a, b) => widths[a.index()].filter(|ty| widths[b.index()] == Some(*ty)),
            _ => None,
        });
    }
    let mut in_vectors = vec![false; instrs.len()];
    let mut is_needed = [false; 2].map(|none| vec![none; instrs.len()]);
    let (mut saved, mut moved) = (0, 0);
    for (at, instr) in instrs.iter().enumerate().rev().filter(|(at, _)| live[*at]) {
        let [elsewhere, here] = is_needed.each_ref().map(|needed| needed[at]);
        in_vectors[at] = match instr {
            Instr::Select { mask, on, rare: false, .. } => {
                let selects = widths[mask.index()] == Some(tape.ty(*on));
                saved += 2 * u32::from(selects);
                selects
            }
            // What is a byte for others too is made twice.
            Instr::Cmp(..) | Instr::MaskAnd(..) | Instr::MaskOr(..) => here,
            Instr::Bin(Bin::Add | Bin::Sub | Bin::Mul, ..) | Instr::Un(Un::Neg | Un::Abs, _) => here && !elsewhere,
            _ => false,
        };
        moved += u32::from(here && !in_vectors[at] && !matches!(instr, Instr::Const(..)));
        let is_both = elsewhere && widths[at].is_some();
        for (needed, is_needed) in is_needed.iter_mut().zip([!in_vectors[at] || is_both, in_vectors[at]]) {
            instr.for_each_operand(|operand| needed[operand] |= is_needed);
        }
    }
    if moved < saved { in_vectors } else { Vec::new() }
}

/// The vectors of a float type.
pub(crate) fn vector_of(ty: MachineType) -> Option<ir::Type> {
    match ty {
        MachineType::F32 => Some(types::F32X4),
        MachineType::F64 => Some(types::F64X2),
        _ => None,
    }
}

impl Player<'_, '_, '_> {
    /// Plays an instruction in vectors, if it is one of those.
    pub(crate) fn blend(&mut self, at: usize) -> Option<ir::Value> {
        if !self.blends.get(at).copied().unwrap_or(false) {
            return None;
        }
        let vector = match self.tape.instrs()[at] {
            Instr::Select { mask, on, off, .. } => {
                let [mask, on, off] = [mask.index(), on.index(), off.index()].map(|operand| self.vector(operand));
                instructions::choose(self.builder, mask, on, off)
            }
            Instr::Cmp(op, a, b) => {
                let [a, b] = [a, b].map(|operand| self.vector(operand.index()));
                instructions::compare(self.builder, op, false, a, b)
            }
            Instr::MaskAnd(a, b) => {
                let [a, b] = [a, b].map(|operand| self.vector(operand.index()));
                self.builder.ins().band(a, b)
            }
            Instr::MaskOr(a, b) => {
                let [a, b] = [a, b].map(|operand| self.vector(operand.index()));
                self.builder.ins().bor(a, b)
            }
            Instr::Bin(op, a, b) => {
                let (op, a, b) = instructions::suited(self.tape, op, a, b);
                let [a, b] = [a, b].map(|operand| self.vector(operand.index()));
                self.around.binary(self.builder, op, a, b)
            }
            Instr::Un(op, a) => {
                let a = self.vector(a.index());
                self.around.unary(self.builder, op, a)
            }
            _ => return None,
        };
        self.vectors[at] = Some(vector);
        // A mask that is needed as a byte is made as one; what nobody needs leaves no code.
        let is_number = self.builder.func.dfg.value_type(vector).lane_type().is_float();
        is_number.then(|| self.builder.ins().extractlane(vector, 0))
    }

    /// An earlier instruction's number in every lane of a vector, or its mask as wide as one.
    fn vector(&mut self, at: usize) -> ir::Value {
        if let Some(vector) = self.vectors[at] {
            return vector;
        }
        let vector = match (&self.tape.instrs()[at], self.values[at]) {
            (Instr::Const(ty, bits), _) => {
                instructions::splat(self.builder, vector_of(*ty).unwrap_or(types::I64X2), *bits)
            }
            (_, Some(number)) => {
                let ty = self.builder.func.dfg.value_type(number);
                let vector = if ty == types::F32 { types::F32X4 } else { types::F64X2 };
                self.builder.ins().splat(vector, number)
            }
            (_, None) => {
                debug_assert!(false, "instruction {at} is used but was not played");
                instructions::splat(self.builder, types::F64X2, 0)
            }
        };
        self.vectors[at] = Some(vector);
        vector
    }
}
