//! The verifier of lane programs: plays the segments in the abstract, remembering which column each piece of scratch memory
//! holds. It knows nothing of how places were found.

use crate::lanes::program::{Body, ColumnId, LaneProgram, Origin, Segment, Source};
use crate::{Output, Port, StretchFault, Tape};
use cembra_runtime::MachineType;
use std::fmt;

/// Why a lane program is none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum LaneFault {
    /// The segment reads a column that is not written yet, or was overwritten.
    Unwritten(usize, ColumnId),
    /// The segment writes a column that is written already, or that is not to be written.
    Written(usize, ColumnId),
    /// The segment writes where something lies that it reads, or outside of the scratch memory, or unaligned.
    Misplaced(usize, ColumnId),
    /// The segment's tape has other inputs or outputs than it has columns, or the types of this column and of what it is for differ.
    Mistyped(usize, Option<ColumnId>),
    /// The segment's tape is not finished, or holds instructions that nothing needs.
    Unswept(usize),
    /// The segment is done once and works on rows, or stands behind one that does; or it is not done once and makes what
    /// all rows share.
    Shared(usize),
    /// A stretch of the segment's tape cannot be jumped over.
    Stretch(usize, StretchFault),
    /// Nothing writes the column of an output, or two columns are one part of an output.
    Output(ColumnId),
}

impl fmt::Display for LaneFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LaneFault::Unwritten(at, column) => write!(f, "segment {at} reads {column}, which is not there"),
            LaneFault::Written(at, column) => write!(f, "segment {at} writes {column}, which is there or is not to be"),
            LaneFault::Misplaced(at, column) => write!(f, "segment {at} writes {column} at a wrong place"),
            LaneFault::Mistyped(at, Some(column)) => write!(f, "segment {at} takes {column} for another type"),
            LaneFault::Mistyped(at, None) => write!(f, "segment {at} has more or fewer columns than its tape"),
            LaneFault::Unswept(at) => write!(f, "the tape of segment {at} holds what nothing needs"),
            LaneFault::Shared(at) => write!(f, "segment {at} takes rows for what they share"),
            LaneFault::Stretch(at, fault) => write!(f, "in the tape of segment {at} {fault}"),
            LaneFault::Output(column) => write!(f, "{column} is an output that nothing writes, or is one twice"),
        }
    }
}

impl std::error::Error for LaneFault {}

/// The memory of the abstract run.
struct Memory<'p> {
    program: &'p LaneProgram,
    /// For each word of scratch for 64 rows, the column it holds.
    holders: Vec<Option<ColumnId>>,
    written: Vec<bool>,
}

impl LaneProgram {
    /// Checks that every column is written before it is read and kept until then, that outputs are written once, that the
    /// segments and their columns fit, and that stretches may be jumped over.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn verify(&self) -> Result<(), LaneFault> {
        let words = (self.scratch / 8) as usize;
        let mut memory = Memory { program: self, holders: vec![None; words], written: vec![false; self.columns.len()] };
        let mut on_rows = false;
        for (at, segment) in self.segments.iter().enumerate() {
            memory.check_shared(at, segment, on_rows)?;
            on_rows |= !segment.once;
            check_types(self, at, segment)?;
            memory.play(at, segment)?;
            if let Body::Tape(tape) = &segment.body {
                tape.tape.check_stretches().map_err(|fault| LaneFault::Stretch(at, fault))?;
            }
        }
        for (at, column) in self.columns.iter().enumerate() {
            let is_output = matches!(column.origin, Origin::Output { .. });
            let is_first = || self.columns[..at].iter().all(|other| other.origin != column.origin);
            if is_output && !(memory.written[at] && is_first()) {
                return Err(LaneFault::Output(ColumnId::from_index(at)));
            }
        }
        Ok(())
    }
}

