//! Columns in machine code: loading a row's value from a column and storing one to it, for each memory layout of columns. The loop over rows is in
//! `rows.rs`.

use crate::emit::{EmittedValue, Memory, memory};
use cembra_record::{Datum, MachineValue, Presence};
use cembra_runtime::{Column, ColumnForm, DataForm, PresenceForm, QType};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self, AliasRegion, InstBuilder, MemFlagsData, types};
use cranelift_frontend::FunctionBuilder;

/// The most byte offsets that the loop over rows updates from row to row, each shared by all columns with the same stride. More offsets would not
/// stay in registers.
pub(super) const SHARED_STRIDES: usize = 3;

/// The offset in bytes from the first row to the current one, for all columns with the same stride.
#[derive(Clone, Copy)]
pub(super) struct RowOffset {
    pub(super) pace: u8,
    pub(super) bytes: ir::Value,
}

/// The position of the current row's bit in an array of bits.
#[derive(Clone, Copy)]
struct Bit {
    /// The index of the byte that contains the bit.
    byte: ir::Value,
    /// The index of the bit in that byte, 0 for the lowest.
    number: ir::Value,
}

/// The current row of the loop, and the columns that it accesses.
#[derive(Clone, Copy)]
pub(super) struct Row<'a> {
    pub(super) forms: &'a [ColumnForm],
    /// The address of the array that describes the columns.
    pub(super) columns: ir::Value,
    pub(super) number: ir::Value,
    pub(super) distances: [Option<RowOffset>; SHARED_STRIDES],
    /// The alias regions (classes of memory accesses) of input columns, and of output columns.
    pub(super) regions: [AliasRegion; 2],
    /// The position of the row's bit in inputs that are bits, computed at the first load of a bit; `None` before. The
    /// next field is the index of the row's 64-bit word in outputs that are bits, computed at the first store of a bit.
    input_bit: Option<Bit>,
    output_word: Option<ir::Value>,
}

/// The stride of a column (the distance between its rows), as a field of the column's description.
#[derive(Clone, Copy)]
pub(super) struct Stride {
    column: usize,
    field: i32,
    pub(super) pace: u8,
}

/// Returns the strides that several columns share. The loop updates the byte offset for such a stride from row to row. For any other stride, the row
/// index is multiplied by the stride.
pub(super) fn kept_strides(forms: &[ColumnForm]) -> impl Iterator<Item = Stride> {
    let fields = [Column::STRIDE_OFFSET, Column::PRESENCE_STRIDE_OFFSET];
    let all = move || {
        let of_form = move |(column, form): (usize, &ColumnForm)| {
            [0, 1].map(|at| Stride { column, field: fields[at], pace: form.stride_classes[at] })
        };
        forms.iter().enumerate().flat_map(of_form).filter(|stride| stride.pace > 0).enumerate()
    };
    let is_first = move |at: usize, pace: u8| !all().take(at).any(|(_, before)| before.pace == pace);
    let is_shared = move |at: usize, pace: u8| all().skip(at + 1).any(|(_, after)| after.pace == pace);
    let kept = all().filter(move |(at, stride)| is_first(*at, stride.pace) && is_shared(*at, stride.pace));
    kept.map(|(_, stride)| stride).take(SHARED_STRIDES)
}

impl<'a> Row<'a> {
    /// Makes the description of the row with the index `number`.
    pub(super) fn new(
        forms: &'a [ColumnForm],
        columns: ir::Value,
        number: ir::Value,
        distances: [Option<RowOffset>; SHARED_STRIDES],
        regions: [AliasRegion; 2],
    ) -> Self {
        Row { forms, columns, number, distances, regions, input_bit: None, output_word: None }
    }

    /// Loads a field of a column's description.
    fn field(&self, builder: &mut FunctionBuilder<'_>, column: usize, field: i32) -> ir::Value {
        let flags = MemFlagsData::trusted().with_readonly().with_can_move();
        builder.ins().load(types::I64, flags, self.columns, Column::SIZE * column as i32 + field)
    }

    /// Emits the load of a stride from its column's description.
    pub(super) fn stride(&self, builder: &mut FunctionBuilder<'_>, stride: Stride) -> ir::Value {
        self.field(builder, stride.column, stride.field)
    }

