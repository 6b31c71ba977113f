//! Prints tapes (sequences of instructions without branches) as text, one instruction per line, for `explain` and for
//! failing tests.

use crate::{Instr, Tape};
use std::fmt;

impl fmt::Display for Tape {
    /// Writes one instruction per line, as in `v3 = Mul v1 v2`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, instr) in self.instrs.iter().enumerate() {
            write!(f, "v{at} = ")?;
            match instr {
                Instr::Input(ty) => write!(f, "input {ty:?}")?,
                Instr::InputMask => write!(f, "input mask")?,
                Instr::Const(ty, bits) => write!(f, "const {ty:?} {bits:#x}")?,
                Instr::MaskConst(value) => write!(f, "mask {value}")?,
                Instr::Un(op, a) => write!(f, "{op:?} v{}", a.0)?,
                Instr::Bin(op, a, b) => write!(f, "{op:?} v{} v{}", a.0, b.0)?,
                Instr::Shift(op, a, by) => write!(f, "shift {op:?} v{} {by}", a.0)?,
                Instr::Fma(a, b, c) => write!(f, "fma v{} v{} v{}", a.0, b.0, c.0)?,
                Instr::Cmp(op, a, b) => write!(f, "{op:?} v{} v{}", a.0, b.0)?,
                Instr::Select { mask, on, off, rare } => {
                    write!(f, "{} v{} v{} v{}", if *rare { "select_rare" } else { "select" }, mask.0, on.0, off.0)?;
                }
                Instr::MaskAnd(a, b) => write!(f, "and v{} v{}", a.0, b.0)?,
                Instr::MaskOr(a, b) => write!(f, "or v{} v{}", a.0, b.0)?,
                Instr::MaskXor(a, b) => write!(f, "xor v{} v{}", a.0, b.0)?,
                Instr::MaskNot(a) => write!(f, "not v{}", a.0)?,
                Instr::Begin(mask) => write!(f, "begin v{}", mask.0)?,
                Instr::End => write!(f, "end")?,
                Instr::FaultIf { mask, kind, site, .. } => {
                    write!(f, "fault_if v{} {} at {site}", mask.0, kind.name())?;
                }
                Instr::Call(function, args) => {
                    write!(f, "call {}", function.symbol())?;
                    for arg in args {
                        write!(f, " v{}", arg.0)?;
                    }
                }
                Instr::RareCall { mask, function, args, otherwise } => {
                    write!(f, "where v{} call {}", mask.0, function.symbol())?;
                    for arg in args {
                        write!(f, " v{}", arg.0)?;
                    }
                    write!(f, " else v{}", otherwise.0)?;
                }
            }
            writeln!(f)?;
        }
        if !self.outputs().is_empty() {
            write!(f, "->")?;
            self.outputs().iter().try_for_each(|output| write!(f, " v{}", output.index()))?;
            writeln!(f)?;
        }
        Ok(())
    }
}
