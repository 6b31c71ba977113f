//! Columns in machine code: what the value of a column is at a row, and how one is put there, for each form that columns have.
//! What goes over the rows is not here.

use crate::emit::{Held, Memory, memory};
use cembra_record::{Datum, MachineValue, Presence};
use cembra_runtime::{Column, ColumnForm, DataForm, PresenceForm, QType};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self, AliasRegion, InstBuilder, MemFlagsData, types};
use cranelift_frontend::FunctionBuilder;

/// The row that is being evaluated, and the columns.
#[derive(Clone, Copy)]
pub(super) struct Row<'a> {
    pub(super) forms: &'a [ColumnForm],
    /// The address of the columns' descriptions.
    pub(super) columns: ir::Value,
    pub(super) number: ir::Value,
    /// Of the memory of inputs, and of outputs.
    pub(super) regions: [AliasRegion; 2],
}

impl Row<'_> {
    /// A field of a column's description.
    fn field(self, builder: &mut FunctionBuilder<'_>, column: usize, field: i32) -> ir::Value {
        let flags = MemFlagsData::trusted().with_readonly().with_can_move();
        builder.ins().load(types::I64, flags, self.columns, Column::SIZE * column as i32 + field)
    }

    /// The address of the row's element.
    fn element(
        self,
        builder: &mut FunctionBuilder<'_>,
        column: usize,
        [first, stride]: [i32; 2],
        dense: Option<u32>,
    ) -> ir::Value {
        let first = self.field(builder, column, first);
        let offset = match dense {
            _ if self.forms[column].is_shared => return first,
            Some(size) if size.is_power_of_two() => {
                builder.ins().ishl_imm_u(self.number, i64::from(size.trailing_zeros()))
            }
            Some(_) | None => {
                let stride = self.field(builder, column, stride);
                builder.ins().imul(self.number, stride)
            }
        };
        builder.ins().iadd(first, offset)
    }

    /// The byte with the row's bit, and which of its bits that is.
    fn bit(
        self,
        builder: &mut FunctionBuilder<'_>,
        column: usize,
        first: i32,
        region: AliasRegion,
        constant: bool,
    ) -> (Memory, ir::Value) {
        let first = self.field(builder, column, first);
        let byte = builder.ins().ushr_imm_u(self.number, 3);
        let base = builder.ins().iadd(first, byte);
        let number = builder.ins().ireduce(types::I32, self.number);
        let bit = builder.ins().band_imm_s(number, 7);
        (Memory { base, offset: 0, region, constant, aligned: true }, bit)
    }

    fn load_bit(self, builder: &mut FunctionBuilder<'_>, column: usize, first: i32) -> ir::Value {
        let region = self.regions[0];
        let (from, bit) = self.bit(builder, column, first, region, true);
        let byte = from.load(builder, types::I8);
        let wide = builder.ins().uextend(types::I32, byte);
        let shifted = builder.ins().ushr(wide, bit);
        let narrow = builder.ins().ireduce(types::I8, shifted);
        builder.ins().band_imm_s(narrow, 1)
    }

    /// Sets the row's bit to a flag: it is 0 before.
    fn store_bit(self, builder: &mut FunctionBuilder<'_>, column: usize, first: i32, flag: ir::Value) {
        let region = self.regions[1];
        let (to, bit) = self.bit(builder, column, first, region, false);
        let wide = builder.ins().uextend(types::I32, flag);
        let shifted = builder.ins().ishl(wide, bit);
        let own = builder.ins().ireduce(types::I8, shifted);
        let others = to.load(builder, types::I8);
        let all = builder.ins().bor(others, own);
        to.store(builder, all);
    }

    /// Where the row's data are.
    fn data(
        self,
        builder: &mut FunctionBuilder<'_>,
        column: usize,
        qtype: &QType,
        region: AliasRegion,
        constant: bool,
    ) -> Memory {
        let size = qtype.scalar().map_or(qtype.layout().size, |scalar| QType::Scalar(scalar).layout().size);
        let dense = self.forms[column].is_dense.then_some(size);
        let base = self.element(builder, column, [Column::DATA_OFFSET, Column::STRIDE_OFFSET], dense);
        Memory { base, offset: 0, region, constant, aligned: false }
    }

    /// Where the byte of the row's presence is.
    fn presence(self, builder: &mut FunctionBuilder<'_>, column: usize, region: AliasRegion, constant: bool) -> Memory {
        let fields = [Column::PRESENCE_OFFSET, Column::PRESENCE_STRIDE_OFFSET];
        let base = self.element(builder, column, fields, None);
        Memory { base, offset: 0, region, constant, aligned: true }
    }

    /// The row's value of an input.
    pub(super) fn load(self, builder: &mut FunctionBuilder<'_>, column: usize, qtype: &QType) -> Held {
        let region = self.regions[0];
        let form = self.forms[column];
        let Some(scalar) = qtype.scalar() else {
            let from = self.data(builder, column, qtype, region, true);
            return memory::load(builder, qtype, from);
        };
        let presence = match form.presence {
            _ if !qtype.is_optional() => Presence::Present,
            PresenceForm::All => Presence::Present,
            PresenceForm::Bits => Presence::Flag(self.load_bit(builder, column, Column::PRESENCE_OFFSET)),
            PresenceForm::Bytes => {
                let from = self.presence(builder, column, region, true);
                let byte = from.load(builder, types::I8);
                Presence::Flag(builder.ins().icmp_imm_u(IntCC::NotEqual, byte, 0))
            }
        };
        let datum = match form.data {
            DataForm::Nothing => Datum::Nothing,
            DataForm::Bits => Datum::Flag(self.load_bit(builder, column, Column::DATA_OFFSET)),
            DataForm::Values => {
                let from = self.data(builder, column, qtype, region, true);
                match memory::load_datum(builder, scalar, from) {
                    // Where the value is missing the byte may be anything, and flags are 0 or 1.
                    Datum::Flag(flag) => Datum::Flag(builder.ins().band_imm_s(flag, 1)),
                    datum => datum,
                }
            }
        };
        MachineValue { presence, datum }
    }

    /// Puts an output into its column.
    pub(super) fn store(self, builder: &mut FunctionBuilder<'_>, column: usize, qtype: &QType, held: &Held) {
        let region = self.regions[1];
        let form = self.forms[column];
        let Some(scalar) = qtype.scalar() else {
            let to = self.data(builder, column, qtype, region, false);
            return memory::store(builder, qtype, held, to);
        };
        match (form.data, &held.datum) {
            (DataForm::Bits, Datum::Flag(flag)) => self.store_bit(builder, column, Column::DATA_OFFSET, *flag),
            (DataForm::Values, datum) => {
                let to = self.data(builder, column, qtype, region, false);
                memory::store_datum(builder, scalar, datum, to);
            }
            // The value of what is missing is never looked at.
            (DataForm::Nothing | DataForm::Bits, _) => {}
        }
        if !qtype.is_optional() || form.presence == PresenceForm::All {
            return;
        }
        let flag = memory::presence_flag(builder, held.presence);
        match form.presence {
            PresenceForm::Bits => self.store_bit(builder, column, Column::PRESENCE_OFFSET, flag),
            PresenceForm::Bytes | PresenceForm::All => {
                let to = self.presence(builder, column, region, false);
                to.store(builder, flag);
            }
        }
    }
}
