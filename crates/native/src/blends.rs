//! Blends: selections of floats by comparisons of floats, played in vector registers, where a mask is as wide as a number and
//! taking one of two is three logical operations. Through integer registers, as the scalar player chooses otherwise, each
//! number moves to the other side of the processor and back. The vectors hold the number in every lane, and the first is the
//! result: nothing else is computed in them. The players of `crate::lanes` compute rows; this is one row.

use crate::cells::clif_type;
use crate::instructions;
use crate::isa;
use crate::player::Player;
use cembra_runtime::MachineType;
use cembra_tape::{Bin, Instr, Tape, Un};
use cranelift_codegen::ir::{self, InstBuilder, types};
use cranelift_codegen::isa::TargetIsa;

/// How an instruction is played.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Form {
    /// As a number, or a mask as a byte.
    Scalar,
    /// A selection, in vectors. Its result may be a number for others too.
    Selected,
    /// In vectors, for selections only, and just before the first of them: what is made early waits in a register, and of
    /// nested selections the innermost comes first.
    Late,
    /// The same, once a selection has asked for it.
    Asked,
    /// A mask in vectors that is a byte for others.
    Both,
}

/// The forms of a tape's instructions; empty if all are scalar. `roots` are the instructions whose results leave the tape.
///
/// Selections are played in vectors, what makes their masks, and the arithmetic that is for nothing else. It pays where there
/// are more selections to save than numbers to bring into vectors.
pub(crate) fn find(isa: &dyn TargetIsa, tape: &Tape, live: &[bool], roots: impl Iterator<Item = usize>) -> Vec<Form> {
    let instrs = tape.instrs();
    // Other machines select floats in one instruction.
    if !isa::is_x86_64(isa)
        || isa::is_quick(isa)
        || !instrs.iter().any(|instr| matches!(instr, Instr::Select { rare: false, .. }))
    {
        return Vec::new();
    }
    // The type whose vectors a mask can be in: of the floats that were compared for it.
    let mut widths: Vec<Option<MachineType>> = Vec::with_capacity(instrs.len());
    for instr in instrs {
        widths.push(match instr {
            Instr::Cmp(_, a, _) => Some(tape.ty(*a)).filter(|ty| clif_type(*ty).is_float()),
            Instr::MaskAnd(a, b) | Instr::MaskOr(a, b) => widths[a.index()].filter(|ty| widths[b.index()] == Some(*ty)),
            _ => None,
        });
    }
    let mut forms = vec![Form::Scalar; instrs.len()];
    let [mut in_vectors, mut elsewhere] = [(); 2].map(|()| vec![false; instrs.len()]);
    roots.for_each(|root| elsewhere[root] = true);
    let (mut saved, mut moved) = (0, 0);
    for (at, instr) in instrs.iter().enumerate().rev().filter(|(at, _)| live[*at]) {
        forms[at] = match instr {
            Instr::Select { mask, on, rare: false, .. } if widths[mask.index()] == Some(tape.ty(*on)) => Form::Selected,
            Instr::Cmp(..) | Instr::MaskAnd(..) | Instr::MaskOr(..) if in_vectors[at] => {
                if elsewhere[at] {
                    Form::Both
                } else {
                    Form::Late
                }
            }
            Instr::Bin(Bin::Add | Bin::Sub | Bin::Mul, ..) | Instr::Un(Un::Neg | Un::Abs, _)
                if in_vectors[at] && !elsewhere[at] =>
            {
                Form::Late
            }
            _ => Form::Scalar,
        };
        saved += 2 * u32::from(forms[at] == Form::Selected);
        moved += u32::from(in_vectors[at] && forms[at] == Form::Scalar && !matches!(instr, Instr::Const(..)));
        instr.for_each_operand(|operand| {
            in_vectors[operand] |= forms[at] != Form::Scalar;
            elsewhere[operand] |= matches!(forms[at], Form::Scalar | Form::Both);
        });
    }
    if moved < saved { forms } else { Vec::new() }
}

/// The vectors of a type, if that is a float.
pub(crate) fn vector_of(ty: ir::Type) -> Option<ir::Type> {
    if ty.is_float() { ty.by(types::I8X16.bits() / ty.bits()) } else { None }
}

impl Player<'_, '_, '_> {
    /// Plays an instruction in vectors if that is its form. True if nothing is left to play of it.
    pub(crate) fn blend(&mut self, at: usize) -> bool {
        match self.forms.get(at) {
            None | Some(Form::Scalar) => return false,
            // Others have asked for it, or will.
            Some(Form::Late | Form::Asked) => return true,
            Some(Form::Both) => {
                self.play_late(at);
                return false;
            }
            Some(Form::Selected) => {}
        }
        self.play_late(at);
        if let Some(vector) = self.vectors[at] {
            self.values[at] = Some(self.builder.ins().extractlane(vector, 0));
        }
        true
    }

    /// Plays an instruction in vectors, and before it what waited to be asked for.
    fn play_late(&mut self, last: usize) {
        let tape = self.tape;
        let mut needed = vec![last];
        let mut seen = 0;
        while let Some(at) = needed.get(seen).copied() {
            seen += 1;
            tape.instrs()[at].for_each_operand(|operand| {
                if self.forms[operand] == Form::Late {
                    self.forms[operand] = Form::Asked;
                    needed.push(operand);
                }
            });
        }
        needed.sort_unstable();
        for at in needed {
            self.around.mark(self.builder, Some(tape.site(at)));
            self.vectors[at] = self.in_vectors(at);
        }
    }

    fn in_vectors(&mut self, at: usize) -> Option<ir::Value> {
        Some(match self.tape.instrs()[at] {
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
        })
    }

    /// An earlier instruction's number in every lane of a vector, or its mask as wide as one.
    fn vector(&mut self, at: usize) -> ir::Value {
        if let Some(vector) = self.vectors[at] {
            return vector;
        }
        let vector = match (&self.tape.instrs()[at], self.values[at]) {
            (Instr::Const(ty, bits), _) => {
                vector_of(clif_type(*ty)).map(|ty| instructions::splat(self.builder, ty, *bits))
            }
            (_, Some(number)) => {
                vector_of(self.builder.func.dfg.value_type(number)).map(|ty| self.builder.ins().splat(ty, number))
            }
            (_, None) => None,
        };
        let vector = vector.unwrap_or_else(|| {
            debug_assert!(false, "instruction {at} is used but was not played, or is no float");
            instructions::splat(self.builder, types::F64X2, 0)
        });
        self.vectors[at] = Some(vector);
        vector
    }
}
