//! Lists lane programs (models for many rows at once), for `explain` and for failing tests: the columns, then each
//! segment with the columns that it uses.

use crate::Port;
use crate::lanes::program::{
    Body, ColumnId, KernelReason, KernelSegment, LaneColumn, LaneProgram, Origin, Source, ValuePart,
};
use cembra_runtime::{LineKind, Listing, MachineType};
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

impl LaneProgram {
    /// Lists the program: its columns, then each segment. The origins of a line are the indices of the plan's steps that the line computes.
    #[must_use]
    pub fn listing(&self) -> Listing {
        let (mut listing, strip) = (Listing::new(), self.strip_rows(0));
        let head = format_args!("Columns: {} bytes of scratch for 64 rows, strips of {strip} rows", self.scratch);
        listing.push(LineKind::Heading, [], head);
        for (at, column) in self.columns.iter().enumerate() {
            listing.push(LineKind::Input, [], format_args!("c{at} = {column}"));
        }
        for (at, segment) in self.segments.iter().enumerate() {
            let once = if segment.once { ", once for all rows" } else { "" };
            match &segment.body {
                Body::Tape(tape) => {
                    let [inputs, outputs] = [&tape.inputs, &tape.outputs].map(|columns| names(columns));
                    let head = format_args!("Segment {at}{once}: tape({inputs}) -> {outputs}");
                    listing.push(LineKind::Heading, [], head);
                    listing.append(tape.tape.listing(), "");
                }
                Body::Kernel(kernel) => list_kernel(&mut listing, kernel, format_args!("Segment {at}{once}")),
                Body::Memo(memo) => {
                    let head = format_args!("Segment {at}{once}: once for each value of input {}", memo.input);
                    listing.push(LineKind::Heading, [], head);
                    if let Some(rows) = memo.rows {
                        listing.push(LineKind::Note, [], format_args!("for rows of {rows}"));
                    }
                    // Memos do not nest.
                    listing.append(memo.program.listing(), "    ");
                    for store in &memo.stores {
                        listing.push(
                            LineKind::Step,
                            [],
                            format_args!("{} = {} of the value", store.column, store.result),
                        );
                    }
                }
            }
        }
        listing
    }
}

fn list_kernel(listing: &mut Listing, kernel: &KernelSegment, segment: impl fmt::Display) {
    let why = match kernel.why {
        KernelReason::NoRule => "has no rule",
        KernelReason::Unsupported => "cannot be played",
    };
    let (site, label) = (kernel.site, kernel.label);
    listing.push(LineKind::Heading, [site], format_args!("{segment}: kernel of step {site}, {label} {why}"));
    if let Some(rows) = kernel.rows {
        listing.push(LineKind::Note, [site], format_args!("for rows of {rows}"));
    }
    for load in &kernel.loads {
        match load.from {
            Source::Column(column) => {
                listing.push(LineKind::Step, [site], format_args!("[{:#04x}] = {column}", load.offset));
            }
            Source::Constant(bits) => {
                listing.push(LineKind::Step, [site], format_args!("[{:#04x}] = {bits:#x}", load.offset));
            }
        }
    }
    listing.push(LineKind::Step, [site], format_args!("call {label}"));
    for store in &kernel.stores {
        listing.push(LineKind::Step, [site], format_args!("{} = [{:#04x}]", store.column, store.offset));
    }
}

fn names(columns: &[ColumnId]) -> String {
    columns.iter().map(ColumnId::to_string).collect::<Vec<String>>().join(", ")
}

impl fmt::Display for LaneProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.listing().fmt(f)
    }
}
