//! Verifies lane programs (models for many rows at once). The verifier runs the segments symbolically, and tracks which
//! column is in each word of scratch memory, independently of how the offsets were assigned.

use crate::lanes::program::{Body, ColumnId, LaneColumn, LaneProgram, MemoSegment, Origin, Segment, Source};
use crate::{Output, Port, SkippableRangeFault, Tape};
use cembra_runtime::MachineType;
use std::fmt;

/// The reason why a lane program (a model for many rows at once) is invalid. The `usize` of a variant is the index of
/// the invalid segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum LaneFault {
    /// The segment reads this column, which is not written yet or was overwritten.
    Unwritten(usize, ColumnId),
    /// The segment writes this column, which is already written or is read-only.
    Written(usize, ColumnId),
    /// The segment writes this column at an offset that is not aligned, is outside the scratch memory, or overlaps a
    /// column that the segment reads.
    Misplaced(usize, ColumnId),
    /// The number of the segment's columns differs from the number of its tape's inputs or outputs (then the column is
    /// `None`), or the type of this column does not fit the column's use. A column of sums must be an `F64` output of a
    /// tape.
    Mistyped(usize, Option<ColumnId>),
    /// The segment's tape is not finished, or has instructions that are not needed.
    DeadInstructions(usize),
    /// The segment runs once per call but reads or writes columns with an element per row, or comes after a segment
    /// that runs on rows. Or the segment runs on rows, but writes columns that all rows share.
    Shared(usize),
    /// A stretch (skippable range of instructions) of the segment's tape cannot be jumped over, for this reason.
    Stretch(usize, SkippableRangeFault),
    /// The segment runs an inner program once per dictionary value, and breaks a rule. The segment must not be marked
    /// to run once per call. The inner program must not contain another segment of this kind. Of the inputs with an
    /// element per row, it must read only the dictionary. Only outputs of the inner program may be stored.
    Memo(usize),
    /// This column is an output that no segment writes, or another column has the same part of the same output.
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
            LaneFault::DeadInstructions(at) => write!(f, "the tape of segment {at} holds what nothing needs"),
            LaneFault::Shared(at) => write!(f, "segment {at} takes rows for what they share"),
            LaneFault::Stretch(at, fault) => write!(f, "in the tape of segment {at} {fault}"),
            LaneFault::Memo(at) => write!(f, "segment {at} is no memo of its input"),
            LaneFault::Output(column) => write!(f, "{column} is an output that nothing writes, or is one twice"),
        }
    }
}

impl std::error::Error for LaneFault {}

/// The state of the symbolic run of a lane program: the columns that are in memory so far.
struct Memory<'p> {
    program: &'p LaneProgram,
    /// For each 8-byte word of scratch memory for 64 rows, the column that was last written there; `None` before the
    /// first write.
    holders: Vec<Option<ColumnId>>,
    written: Vec<bool>,
}

impl LaneProgram {
    /// Checks that every column is written before it is read and stays intact until then, that outputs are written
    /// once, that the columns of segments have the right types, and that stretches may be jumped over.
    ///
    /// # Errors
    /// The first fault that is found.
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
            if let Body::Memo(memo) = &segment.body {
                check_memo(memo, at, segment.once)?;
            }
        }
        let outputs = self.outputs();
        for (at, column) in self.columns.iter().enumerate() {
            let Origin::Output { index, part } = column.origin else { continue };
            let id = ColumnId::from_index(at);
            if !memory.written[at] || outputs.get(index as usize, part) != Some(id) {
                return Err(LaneFault::Output(id));
            }
        }
        Ok(())
    }
}

impl Memory<'_> {
    /// The words of scratch memory that a column occupies; `None` if they are out of bounds or not aligned.
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
                // A column of sums has no elements of rows.
                Origin::Output { .. } | Origin::Once { .. } => {
                    self.written[column.index()] && self.program.column(*column).port != Port::Chains
                }
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

/// Checks that the columns of a segment have the types that the segment's tape, kernel or inner program requires.
fn check_types(program: &LaneProgram, at: usize, segment: &Segment) -> Result<(), LaneFault> {
    let check = |column: ColumnId, ty: MachineType| match program.columns.get(column.index()) {
        Some(found) if found.ty == ty => Ok(()),
        _ => Err(LaneFault::Mistyped(at, Some(column))),
    };
    let mut unfit = None;
    segment.for_each_write(|id| {
        let can_be = |column: &LaneColumn| {
            let is_number = column.ty == MachineType::F64 && matches!(column.origin, Origin::Output { .. });
            column.port != Port::Chains || is_number && matches!(segment.body, Body::Tape(_))
        };
        unfit = unfit.or((!program.columns.get(id.index()).is_some_and(can_be)).then_some(id));
    });
    if let Some(column) = unfit {
        return Err(LaneFault::Mistyped(at, Some(column)));
    }
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
                return Err(LaneFault::DeadInstructions(at));
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
        Body::Memo(memo) => {
            if let Some(rows) = memo.rows {
                check(rows, MachineType::Flag)?;
            }
            for store in &memo.stores {
                let result = memo.program.columns.get(store.result.index());
                check(store.column, result.ok_or(LaneFault::Memo(at))?.ty)?;
            }
        }
    }
    Ok(())
}

