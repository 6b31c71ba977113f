//! Rows: a whole plan in a loop over the rows of columns. What a value of a column is at a row is loaded where the row begins, and
//! outputs are stored where it ends; between the two the code is that of a single evaluation. A row that fails leaves the
//! function, whose progress says which it was; whoever called it goes on with the next.

use super::body::Body;
use super::columns::Row;
use cembra_runtime::ColumnForm;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self, InstBuilder, MemFlagsData, types};
use std::mem::offset_of;

/// The rows that are left: code reads where to begin and end, and says which row it is at.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Progress {
    pub(crate) next: usize,
    pub(crate) end: usize,
}

/// The loop over rows.
pub(super) struct Rows {
    start: ir::Block,
    done: ir::Block,
    row: ir::Value,
}

impl Rows {
    /// Goes to the first row, and loads its inputs.
    pub(super) fn begin<'a>(body: &mut Body<'a, '_, '_>, forms: &'a [ColumnForm]) -> Rows {
        let flags = MemFlagsData::trusted();
        let [next, end] = [offset_of!(Progress, next), offset_of!(Progress, end)].map(|offset| offset as i32);
        let [columns, progress, _] = body.memories.addresses;
        let builder = &mut *body.builder;
        let [start, inside, done] = [(); 3].map(|()| builder.create_block());
        let row = builder.append_block_param(start, types::I64);
        let first = builder.ins().load(types::I64, flags, progress, next);
        builder.ins().jump(start, &[first.into()]);
        builder.switch_to_block(start);
        let end = builder.ins().load(types::I64, flags, progress, end);
        let goes_on = builder.ins().icmp(IntCC::UnsignedLessThan, row, end);
        builder.ins().brif(goes_on, inside, &[], done, &[]);
        builder.seal_block(inside);
        builder.switch_to_block(inside);
        builder.ins().store(flags, row, progress, next);
        let [inputs, outputs, _] = body.memories.regions;
        let row = Row { forms, columns, number: row, regions: [inputs, outputs] };
        body.row = Some(row);
        let plan = body.plan();
        for (at, input) in plan.inputs().iter().enumerate() {
            let held = row.load(body.builder, at, &plan.value(input.value).qtype);
            body.held.set(input.value, held);
        }
        Rows { start, done, row: row.number }
    }

    /// Goes on with the next row; leaves the function behind the last.
    pub(super) fn end(self, body: &mut Body<'_, '_, '_>) {
        let next = body.builder.ins().iadd_imm_s(self.row, 1);
        body.builder.ins().jump(self.start, &[next.into()]);
        body.builder.seal_block(self.start);
        body.builder.seal_block(self.done);
        body.builder.switch_to_block(self.done);
        body.succeed();
    }
}