impl Memory<'_> {
    /// The words of scratch that a column takes; none outside of it, or unaligned.
    fn words(&self, column: ColumnId) -> Option<std::ops::Range<usize>> {
        let column = self.program.column(column);
        let Origin::Scratch { offset } = column.origin else { return Some(0..0) };
        let align = if column.ty == MachineType::Flag { 8 } else { 64 };
        let words = (offset / 8) as usize..((offset + column.bytes_for_64_rows()) / 8) as usize;
        (offset.is_multiple_of(align) && words.end <= self.holders.len()).then_some(words)
    }

    fn check_shared(&self, at: usize, segment: &Segment, on_rows: bool) -> Result<(), LaneFault> {
        let mut fits = !(segment.once && on_rows);
        segment.for_each_read(|column| fits &= !segment.once || self.program.column(column).port == Port::Shared);
        segment.for_each_write(|column| {
            let column = self.program.column(column);
            let is_once = matches!(column.origin, Origin::Once { .. });
            fits &= is_once == segment.once && (column.port == Port::Shared) == is_once;
        });
        if fits { Ok(()) } else { Err(LaneFault::Shared(at)) }
    }

    fn play(&mut self, at: usize, segment: &Segment) -> Result<(), LaneFault> {
        let mut read: Vec<ColumnId> = Vec::new();
        segment.for_each_read(|column| read.push(column));
        for column in &read {
            let is_there = match self.program.column(*column).origin {
                Origin::Input { .. } | Origin::Frame { .. } => true,
                Origin::Output { .. } | Origin::Once { .. } => self.written[column.index()],
                Origin::Scratch { .. } => self
                    .words(*column)
                    .is_some_and(|words| self.holders[words].iter().all(|holder| *holder == Some(*column))),
            };
            if !is_there {
                return Err(LaneFault::Unwritten(at, *column));
            }
        }
        let mut written: Vec<ColumnId> = Vec::new();
        segment.for_each_write(|column| written.push(column));
        for column in written {
            let origin = self.program.column(column).origin;
            let is_fixed = matches!(origin, Origin::Input { .. } | Origin::Frame { .. });
            if is_fixed || std::mem::replace(&mut self.written[column.index()], true) {
                return Err(LaneFault::Written(at, column));
            }
            let words = self.words(column).ok_or(LaneFault::Misplaced(at, column))?;
            for holder in &mut self.holders[words] {
                if holder.is_some_and(|held| read.contains(&held)) {
                    return Err(LaneFault::Misplaced(at, column));
                }
                *holder = Some(column);
            }
        }
        Ok(())
    }
}

/// Checks that a segment has the columns that its tape or kernel takes.
fn check_types(program: &LaneProgram, at: usize, segment: &Segment) -> Result<(), LaneFault> {
    let check = |column: ColumnId, ty: MachineType| match program.columns.get(column.index()) {
        Some(found) if found.ty == ty => Ok(()),
        _ => Err(LaneFault::Mistyped(at, Some(column))),
    };
    match &segment.body {
        Body::Tape(tape) => {
            if tape.tape.inputs().len() != tape.inputs.len() || tape.tape.outputs().len() != tape.outputs.len() {
                return Err(LaneFault::Mistyped(at, None));
            }
            for (column, (_, ty)) in tape.inputs.iter().zip(tape.tape.inputs()) {
                check(*column, ty)?;
            }
            for (column, output) in tape.outputs.iter().zip(tape.tape.outputs()) {
                check(*column, type_of(&tape.tape, *output))?;
            }
            let live = tape.tape.live();
            if live.len() != tape.tape.instrs().len() || live.contains(&false) {
                return Err(LaneFault::Unswept(at));
            }
        }
        Body::Kernel(kernel) => {
            if let Some(rows) = kernel.rows {
                check(rows, MachineType::Flag)?;
            }
            for load in &kernel.loads {
                if let Source::Column(column) = load.from {
                    check(column, load.ty)?;
                }
            }
        }
    }
    Ok(())
}

fn type_of(tape: &Tape, output: Output) -> MachineType {
    match output {
        Output::Mask(_) => MachineType::Flag,
        Output::Number(val) => tape.ty(val),
    }
}
