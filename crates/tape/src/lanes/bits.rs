//! The reference evaluator of lane programs (models for many rows at once), which tests compare backends with. It
//! evaluates each segment of a program row by row, on the bits of values: tapes with the reference evaluator of tapes,
//! kernels by calls. Columns are at their offsets in scratch memory, as in a real backend, so a program whose columns
//! overlap gives wrong bits here too.

use crate::lanes::program::{
    Body, ColumnId, KernelSegment, LaneColumn, LaneProgram, MemoSegment, Origin, Source, TapeSegment, ValuePart,
};
use crate::{Outcome, Port};
use cembra_runtime::{CHAINS, Context, FramePtr, MachineType, STATUS_OK, chain_of};

/// The bits in the columns of a lane program (a model for many rows at once) for the rows of one run of the reference
/// evaluator: the inputs, and after the run also the outputs.
#[derive(Clone, Debug)]
pub struct BitColumns {
    rows: usize,
    scratch: Vec<u8>,
    /// The elements of each column that is neither in scratch memory nor in the frame.
    elements: Vec<Vec<u64>>,
}

/// The byte that unwritten memory is filled with.
const NOISE: u8 = 0xA5;

impl BitColumns {
    /// The bits of `column` in row `row`. The column must be one of [`LaneProgram::outputs`]. For a column of partial
    /// sums ([`Port::Chains`]), `row` is the index of a partial sum. The result is 0 if `row` is out of range.
    #[must_use]
    pub fn bits(&self, column: ColumnId, row: usize) -> u64 {
        self.elements[column.index()].get(row).copied().unwrap_or_default()
    }
}

impl LaneProgram {
    /// Runs the program on `rows` rows. `input` returns the zero-extended bits of an input, given the input's index,
    /// the part of the value (such as its presence) and the row. `input` is called once per row even for an input that
    /// all rows share. Returns `None` if a row fails.
    ///
    /// # Safety
    /// CALL: the frame (the memory of one evaluation) must be made from the template of the plan that the program was
    /// recorded from. OPERATOR-DATA: the compiled state of the plan's operators must be alive. STRING-VIEW: the pointer
    /// and the length of each present string must be a view of a live string.
    #[must_use]
    pub unsafe fn run_on_bits(
        &self,
        rows: usize,
        input: &dyn Fn(u32, ValuePart, usize) -> u64,
        frame: FramePtr,
        context: &mut Context,
    ) -> Option<BitColumns> {
        let elements = self.columns.iter().map(|column| match column.origin {
            Origin::Input { index, part } => (0..rows).map(|row| input(index, part, row)).collect(),
            _ if column.port == Port::Chains => vec![0; CHAINS],
            _ => vec![u64::from_ne_bytes([NOISE; 8]); rows],
        });
        let mut bits =
            BitColumns { rows, scratch: vec![NOISE; self.scratch_bytes(rows)], elements: elements.collect() };
        for segment in &self.segments {
            for row in 0..if segment.once { rows.min(1) } else { rows } {
                let done = match &segment.body {
                    // SAFETY: CALL and STRING-VIEW, promised by the caller.
                    Body::Tape(tape) => unsafe { bits.play(self, tape, row, frame) },
                    // SAFETY: CALL, OPERATOR-DATA and STRING-VIEW, promised by the caller.
                    Body::Kernel(kernel) => unsafe { bits.call(self, kernel, row, frame, context) },
                    // SAFETY: CALL, OPERATOR-DATA and STRING-VIEW, promised by the caller.
                    Body::Memo(memo) => unsafe { bits.remember(self, memo, row, input, frame, context) },
                };
                if !done {
                    return None;
                }
            }
        }
        Some(bits)
    }
}

impl BitColumns {
    /// Runs a segment's tape for the row `row`. Returns false if the tape stopped at a fault.
    ///
    /// # Safety
    /// CALL, OPERATOR-DATA and STRING-VIEW, as for [`LaneProgram::run_on_bits`].
    unsafe fn play(&mut self, program: &LaneProgram, segment: &TapeSegment, row: usize, frame: FramePtr) -> bool {
        // SAFETY: CALL, promised by the caller.
        let inputs: Vec<u64> =
            segment.inputs.iter().map(|column| unsafe { self.read(program, *column, row, frame) }).collect();
        // SAFETY: STRING-VIEW, promised by the caller, also for views that cross segments.
        let Outcome::Done(results) = (unsafe { segment.tape.run_on_bits(&inputs) }) else { return false };
        for (column, output) in segment.outputs.iter().zip(segment.tape.outputs()) {
            self.write(program, *column, row, results[output.index()]);
        }
        true
    }

