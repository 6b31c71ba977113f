//! Rows: the code of a plan in a loop over the rows of columns. Inputs are loaded at the start of each row, and outputs
//! are stored at its end; the code in between is the same as for a single evaluation. If a row fails, the code returns,
//! and `Progress` has the index of this row. The caller records it, and calls the code again for the next row.

use super::body::Body;
use super::columns::{Row, RowOffset, SHARED_STRIDES, Stride, kept_strides};
use cembra_runtime::ColumnForm;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self, InstBuilder, MemFlagsData, types};
use std::mem::offset_of;

/// The range of rows that remain to be evaluated, which must not be empty. The machine code reads both fields, and
/// writes the index of the current row to `next`.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Progress {
    pub(crate) next: usize,
    pub(crate) end: usize,
}

/// The loop over rows that is being emitted: its first block, and the strides of the offsets that it updates for each row.
pub(super) struct Rows {
    start: ir::Block,
    /// The strides for which the loop carries the offset from the first row to the current row, and adds the stride
    /// once per row.
    strides: Vec<Stride>,
}

impl Rows {
    /// Emits the loads of inputs that all rows share, begins the loop, and emits the loads of the other inputs for the current row.
    pub(super) fn begin<'a>(body: &mut Body<'a, '_, '_>, forms: &'a [ColumnForm]) -> Rows {
        let [columns, progress, _] = body.memories.addresses;
        let [inputs, outputs, _] = body.memories.regions;
        let regions = [inputs, outputs];
        let flags = MemFlagsData::trusted();
        let next = offset_of!(Progress, next) as i32;
        let first = body.builder.ins().load(types::I64, flags, progress, next);
        let before = Row::new(forms, columns, first, [None; SHARED_STRIDES], regions);
        load(body, before, true);
        let start = body.builder.create_block();
        let strides: Vec<Stride> = kept_strides(forms).collect();
        let mut entry = vec![first.into()];
        for stride in &strides {
            let bytes = before.stride(body.builder, *stride);
            entry.push(body.builder.ins().imul(first, bytes).into());
        }
        body.builder.ins().jump(start, &entry);
        body.builder.switch_to_block(start);
        let number = body.builder.append_block_param(start, types::I64);
        let mut distances = [None; SHARED_STRIDES];
        for (kept, stride) in distances.iter_mut().zip(&strides) {
            let bytes = body.builder.append_block_param(start, types::I64);
            *kept = Some(RowOffset { pace: stride.pace, bytes });
        }
        body.builder.ins().store(flags, number, progress, next);
        load(body, Row::new(forms, columns, number, distances, regions), false);
        Rows { start, strides }
    }

    /// Emits the step to the next row, and the return after the last row.
    pub(super) fn end(self, body: &mut Body<'_, '_, '_>) {
        let Some(row) = body.row else { return };
        let builder = &mut *body.builder;
        let number = builder.ins().iadd_imm_s(row.number, 1);
        let mut next = vec![number.into()];
        for (stride, distance) in self.strides.iter().zip(row.distances.iter().flatten()) {
            let bytes = row.stride(builder, *stride);
            next.push(builder.ins().iadd(distance.bytes, bytes).into());
        }
        let progress = body.memories.addresses[1];
        let end = builder.ins().load(types::I64, MemFlagsData::trusted(), progress, offset_of!(Progress, end) as i32);
        let goes_on = builder.ins().icmp(IntCC::UnsignedLessThan, number, end);
        let done = builder.create_block();
        builder.ins().brif(goes_on, self.start, &next, done, &[]);
        builder.seal_block(self.start);
        builder.seal_block(done);
        builder.switch_to_block(done);
        body.succeed();
    }
}

/// Emits the loads of the inputs that all rows share if `shared` is set, else of the other inputs.
fn load<'a>(body: &mut Body<'a, '_, '_>, mut row: Row<'a>, shared: bool) {
    let plan = body.plan();
    for (at, input) in plan.inputs().iter().enumerate() {
        if row.forms[at].is_shared == shared {
            let held = row.load(body.builder, at, &plan.value(input.value).qtype);
            body.held.set(input.value, held);
        }
    }
    body.row = Some(row);
}
