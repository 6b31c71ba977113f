//! Blends: selections of floats by comparisons of floats, computed in vector registers. In a vector register a mask is
//! as wide as a float, and a selection is three logical operations. The usual scalar selection uses integer registers,
//! so each float must be moved there and back. Each vector holds one float in all its lanes; only the first lane is
//! used as the result. This is for code that computes one row; code for many rows is in `crate::lanes`.

use super::playing::{ScalarEmission, vector_of};
use crate::emit::{clif_type, instructions, machine};
use cembra_runtime::MachineType;
use cembra_tape::{Bin, Instr, Tape, Un};
use cranelift_codegen::ir::{self, InstBuilder, types};
use cranelift_codegen::isa::TargetIsa;

/// The kind of code that is emitted for an instruction: scalar or vector code, and where it is emitted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum VectorForm {
    /// The instruction is computed as a scalar; its mask is a byte.
    Scalar,
    /// The instruction is a selection, computed in vectors. Its result is also available as a scalar.
    Selected,
    /// The instruction is computed in vectors, and used by selections only. The instruction is emitted just before the first of these selections,
    /// because an early result would occupy a register. Of nested selections the innermost comes first.
    Deferred,
    /// The instruction is computed in vectors, just before the first selection that uses it, and a selection has requested it already.
    Demanded,
    /// The instruction makes a mask that is needed both in vectors and as a byte, so it is computed in both.
    MaskBoth,
}

/// Chooses scalar or vector code for each of a tape's instructions. Returns an empty list if all are scalar.
///
/// Vector code is chosen for selections, for the instructions that make their masks, and for arithmetic that only such
/// instructions use. This is done only if it saves more moves between registers than it adds.
fn find(isa: &dyn TargetIsa, tape: &Tape) -> Vec<VectorForm> {
    let (instrs, live) = (tape.instrs(), tape.live());
    // Other processors select floats with one instruction.
    if !machine::is_x86_64(isa)
        || machine::is_quick(isa)
        || !instrs.iter().any(|instr| matches!(instr, Instr::Select { rare: false, .. }))
    {
        return Vec::new();
    }
    // The float type whose vectors can hold a mask: that of the floats that were compared for it.
    let mut widths: Vec<Option<MachineType>> = Vec::with_capacity(instrs.len());
    for instr in instrs {
        widths.push(match instr {
            Instr::Cmp(_, a, _) => Some(tape.ty(*a)).filter(|ty| clif_type(*ty).is_float()),
            Instr::MaskAnd(a, b) | Instr::MaskOr(a, b) => widths[a.index()].filter(|ty| widths[b.index()] == Some(*ty)),
            _ => None,
        });
    }
    let mut forms = vec![VectorForm::Scalar; instrs.len()];
    let [mut in_vectors, mut elsewhere] = [(); 2].map(|()| vec![false; instrs.len()]);
    tape.outputs().iter().for_each(|output| elsewhere[output.index()] = true);
    let (mut saved, mut moved) = (0, 0);
    for (at, instr) in instrs.iter().enumerate().rev().filter(|(at, _)| live[*at]) {
        forms[at] = match instr {
            Instr::Select { mask, on, rare: false, .. } if widths[mask.index()] == Some(tape.ty(*on)) => {
                VectorForm::Selected
            }
            Instr::Cmp(..) | Instr::MaskAnd(..) | Instr::MaskOr(..) if in_vectors[at] => {
                if elsewhere[at] {
                    VectorForm::MaskBoth
                } else {
                    VectorForm::Deferred
                }
            }
            Instr::Bin(Bin::Add | Bin::Sub | Bin::Mul, ..) | Instr::Un(Un::Neg | Un::Abs, _)
                if in_vectors[at] && !elsewhere[at] =>
            {
                VectorForm::Deferred
            }
            _ => VectorForm::Scalar,
        };
        saved += 2 * u32::from(forms[at] == VectorForm::Selected);
        moved += u32::from(in_vectors[at] && forms[at] == VectorForm::Scalar && !matches!(instr, Instr::Const(..)));
        instr.for_each_operand(|operand| {
            in_vectors[operand] |= forms[at] != VectorForm::Scalar;
            elsewhere[operand] |= matches!(forms[at], VectorForm::Scalar | VectorForm::MaskBoth);
        });
    }
    if moved < saved { forms } else { Vec::new() }
}

/// The choice between scalar and vector code for a tape's instructions, and the vectors emitted so far. Both lists have an entry per instruction;
/// they are empty if no instruction is computed in vectors.
pub(super) struct Blends {
    forms: Vec<VectorForm>,
    vectors: Vec<Option<ir::Value>>,
}

