//! Lists tapes (sequences of instructions without branches) as text, one instruction per line, for `explain` and for
//! failing tests.

use crate::{Instr, Tape};
use cembra_runtime::{LineKind, Listing};
use std::fmt;

impl fmt::Display for Instr {
    /// Writes the instruction without its result, as in `Mul v1 v2`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
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
        Ok(())
    }
}

impl Tape {
    /// Lists the tape, one instruction per line, as in `v3 = Mul v1 v2`. The origin of a line is the index of the plan's step that the instruction
    /// was recorded for.
    #[must_use]
    pub fn listing(&self) -> Listing {
        let mut listing = Listing::new();
        for (at, instr) in self.instrs.iter().enumerate() {
            let kind = match instr {
                Instr::Input(_) | Instr::InputMask => LineKind::Input,
                Instr::Const(..) | Instr::MaskConst(_) => LineKind::Literal,
                _ => LineKind::Step,
            };
            // A constant may serve several steps, and an input serves all.
            let origin = (kind == LineKind::Step).then(|| self.site(at));
            listing.push(kind, origin, format_args!("v{at} = {instr}"));
        }
        if !self.outputs().is_empty() {
            let outputs: String = self.outputs().iter().map(|output| format!(" v{}", output.index())).collect();
            listing.push(LineKind::Output, [], format_args!("->{outputs}"));
        }
        listing
    }
}

impl fmt::Display for Tape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.listing().fmt(f)
    }
}