    /// Calls a segment's kernel for the row `row`, if the segment's mask holds in this row. Returns false if the kernel
    /// failed.
    ///
    /// # Safety
    /// CALL, OPERATOR-DATA and STRING-VIEW, as for [`LaneProgram::run_on_bits`].
    unsafe fn call(
        &mut self,
        program: &LaneProgram,
        segment: &KernelSegment,
        row: usize,
        frame: FramePtr,
        context: &mut Context,
    ) -> bool {
        // SAFETY: CALL, promised by the caller.
        let is_asked = segment.rows.is_none_or(|rows| unsafe { self.read(program, rows, row, frame) } != 0);
        if is_asked {
            for load in &segment.loads {
                let bits = match load.from {
                    // SAFETY: CALL, promised by the caller.
                    Source::Column(column) => unsafe { self.read(program, column, row, frame) },
                    Source::Constant(bits) => bits,
                };
                // SAFETY: FRAME-SLOT: the argument's slot in the plan's layout.
                unsafe { frame.write_bits(load.ty, load.offset, bits) };
            }
            // SAFETY: KERNEL-ROW: a row of one call is at the start; its arguments are in their slots.
            if unsafe { segment.call.call(0).run(context, frame) } != STATUS_OK {
                return false;
            }
        }
        let mut is_there = is_asked;
        for store in &segment.stores {
            let ty = program.column(store.column).ty;
            // SAFETY: FRAME-SLOT: the result's slot in the plan's layout, which the kernel wrote.
            let bits = if is_there { unsafe { frame.read_bits(ty, store.offset) } } else { 0 };
            if store.is_presence {
                is_there &= bits != 0;
            }
            self.write(program, store.column, row, bits);
        }
        true
    }

    /// Runs the inner program of a segment that computes results once per dictionary value, for the row `row`, if the
    /// segment's mask holds in this row. Results are not shared between rows. Returns false if the inner program
    /// failed.
    ///
    /// # Safety
    /// CALL, OPERATOR-DATA and STRING-VIEW, as for [`LaneProgram::run_on_bits`].
    unsafe fn remember(
        &mut self,
        program: &LaneProgram,
        memo: &MemoSegment,
        row: usize,
        input: &dyn Fn(u32, ValuePart, usize) -> u64,
        frame: FramePtr,
        context: &mut Context,
    ) -> bool {
        // SAFETY: CALL, promised by the caller.
        let is_asked = memo.rows.is_none_or(|rows| unsafe { self.read(program, rows, row, frame) } != 0);
        let of_row = |index: u32, part: ValuePart, _: usize| input(index, part, row);
        // SAFETY: CALL, OPERATOR-DATA and STRING-VIEW, promised by the caller. Memos do not nest.
        let made = if is_asked { unsafe { memo.program.run_on_bits(1, &of_row, frame, context) } } else { None };
        for store in &memo.stores {
            let bits = made.as_ref().map_or(0, |made| made.bits(store.result, 0));
            self.write(program, store.column, row, bits);
        }
        made.is_some() || !is_asked
    }

    /// Reads the bits of the column `id` in the row `row`.
    ///
    /// # Safety
    /// CALL: the frame is of the plan's layout.
    unsafe fn read(&self, program: &LaneProgram, id: ColumnId, row: usize, frame: FramePtr) -> u64 {
        let column = program.column(id);
        match (column.origin, program.scratch_offset(id, self.rows)) {
            // SAFETY: FRAME-SLOT, promised by the caller: a view is at the offset.
            (Origin::Frame { offset }, _) => unsafe { frame.read_bits(column.ty, offset) },
            (Origin::Once { .. }, _) => self.elements[id.index()][0],
            (_, None) => self.elements[id.index()][row],
            (_, Some(start)) if column.ty == MachineType::Flag => {
                u64::from(self.scratch[start + row / 8] >> (row % 8) & 1)
            }
            (_, Some(start)) => {
                let size = column.ty.size();
                let mut bytes = [0; 8];
                bytes[..size].copy_from_slice(&self.scratch[start + row * size..][..size]);
                u64::from_le_bytes(bytes)
            }
        }
    }

    fn write(&mut self, program: &LaneProgram, id: ColumnId, row: usize, bits: u64) {
        let LaneColumn { ty, port, .. } = *program.column(id);
        match program.scratch_offset(id, self.rows) {
            None if port == Port::Chains => {
                let sum = &mut self.elements[id.index()][chain_of(row)];
                *sum = (f64::from_bits(*sum) + f64::from_bits(bits)).to_bits();
            }
            None => self.elements[id.index()][row] = bits,
            Some(start) if ty == MachineType::Flag => {
                let byte = &mut self.scratch[start + row / 8];
                *byte = *byte & !(1 << (row % 8)) | (bits as u8 & 1) << (row % 8);
            }
            Some(start) => {
                let size = ty.size();
                self.scratch[start + row * size..][..size].copy_from_slice(&bits.to_le_bytes()[..size]);
            }
        }
    }
}