impl Blends {
    /// Chooses scalar or vector code for each instruction of `tape`, before any is emitted.
    pub(super) fn of(isa: &dyn TargetIsa, tape: &Tape) -> Blends {
        let forms = find(isa, tape);
        Blends { vectors: vec![None; forms.len()], forms }
    }

    /// Emits the instruction at index `at` in vectors if vector code was chosen for it. Returns true if the instruction needs no scalar code.
    pub(super) fn play(&mut self, playing: &mut ScalarEmission<'_, '_, '_>, at: usize) -> bool {
        match self.forms.get(at) {
            None | Some(VectorForm::Scalar) => return false,
            // The instruction is emitted just before a selection that uses it.
            Some(VectorForm::Deferred | VectorForm::Demanded) => return true,
            Some(VectorForm::MaskBoth) => {
                self.play_deferred(playing, at);
                return false;
            }
            Some(VectorForm::Selected) => {}
        }
        self.play_deferred(playing, at);
        if let Some(vector) = self.vectors[at] {
            playing.values[at] = Some(playing.builder.ins().extractlane(vector, 0));
        }
        true
    }

    /// Emits the instruction `last` in vectors, after the deferred instructions that it needs.
    fn play_deferred(&mut self, playing: &mut ScalarEmission<'_, '_, '_>, last: usize) {
        let tape = playing.tape;
        let mut needed = vec![last];
        let mut seen = 0;
        while let Some(at) = needed.get(seen).copied() {
            seen += 1;
            tape.instrs()[at].for_each_operand(|operand| {
                if self.forms[operand] == VectorForm::Deferred {
                    self.forms[operand] = VectorForm::Demanded;
                    needed.push(operand);
                }
            });
        }
        needed.sort_unstable();
        for at in needed {
            playing.state.mark(playing.builder, Some(tape.site(at)));
            self.vectors[at] = self.in_vectors(playing, at);
        }
    }

    fn in_vectors(&mut self, playing: &mut ScalarEmission<'_, '_, '_>, at: usize) -> Option<ir::Value> {
        Some(match playing.tape.instrs()[at] {
            Instr::Select { mask, on, off, .. } => {
                let [mask, on, off] =
                    [mask.index(), on.index(), off.index()].map(|operand| self.vector(playing, operand));
                instructions::choose(playing.builder, mask, on, off)
            }
            Instr::Cmp(op, a, b) => {
                let [a, b] = [a, b].map(|operand| self.vector(playing, operand.index()));
                instructions::compare(playing.builder, op, false, a, b)
            }
            Instr::MaskAnd(a, b) => {
                let [a, b] = [a, b].map(|operand| self.vector(playing, operand.index()));
                playing.builder.ins().band(a, b)
            }
            Instr::MaskOr(a, b) => {
                let [a, b] = [a, b].map(|operand| self.vector(playing, operand.index()));
                playing.builder.ins().bor(a, b)
            }
            Instr::Bin(op, a, b) => {
                let (op, a, b) = instructions::suited(playing.tape, op, a, b);
                let [a, b] = [a, b].map(|operand| self.vector(playing, operand.index()));
                playing.state.binary(playing.builder, op, a, b)
            }
            Instr::Un(op, a) => {
                let a = self.vector(playing, a.index());
                playing.state.unary(playing.builder, op, a)
            }
            _ => return None,
        })
    }

    /// Returns a vector for the result of the instruction `at`, which has the number in every lane. A mask is as wide
    /// as the numbers that it was made from.
    fn vector(&mut self, playing: &mut ScalarEmission<'_, '_, '_>, at: usize) -> ir::Value {
        if let Some(vector) = self.vectors[at] {
            return vector;
        }
        let vector = match (&playing.tape.instrs()[at], playing.values[at]) {
            (Instr::Const(ty, bits), _) => {
                vector_of(clif_type(*ty)).map(|ty| instructions::splat(playing.builder, ty, *bits))
            }
            (_, Some(number)) => {
                vector_of(playing.builder.func.dfg.value_type(number)).map(|ty| playing.builder.ins().splat(ty, number))
            }
            (_, None) => None,
        };
        let vector = vector.unwrap_or_else(|| {
            debug_assert!(false, "instruction {at} is used but was not evaluated, or is not a float");
            instructions::splat(playing.builder, types::F64X2, 0)
        });
        self.vectors[at] = Some(vector);
        vector
    }
}