    /// Returns the address of the current row's element in a column. `first` and `stride` are the offsets of two fields
    /// of the column's description: the first element's address, and the stride. `dense` is the size of an element in
    /// bytes if the elements are contiguous, else `None`.
    fn element(
        &self,
        builder: &mut FunctionBuilder<'_>,
        column: usize,
        [first, stride]: [i32; 2],
        dense: Option<u32>,
        pace: u8,
    ) -> ir::Value {
        let first = self.field(builder, column, first);
        let kept = self.distances.iter().flatten().find(|distance| distance.pace == pace);
        let offset = match (dense, kept) {
            _ if self.forms[column].is_shared => return first,
            (Some(size), _) if size.is_power_of_two() => {
                builder.ins().ishl_imm_u(self.number, i64::from(size.trailing_zeros()))
            }
            (_, Some(distance)) => distance.bytes,
            _ => {
                let stride = self.field(builder, column, stride);
                builder.ins().imul(self.number, stride)
            }
        };
        builder.ins().iadd(first, offset)
    }

    fn load_bit(&mut self, builder: &mut FunctionBuilder<'_>, column: usize, first: i32) -> ir::Value {
        let row = self.number;
        let bit = *self.input_bit.get_or_insert_with(|| {
            let byte = builder.ins().ushr_imm_u(row, 3);
            let number = builder.ins().ireduce(types::I32, row);
            Bit { byte, number: builder.ins().band_imm_s(number, 7) }
        });
        let first = self.field(builder, column, first);
        let base = builder.ins().iadd(first, bit.byte);
        let from = Memory { base, offset: 0, region: self.regions[0], constant: true, aligned: true };
        let byte = from.load_byte(builder);
        let shifted = builder.ins().ushr(byte, bit.number);
        let narrow = builder.ins().ireduce(types::I8, shifted);
        builder.ins().band_imm_s(narrow, 1)
    }

    /// Stores `flag` as the current row's bit of an output, which must be 0 before. The code accesses the whole 64-bit
    /// word, because outputs have whole words.
    fn store_bit(&mut self, builder: &mut FunctionBuilder<'_>, column: usize, first: i32, flag: ir::Value) {
        let row = self.number;
        let word = *self.output_word.get_or_insert_with(|| builder.ins().ushr_imm_u(row, 6));
        let first = self.field(builder, column, first);
        let offset = builder.ins().ishl_imm_u(word, 3);
        let base = builder.ins().iadd(first, offset);
        let to = Memory { base, offset: 0, region: self.regions[1], constant: false, aligned: false };
        let wide = builder.ins().uextend(types::I64, flag);
        // The processor takes the shift modulo 64, so the row number is the index in the word.
        let own = builder.ins().ishl(wide, row);
        let others = to.load(builder, types::I64);
        let all = builder.ins().bor(others, own);
        to.store(builder, all);
    }

    /// Returns the memory location of the current row's data in a column.
    fn data(
        &self,
        builder: &mut FunctionBuilder<'_>,
        column: usize,
        qtype: &QType,
        region: AliasRegion,
        constant: bool,
    ) -> Memory {
        let size = qtype.scalar().map_or(qtype.layout().size, |scalar| QType::Scalar(scalar).layout().size);
        let dense = self.forms[column].is_dense.then_some(size);
        let fields = [Column::DATA_OFFSET, Column::STRIDE_OFFSET];
        let base = self.element(builder, column, fields, dense, self.forms[column].stride_classes[0]);
        Memory { base, offset: 0, region, constant, aligned: false }
    }

    /// Returns the memory location of the current row's presence byte in a column.
    fn presence(
        &self,
        builder: &mut FunctionBuilder<'_>,
        column: usize,
        region: AliasRegion,
        constant: bool,
    ) -> Memory {
        let fields = [Column::PRESENCE_OFFSET, Column::PRESENCE_STRIDE_OFFSET];
        let base = self.element(builder, column, fields, None, self.forms[column].stride_classes[1]);
        Memory { base, offset: 0, region, constant, aligned: true }
    }

    /// Emits the load of the current row's value from an input column.
    pub(super) fn load(&mut self, builder: &mut FunctionBuilder<'_>, column: usize, qtype: &QType) -> EmittedValue {
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
            DataForm::Nothing | DataForm::Chains => Datum::Nothing,
            DataForm::Bits => Datum::Flag(self.load_bit(builder, column, Column::DATA_OFFSET)),
            DataForm::Values => {
                let from = self.data(builder, column, qtype, region, true);
                match memory::load_datum(builder, scalar, from) {
                    // The byte of a missing value is arbitrary, but flags must be 0 or 1.
                    Datum::Flag(flag) => Datum::Flag(builder.ins().band_imm_s(flag, 1)),
                    datum => datum,
                }
            }
        };
        MachineValue { presence, datum }
    }

    /// Emits the store of the current row's value to an output column.
    pub(super) fn store(
        &mut self,
        builder: &mut FunctionBuilder<'_>,
        column: usize,
        qtype: &QType,
        held: &EmittedValue,
    ) {
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
            // The data of a missing value are not read.
            (DataForm::Nothing | DataForm::Bits | DataForm::Chains, _) => {}
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
