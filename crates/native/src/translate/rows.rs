//! Rows: a whole plan in a loop over the rows of columns. What a value of a column is at a row is loaded where the row begins, and
//! outputs are stored where it ends; between the two the code is that of a single evaluation. A row that fails leaves the
//! function, whose progress says which it was; whoever called it goes on with the next.

use super::body::Body;
use crate::emit::{Held, Memory, memory};
use cembra_record::{Datum, MachineValue, Presence};
use cembra_runtime::{Column, ColumnForm, DataForm, PresenceForm, QType};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self, AliasRegion, InstBuilder, MemFlagsData, types};
use std::mem::offset_of;

/// The rows that are left: code reads where to begin and end, and says which row it is at.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Progress {
    pub(crate) next: usize,
    pub(crate) end: usize,
}

/// The row that is being evaluated, and the columns.
#[derive(Clone, Copy)]
pub(super) struct Row<'a> {
    forms: &'a [ColumnForm],
    columns: ir::Value,
    number: ir::Value,
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
        let row = Row { forms, columns, number: row };
        body.row = Some(row);
        let plan = body.plan();
        for (at, input) in plan.inputs().iter().enumerate() {
            let held = row.load(body, at, &plan.value(input.value).qtype);
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

impl Row<'_> {
    /// A field of a column's description.
    fn field(self, body: &mut Body<'_, '_, '_>, column: usize, field: i32) -> ir::Value {
        let flags = MemFlagsData::trusted().with_readonly().with_can_move();
        body.builder.ins().load(types::I64, flags, self.columns, Column::SIZE * column as i32 + field)
    }

    /// The address of the row's element.
    fn element(
        self,
        body: &mut Body<'_, '_, '_>,
        column: usize,
        [first, stride]: [i32; 2],
        dense: Option<u32>,
    ) -> ir::Value {
        let first = self.field(body, column, first);
        let offset = match dense {
            _ if self.forms[column].is_shared => return first,
            Some(size) if size.is_power_of_two() => {
                body.builder.ins().ishl_imm_u(self.number, i64::from(size.trailing_zeros()))
            }
            Some(_) | None => {
                let stride = self.field(body, column, stride);
                body.builder.ins().imul(self.number, stride)
            }
        };
        body.builder.ins().iadd(first, offset)
    }

    /// The byte with the row's bit, and which of its bits that is.
    fn bit(
        self,
        body: &mut Body<'_, '_, '_>,
        column: usize,
        first: i32,
        region: AliasRegion,
        constant: bool,
    ) -> (Memory, ir::Value) {
        let first = self.field(body, column, first);
        let byte = body.builder.ins().ushr_imm_u(self.number, 3);
        let base = body.builder.ins().iadd(first, byte);
        let number = body.builder.ins().ireduce(types::I32, self.number);
        let bit = body.builder.ins().band_imm_s(number, 7);
        (Memory { base, offset: 0, region, constant, aligned: true }, bit)
    }

    fn load_bit(self, body: &mut Body<'_, '_, '_>, column: usize, first: i32) -> ir::Value {
        let region = body.memories.regions[0];
        let (from, bit) = self.bit(body, column, first, region, true);
        let byte = from.load(body.builder, types::I8);
        let wide = body.builder.ins().uextend(types::I32, byte);
        let shifted = body.builder.ins().ushr(wide, bit);
        let narrow = body.builder.ins().ireduce(types::I8, shifted);
        body.builder.ins().band_imm_s(narrow, 1)
    }

    /// Sets the row's bit to a flag: it is 0 before.
    fn store_bit(self, body: &mut Body<'_, '_, '_>, column: usize, first: i32, flag: ir::Value) {
        let region = body.memories.regions[1];
        let (to, bit) = self.bit(body, column, first, region, false);
        let wide = body.builder.ins().uextend(types::I32, flag);
        let shifted = body.builder.ins().ishl(wide, bit);
        let own = body.builder.ins().ireduce(types::I8, shifted);
        let others = to.load(body.builder, types::I8);
        let all = body.builder.ins().bor(others, own);
        to.store(body.builder, all);
    }

    /// Where the row's data are.
    fn data(
        self,
        body: &mut Body<'_, '_, '_>,
        column: usize,
        qtype: &QType,
        region: AliasRegion,
        constant: bool,
    ) -> Memory {
        let size = qtype.scalar().map_or(qtype.layout().size, |scalar| QType::Scalar(scalar).layout().size);
        let dense = self.forms[column].is_dense.then_some(size);
        let base = self.element(body, column, [Column::DATA_OFFSET, Column::STRIDE_OFFSET], dense);
        Memory { base, offset: 0, region, constant, aligned: false }
    }

    /// Where the byte of the row's presence is.
    fn presence(self, body: &mut Body<'_, '_, '_>, column: usize, region: AliasRegion, constant: bool) -> Memory {
        let fields = [Column::PRESENCE_OFFSET, Column::PRESENCE_STRIDE_OFFSET];
        let base = self.element(body, column, fields, None);
        Memory { base, offset: 0, region, constant, aligned: true }
    }

    /// The row's value of an input.
    fn load(self, body: &mut Body<'_, '_, '_>, column: usize, qtype: &QType) -> Held {
        let region = body.memories.regions[0];
        let form = self.forms[column];
        let Some(scalar) = qtype.scalar() else {
            let from = self.data(body, column, qtype, region, true);
            return memory::load(body.builder, qtype, from);
        };
        let presence = match form.presence {
            _ if !qtype.is_optional() => Presence::Present,
            PresenceForm::All => Presence::Present,
            PresenceForm::Bits => Presence::Flag(self.load_bit(body, column, Column::PRESENCE_OFFSET)),
            PresenceForm::Bytes => {
                let from = self.presence(body, column, region, true);
                let byte = from.load(body.builder, types::I8);
                Presence::Flag(body.builder.ins().icmp_imm_u(IntCC::NotEqual, byte, 0))
            }
        };
        let datum = match form.data {
            DataForm::Nothing => Datum::Nothing,
            DataForm::Bits => Datum::Flag(self.load_bit(body, column, Column::DATA_OFFSET)),
            DataForm::Values => {
                let from = self.data(body, column, qtype, region, true);
                match memory::load_datum(body.builder, scalar, from) {
                    // Where the value is missing the byte may be anything, and flags are 0 or 1.
                    Datum::Flag(flag) => Datum::Flag(body.builder.ins().band_imm_s(flag, 1)),
                    datum => datum,
                }
            }
        };
        MachineValue { presence, datum }
    }

    /// Puts an output into its column, behind those of the inputs.
    pub(super) fn store(self, body: &mut Body<'_, '_, '_>, output: usize, qtype: &QType, held: &Held) {
        let column = body.plan().inputs().len() + output;
        let region = body.memories.regions[1];
        let form = self.forms[column];
        let Some(scalar) = qtype.scalar() else {
            let to = self.data(body, column, qtype, region, false);
            return memory::store(body.builder, qtype, held, to);
        };
        match (form.data, &held.datum) {
            (DataForm::Bits, Datum::Flag(flag)) => self.store_bit(body, column, Column::DATA_OFFSET, *flag),
            (DataForm::Values, datum) => {
                let to = self.data(body, column, qtype, region, false);
                memory::store_datum(body.builder, scalar, datum, to);
            }
            // The value of what is missing is never looked at.
            (DataForm::Nothing | DataForm::Bits, _) => {}
        }
        if !qtype.is_optional() || form.presence == PresenceForm::All {
            return;
        }
        let flag = memory::presence_flag(body.builder, held.presence);
        match form.presence {
            PresenceForm::Bits => self.store_bit(body, column, Column::PRESENCE_OFFSET, flag),
            PresenceForm::Bytes | PresenceForm::All => {
                let to = self.presence(body, column, region, false);
                to.store(body.builder, flag);
            }
        }
    }
}
