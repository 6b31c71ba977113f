//! Prints lane programs (models for many rows at once), for `explain` and for failing tests: the columns, then each
//! segment with the columns that it uses.

use crate::Port;
use crate::lanes::program::{Body, ColumnId, KernelReason, LaneColumn, LaneProgram, Origin, Source, ValuePart};
use cembra_runtime::MachineType;
use std::fmt;

impl fmt::Display for ColumnId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "c{}", self.index())
    }
}

impl fmt::Display for ValuePart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ValuePart::Presence => "presence",
            ValuePart::Number => "number",
            ValuePart::Flag => "flag",
            ValuePart::Pointer => "pointer",
            ValuePart::Length => "length",
        })
    }
}

impl fmt::Display for LaneColumn {
    /// Writes the column's origin and type, as in `input 0 number F64`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.origin {
            Origin::Input { index, part } => write!(f, "input {index} {part}")?,
            Origin::Output { index, part } => write!(f, "output {index} {part}")?,
            Origin::Frame { offset } => write!(f, "frame [{offset:#04x}]")?,
            Origin::Scratch { offset } => write!(f, "scratch [{offset:#x}]")?,
            Origin::Once { offset } => write!(f, "once [{offset:#x}]")?,
        }
        match self.ty {
            MachineType::Flag => write!(f, " mask")?,
            ty => write!(f, " {ty:?}")?,
        }
        match self.port {
            Port::Rows => Ok(()),
            Port::Shared => write!(f, ", shared"),
            Port::Chains => write!(f, ", chains"),
        }
    }
}

impl fmt::Display for LaneProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "Columns: {} bytes of scratch for 64 rows, strips of {} rows", self.scratch, self.strip_rows(0))?;
        for (at, column) in self.columns.iter().enumerate() {
            writeln!(f, "c{at} = {column}")?;
        }
        for (at, segment) in self.segments.iter().enumerate() {
            let once = if segment.once { ", once for all rows" } else { "" };
            match &segment.body {
                Body::Tape(tape) => {
                    write!(f, "Segment {at}{once}: tape(")?;
                    list(f, &tape.inputs)?;
                    write!(f, ") -> ")?;
                    list(f, &tape.outputs)?;
                    writeln!(f)?;
                    write!(f, "{}", tape.tape)?;
                }
                Body::Kernel(kernel) => {
                    let why = match kernel.why {
                        KernelReason::NoRule => "has no rule",
                        KernelReason::Unsupported => "cannot be played",
                    };
                    writeln!(f, "Segment {at}{once}: kernel of step {}, {} {why}", kernel.site, kernel.label)?;
                    if let Some(rows) = kernel.rows {
                        writeln!(f, "for rows of {rows}")?;
                    }
                    for load in &kernel.loads {
                        match load.from {
                            Source::Column(column) => writeln!(f, "[{:#04x}] = {column}", load.offset)?,
                            Source::Constant(bits) => writeln!(f, "[{:#04x}] = {bits:#x}", load.offset)?,
                        }
                    }
                    writeln!(f, "call {}", kernel.label)?;
                    for store in &kernel.stores {
                        writeln!(f, "{} = [{:#04x}]", store.column, store.offset)?;
                    }
                }
                Body::Memo(memo) => {
                    writeln!(f, "Segment {at}{once}: once for each value of input {}", memo.input)?;
                    if let Some(rows) = memo.rows {
                        writeln!(f, "for rows of {rows}")?;
                    }
                    // Memos do not nest.
                    for line in memo.program.to_string().lines() {
                        writeln!(f, "    {line}")?;
                    }
                    for store in &memo.stores {
                        writeln!(f, "{} = {} of the value", store.column, store.result)?;
                    }
                }
            }
        }
        Ok(())
    }
}

fn list(f: &mut fmt::Formatter<'_>, columns: &[ColumnId]) -> fmt::Result {
    for (at, column) in columns.iter().enumerate() {
        write!(f, "{}{column}", if at > 0 { ", " } else { "" })?;
    }
    Ok(())
}