/// Checks that the inner program of a segment, which runs once per dictionary value, depends only on the dictionary and
/// on values that all rows share.
fn check_memo(memo: &MemoSegment, at: usize, once: bool) -> Result<(), LaneFault> {
    let reads_right = |column: &LaneColumn| match column.origin {
        Origin::Input { index, .. } => index == memo.input || column.port == Port::Shared,
        _ => true,
    };
    let is_result = |column: ColumnId| matches!(memo.program.column(column).origin, Origin::Output { .. });
    let nests = memo.program.segments.iter().any(|segment| matches!(segment.body, Body::Memo(_)));
    let fits = !once && !nests && memo.program.columns.iter().all(reads_right);
    if !fits || !memo.stores.iter().all(|store| is_result(store.result)) {
        return Err(LaneFault::Memo(at));
    }
    memo.program.verify().map_err(|_| LaneFault::Memo(at))
}

fn type_of(tape: &Tape, output: Output) -> MachineType {
    match output {
        Output::Mask(_) => MachineType::Flag,
        Output::Number(val) => tape.ty(val),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lanes::program::{KernelReason, KernelSegment, Load, MemoStore, Store, TapeSegment, ValuePart};
    use crate::{Bin, Mask, Val};
    use cembra_runtime::KernelChain;

    const X: ColumnId = ColumnId::from_index(0);
    const MIDDLE: ColumnId = ColumnId::from_index(1);
    const OUT: ColumnId = ColumnId::from_index(2);
    const LATE: ColumnId = ColumnId::from_index(3);

    fn tape(build: impl FnOnce(&mut Tape, Val, Mask) -> Output, inputs: &[ColumnId], output: ColumnId) -> Segment {
        let mut tape = Tape::new();
        let x = tape.input(MachineType::F64);
        let never = tape.mconst(false);
        let output_of = build(&mut tape, x, never);
        tape.output(output_of);
        tape.finish();
        tape.sweep();
        let body = Body::Tape(TapeSegment { tape, inputs: inputs.to_vec(), outputs: vec![output] });
        Segment { once: false, body }
    }

    /// Makes a segment that writes the sum of the column `from` with itself to the column `to`.
    fn double(from: ColumnId, to: ColumnId) -> Segment {
        tape(|tape, x, _| Output::Number(tape.bin(Bin::Add, x, x)), &[from], to)
    }

    fn column(origin: Origin) -> LaneColumn {
        LaneColumn { ty: MachineType::F64, port: Port::Rows, origin }
    }

    /// Makes a program with an input, two intermediate columns and an output.
    fn program(segments: Vec<Segment>) -> LaneProgram {
        let columns = vec![
            column(Origin::Input { index: 0, part: ValuePart::Number }),
            column(Origin::Scratch { offset: 0 }),
            column(Origin::Output { index: 0, part: ValuePart::Number }),
            column(Origin::Scratch { offset: 0 }),
        ];
        LaneProgram::new(columns, segments)
    }

    #[test]
    fn columns_are_written_once_and_before_they_are_read() {
        let fine = program(vec![double(X, MIDDLE), double(MIDDLE, LATE), double(LATE, OUT)]);
        assert_eq!(fine.verify(), Ok(()), "{fine}");
        assert_eq!(fine.scratch_bytes(64), 2 * 512, "what is read and what is written lie apart");
        let faults = [
            (vec![double(MIDDLE, OUT), double(X, MIDDLE)], LaneFault::Unwritten(0, MIDDLE)),
            (vec![double(X, OUT), double(X, OUT)], LaneFault::Written(1, OUT)),
            (vec![double(X, X)], LaneFault::Written(0, X)),
            (vec![double(X, MIDDLE)], LaneFault::Output(OUT)),
        ];
        for (segments, fault) in faults {
            assert_eq!(program(segments).verify(), Err(fault));
        }
    }

    #[test]
    fn columns_keep_their_places_until_they_are_read() {
        let mut clobbered = program(vec![double(X, MIDDLE), double(X, LATE), double(MIDDLE, OUT)]);
        assert_eq!(clobbered.verify(), Ok(()));
        clobbered.columns[LATE.index()].origin = clobbered.columns[MIDDLE.index()].origin;
        assert_eq!(clobbered.verify(), Err(LaneFault::Unwritten(2, MIDDLE)));
        let mut in_place = program(vec![double(X, MIDDLE), double(MIDDLE, LATE), double(LATE, OUT)]);
        in_place.columns[LATE.index()].origin = in_place.columns[MIDDLE.index()].origin;
        assert_eq!(in_place.verify(), Err(LaneFault::Misplaced(1, LATE)));
        let mut unaligned = program(vec![double(X, MIDDLE), double(MIDDLE, OUT)]);
        unaligned.columns[MIDDLE.index()].origin = Origin::Scratch { offset: 8 };
        assert_eq!(unaligned.verify(), Err(LaneFault::Misplaced(0, MIDDLE)));
    }

    #[test]
    fn columns_fit_what_they_are_for() {
        let mut flags = program(vec![double(X, OUT)]);
        flags.columns[OUT.index()].ty = MachineType::Flag;
        assert_eq!(flags.verify(), Err(LaneFault::Mistyped(0, Some(OUT))));
        let more = tape(|tape, x, _| Output::Number(tape.bin(Bin::Add, x, x)), &[X, X], OUT);
        assert_eq!(program(vec![more]).verify(), Err(LaneFault::Mistyped(0, None)));
        let load = Load { from: Source::Column(X), ty: MachineType::I64, offset: 0 };
        let kernel = KernelSegment {
            label: "test",
            site: 0,
            why: KernelReason::NoRule,
            call: KernelChain::default(),
            rows: None,
            loads: vec![load],
            stores: vec![Store { offset: 8, column: OUT, is_presence: false }],
        };
        let called = program(vec![Segment { once: false, body: Body::Kernel(kernel) }]);
        assert_eq!(called.verify(), Err(LaneFault::Mistyped(0, Some(X))));
    }

    #[test]
    fn what_rows_share_is_made_of_what_rows_share() {
        let mut once = double(X, OUT);
        once.once = true;
        assert_eq!(program(vec![once]).verify(), Err(LaneFault::Shared(0)));
        let mut shared = program(vec![double(X, MIDDLE), double(MIDDLE, OUT)]);
        shared.segments[0].once = true;
        shared.columns[X.index()].port = Port::Shared;
        shared.columns[MIDDLE.index()] = LaneColumn { port: Port::Shared, ..column(Origin::Once { offset: 0 }) };
        assert_eq!(shared.verify(), Ok(()));
        shared.segments.swap(0, 1);
        assert_eq!(shared.verify(), Err(LaneFault::Unwritten(0, MIDDLE)));
    }

    #[test]
    fn sums_are_of_outputs_and_nobody_reads_them() {
        let sums = |of: ColumnId, segments| {
            let mut program = program(segments);
            program.columns[of.index()].port = Port::Chains;
            program
        };
        let summed = sums(OUT, vec![double(X, OUT)]);
        assert_eq!(summed.verify(), Ok(()), "{summed}");
        assert_eq!(sums(OUT, vec![double(X, OUT), double(OUT, MIDDLE)]).verify(), Err(LaneFault::Unwritten(1, OUT)));
        let inside = sums(MIDDLE, vec![double(X, MIDDLE), double(MIDDLE, OUT)]);
        assert_eq!(inside.verify(), Err(LaneFault::Mistyped(0, Some(MIDDLE))));
    }

    #[test]
    fn a_memo_depends_on_its_input_alone() {
        let memo = |of: u32, stored: ColumnId| {
            let inside = program(vec![double(X, OUT)]);
            let stores = vec![MemoStore { result: stored, column: MIDDLE }];
            let body = Body::Memo(Box::new(MemoSegment { input: of, rows: None, program: inside, stores }));
            program(vec![Segment { once: false, body }, double(MIDDLE, OUT)])
        };
        assert_eq!(memo(0, OUT).verify(), Ok(()), "{}", memo(0, OUT));
        assert_eq!(memo(1, OUT).verify(), Err(LaneFault::Memo(0)), "it reads another input");
        assert_eq!(memo(0, X).verify(), Err(LaneFault::Memo(0)), "that is no result");
        let mut nested = memo(0, OUT);
        let inner = nested.segments[0].clone();
        let Body::Memo(segment) = &mut nested.segments[0].body else { panic!("a memo") };
        segment.program.segments.insert(0, inner);
        assert_eq!(nested.verify(), Err(LaneFault::Memo(0)));
        let mut other = memo(0, OUT);
        other.columns[MIDDLE.index()].ty = MachineType::I64;
        assert_eq!(other.verify(), Err(LaneFault::Mistyped(0, Some(MIDDLE))));
    }

    #[test]
    fn tapes_are_swept_and_their_stretches_can_be_skipped() {
        let mut unswept = program(vec![double(X, OUT)]);
        let Body::Tape(segment) = &mut unswept.segments[0].body else { panic!("a tape") };
        segment.tape.konst(MachineType::F64, 0);
        segment.tape.finish();
        assert_eq!(unswept.verify(), Err(LaneFault::DeadInstructions(0)));
        let skipped = tape(
            |tape, x, never| {
                tape.begin(never);
                let sum = tape.bin(Bin::Add, x, x);
                tape.end();
                Output::Number(sum)
            },
            &[X],
            OUT,
        );
        assert_eq!(program(vec![skipped]).verify(), Err(LaneFault::Stretch(0, SkippableRangeFault::Output(0))));
    }
}
