//! The outputs of a strip (a block of rows). Code writes some of them to their columns in place. Other outputs are written to memory of the run, and
//! moved from there to their columns after the strip.

use crate::rows::numbering::Numbering;
use crate::rows::output::{ColumnMut, DataOut, DataTo, OutputColumn, PresenceTo, ReadField};
use crate::rows::source::read_strides;
use crate::rows::strings::{DictionaryStrings, OutputRoom, StringBuffers, StringFailure, column_bytes};
use crate::rows::{BitmapMut, Misfit};
use cembra_runtime::{
    Bytes, Column, ColumnForm, DataForm, FramePtr, LINE, PresenceForm, QType, Scalar, has_room, word_length,
};
use cembra_value::{Value, Words};
use std::ops::{DerefMut, Range};

/// The words of a new column. Several threads write to them while the column is built.
#[derive(Debug)]
struct SharedWords<L> {
    list: L,
    first: *mut u64,
}

impl<L: DerefMut<Target = [u64]>> SharedWords<L> {
    fn new(mut list: L) -> Self {
        // The memory does not move when the list is moved.
        let first = list.as_mut_ptr();
        SharedWords { list, first }
    }

    /// The address of the bits of row `start`, a multiple of 64. Threads have different words, because ranges of rows begin at such multiples.
    fn bits(&self, start: usize) -> *mut u8 {
        self.first.wrapping_add(start / 64).cast()
    }
}

/// The way in which the data of an output gets to its column: written in place, or moved after each strip (block of rows).
#[derive(Debug)]
enum Data<'a> {
    Nothing,
    /// Values are written in place: the address of the first value, and the stride in bytes.
    At(*mut u8, isize),
    /// The values are the numbers of a new column, written in place.
    Numbers(SharedWords<Words>),
    /// The values are bits of a new column, or bits that are copied to the caller's memory at the end.
    Bits(SharedWords<Words>, Option<BitmapMut<'a>>),
    /// The values are strings of a new column. Code writes views of them, and their bytes are copied after each strip
    /// (block of rows).
    Strings,
    /// The values are dictionary keys of strings in a new column. The keys are copied from an input.
    Numbered(SharedWords<Vec<u64>>, Numbering<'a>),
    /// Code writes the values to cells, in the layout of frames (the memory of an evaluation). Each cell is then
    /// converted to a `Value`.
    Values,
    Fields(*mut u8, isize, ReadField),
}

/// The way in which the presence of an output gets to its column: written in place, or moved after each strip (block of rows).
#[derive(Debug)]
enum Presence<'a> {
    All,
    Bits(SharedWords<Vec<u64>>, Option<BitmapMut<'a>>),
    BytesAt(*mut u8, isize),
    InCells,
}

/// An output of a run. Its data, and its presence (the rows that have a value), are written to the output's column in place, or moved there after
/// each strip (block of rows).
#[derive(Debug)]
pub(in crate::rows) struct Target<'a> {
    qtype: QType,
    rows: usize,
    is_new: bool,
    data: Data<'a>,
    presence: Presence<'a>,
    pub(in crate::rows) form: ColumnForm,
    cell: usize,
}

// SAFETY: COLUMNS: the memory that an output points to is borrowed, exclusively, for the run; threads write different rows of it.
unsafe impl Send for Target<'_> {}
// SAFETY: COLUMNS: the memory is borrowed in the same way; rows are shared out in whole words of bits.
unsafe impl Sync for Target<'_> {}

/// The values, for a range of rows, that code does not write to the output's column in place.
#[derive(Debug, Default)]
pub(in crate::rows) struct RangeOutputs {
    strings: StringBuffers,
    /// The reason why a string could not be stored; `None` if all were stored.
    unkept: Option<StringFailure>,
    values: Vec<Value>,
    /// The dictionary key of each of `strings`, if the output is a dictionary column. `known` records which of the
    /// function's results were taken already.
    numbers: Vec<u32>,
    known: u64,
}

impl RangeOutputs {
    /// The reason why a string of these rows could not be stored; `None` if all strings were stored.
    pub(in crate::rows) const fn unkept(&self) -> Option<StringFailure> {
        self.unkept
    }
}

impl<'a> Target<'a> {
    /// Makes the target for a new column of type `qtype` with `rows` rows.
    ///
    /// # Errors
    /// If there is not enough memory for `rows` rows.
    pub(in crate::rows) fn new(qtype: &QType, rows: usize) -> Result<Target<'a>, Misfit> {
        let zeros = |words: Option<usize>| words.and_then(Words::try_zeros).ok_or(Misfit::Room { rows });
        let words = rows.div_ceil(64);
        let data = match qtype.scalar() {
            None => Data::Values,
            Some(Scalar::Unit) => Data::Nothing,
            Some(Scalar::Boolean) => Data::Bits(SharedWords::new(zeros(Some(words))?), None),
            Some(scalar) if scalar.is_string() => Data::Strings,
            Some(scalar) => {
                let words = word_length(rows, QType::Scalar(scalar).layout().size as usize);
                Data::Numbers(SharedWords::new(zeros(words)?))
            }
        };
        let presence = if qtype.is_optional() {
            if !has_room(words.saturating_mul(8)) {
                return Err(Misfit::Room { rows });
            }
            Presence::Bits(SharedWords::new(vec![0; words]), None)
        } else {
            Presence::All
        };
        Ok(Target::with(qtype, rows, true, data, presence))
    }

    /// Makes the target for the caller's memory, which was checked to fit the type `qtype`.
    pub(in crate::rows) fn into(column: ColumnMut<'a>, qtype: &QType, rows: usize) -> Target<'a> {
        let words = rows.div_ceil(64);
        let mut in_cells = false;
        let data = match column.data {
            DataTo::Nothing => Data::Nothing,
            DataTo::Values(_, first, stride) => Data::At(first, stride),
            DataTo::Bits(bits) => Data::Bits(SharedWords::new(Words::zeros(words)), Some(bits)),
            DataTo::Fields(_, first, stride, read) => {
                in_cells = qtype.is_optional();
                Data::Fields(first, stride, read)
            }
        };
        let presence = match column.presence {
            _ if in_cells => Presence::InCells,
            _ if !qtype.is_optional() => Presence::All,
            PresenceTo::Bits(bits) => Presence::Bits(SharedWords::new(vec![0; words]), Some(bits)),
            PresenceTo::Bytes(first, stride) => Presence::BytesAt(first, stride),
            PresenceTo::Nowhere => Presence::All,
        };
        Target::with(qtype, rows, false, data, presence)
    }

    fn with(qtype: &QType, rows: usize, is_new: bool, data: Data<'a>, presence: Presence<'a>) -> Target<'a> {
        let cell = (qtype.layout().size as usize).max(1);
        let size = qtype.scalar().map_or(cell, |scalar| QType::Scalar(scalar).layout().size as usize);
        let form = ColumnForm {
            data: match (&data, qtype.scalar()) {
                (_, Some(Scalar::Unit)) | (Data::Nothing, _) => DataForm::Nothing,
                (Data::Bits(..), _) => DataForm::Bits,
                _ => DataForm::Values,
            },
            presence: match presence {
                Presence::All => PresenceForm::All,
                Presence::Bits(..) => PresenceForm::Bits,
                Presence::BytesAt(..) | Presence::InCells => PresenceForm::Bytes,
            },
            is_dense: match &data {
                Data::At(_, stride) => *stride == size.cast_signed(),
                Data::Fields(..) => cell == size,
                _ => true,
            },
            ..ColumnForm::DENSE
        };
        let cell = if matches!(data, Data::Fields(..)) { cell } else { size };
        Target { qtype: qtype.clone(), rows, is_new, data, presence, form, cell }
    }

    /// The strides of the data and of the presence; not used for bits.
    fn strides(&self) -> [isize; 2] {
        let data = match self.data {
            Data::At(_, stride) => stride,
            _ => self.cell.cast_signed(),
        };
        let presence = match self.presence {
            Presence::BytesAt(_, stride) => stride,
            Presence::InCells => data,
            Presence::All | Presence::Bits(..) => 0,
        };
        [data, presence]
    }

    /// The strides of the data and of the presence, for code that looks them up; `None` where the layout determines the stride, or where nothing is
    /// written.
    pub(in crate::rows) fn read_strides(&self) -> [Option<isize>; 2] {
        read_strides(self.form, self.strides())
    }

    /// Makes the output a dictionary column with the keys of an input, if the output is a column of strings and the input's dictionary has no more
    /// values than the run has rows.
    pub(in crate::rows) fn number(&mut self, numbering: Numbering<'a>) {
        if matches!(self.data, Data::Strings) && self.rows >= numbering.values {
            let words = (self.rows * numbering.keys.key_type().size()).div_ceil(8);
            self.data = Data::Numbered(SharedWords::new(vec![0; words]), numbering);
        }
    }

    /// Returns true if the output is a dictionary column with the keys of an input, so that code need not write a string for each row.
    pub(in crate::rows) fn is_numbered(&self) -> bool {
        matches!(self.data, Data::Numbered(..))
    }

    /// Returns true if the values are moved to their column after each strip (block of rows).
    pub(in crate::rows) fn is_staged(&self) -> bool {
        matches!(self.data, Data::Strings | Data::Numbered(..) | Data::Values | Data::Fields(..))
    }

    /// The bytes of the column if code writes its numbers in place and contiguously; else 0.
    pub(in crate::rows) fn bytes_in_place(&self) -> usize {
        match self.data {
            Data::At(..) | Data::Numbers(_) if self.form.is_dense => self.rows * self.cell,
            _ => 0,
        }
    }

    /// Returns true if the value of row `row` begins a cache line, or if no numbers are written in place.
    pub(in crate::rows) fn begins_line(&self, row: usize) -> bool {
        let first: *const u8 = match &self.data {
            Data::At(first, _) if self.form.is_dense => first.cast_const(),
            Data::Numbers(numbers) => numbers.first.cast_const().cast(),
            _ => return true,
        };
        (first.addr() + row * self.cell).is_multiple_of(LINE)
    }

    /// The number of 64-bit words to which code writes the values of `rows` rows before they are moved to their column; 0 if code writes them in
    /// place.
    pub(in crate::rows) fn staged_words(&self, rows: usize) -> usize {
        if self.is_staged() { (rows * self.cell).div_ceil(8) } else { 0 }
    }

    /// Returns the column to which code writes the rows from row `start` on: the output's own column, or the memory at
    /// `words`. `start` must be a multiple of 64.
    ///
    /// # Safety
    /// COLUMNS (`docs/safety.md`): the output must have these rows. `words` must point to as many words as
    /// `staged_words` returns, which nothing else uses.
    pub(in crate::rows) unsafe fn column(&self, start: usize, words: *mut u64) -> Column {
        let at = |first: *mut u8, stride: isize| first.wrapping_offset(stride * start.cast_signed());
        let [stride, presence_stride] = self.strides();
        let data: *mut u8 = match &self.data {
            Data::Nothing => std::ptr::null_mut(),
            Data::At(first, _) => at(*first, stride),
            Data::Numbers(numbers) => at(numbers.first.cast(), stride),
            Data::Bits(words, _) => words.bits(start),
            Data::Strings | Data::Numbered(..) | Data::Values | Data::Fields(..) => words.cast(),
        };
        let presence = match &self.presence {
            Presence::All => std::ptr::null_mut(),
            Presence::Bits(words, _) => words.bits(start),
            Presence::BytesAt(first, _) => at(*first, presence_stride),
            Presence::InCells => data,
        };
        let inside = if matches!(self.presence, Presence::InCells) { self.qtype.optional_value_offset() } else { None };
        let data = data.wrapping_add(inside.unwrap_or(0) as usize);
        Column { data, stride, presence, presence_stride }
    }

    /// Moves the values of the rows `rows` of a strip (block of rows), which code has written to `column`, to the output's own column. The strip
    /// begins with row `start` of the run.
    ///
    /// # Safety
    /// COLUMNS and STRING-VIEW (`docs/safety.md`): the method `column` must have returned `column`, code must have written the rows, and the strings
    /// that the values view must be alive.
    pub(in crate::rows) unsafe fn finish_strip(
        &self,
        column: &Column,
        start: usize,
        rows: Range<usize>,
        made: &mut RangeOutputs,
        room: &OutputRoom,
        results: impl FnOnce(&mut u64, &mut dyn FnMut(u32, Option<&[u8]>)),
    ) {
        let cells = FramePtr::from_raw(match self.presence {
            Presence::InCells => column.presence,
            _ => column.data,
        });
        match &self.data {
            Data::Strings => {
                let strings = rows.map(|row| {
                    // SAFETY: COLUMNS and STRING-VIEW, promised by the caller; the view of a missing row is not read.
                    unsafe {
                        let is_present = self.is_present(column, row);
                        let view = column.data.cast::<[u64; 2]>().add(row);
                        if is_present { view.cast::<Bytes<'_>>().read_unaligned().as_slice() } else { &[] }
                    }
                });
                made.unkept = made.strings.extend(strings, room).err();
            }
            Data::Values => {
                for row in rows {
                    // SAFETY: COLUMNS and STRING-VIEW, promised by the caller.
                    let value = unsafe { Value::read_from(&self.qtype, cells, (row * self.cell) as u32) };
                    if !room.take(column_bytes(&value)) {
                        made.unkept = Some(StringFailure::NoRoom);
                        return;
                    }
                    made.values.push(value);
                }
            }
            Data::Fields(first, stride, read) => {
                for row in rows {
                    let field = first.wrapping_offset(stride * (start + row).cast_signed());
                    // SAFETY: FIELD-TABLE: there is a field for each row; COLUMNS, promised by the caller, for the cell.
                    unsafe { read(field, cells, (row * self.cell) as u32) };
                }
            }
            Data::Numbered(words, Numbering { keys, .. }) => {
                let size = keys.key_type().size();
                let first = start + rows.start;
                let from = keys.address().wrapping_add(first * size);
                // SAFETY: COLUMNS, promised by the caller: there is a key for each row, and room for it.
                unsafe { words.first.cast::<u8>().add(first * size).copy_from_nonoverlapping(from, rows.len() * size) };
                let RangeOutputs { strings, unkept, numbers, known, .. } = made;
                results(known, &mut |number, string| {
                    if let Some(string) = string
                        && unkept.is_none()
                    {
                        numbers.push(number);
                        *unkept = strings.extend(std::iter::once(string), room).err();
                    }
                });
            }
            Data::Nothing | Data::At(..) | Data::Numbers(_) | Data::Bits(..) => {}
        }
    }

    /// Returns true if row `row` of a strip (a block of rows) is present in `column`.
    ///
    /// # Safety
    /// COLUMNS: the row was written.
    unsafe fn is_present(&self, column: &Column, row: usize) -> bool {
        // SAFETY: COLUMNS, promised by the caller.
        unsafe {
            match self.presence {
                Presence::All => true,
                Presence::Bits(..) => *column.presence.add(row / 8) >> (row % 8) & 1 != 0,
                Presence::BytesAt(..) | Presence::InCells => {
                    *column.presence.offset(column.presence_stride * row.cast_signed()) != 0
                }
            }
        }
    }

    /// Builds the output column after all rows were written: joins the outputs of the ranges of rows in their order,
    /// and copies bits to the caller's memory. Returns the column if it is a new one. Failed rows are missing in it,
    /// whatever the output's type.
    pub(in crate::rows) fn finish(
        self,
        made: impl Iterator<Item = RangeOutputs>,
        failed: &[usize],
    ) -> Option<OutputColumn> {
        let mut all = RangeOutputs::default();
        let mut numbered = match &self.data {
            Data::Numbered(_, Numbering { keys, values, .. }) => Some(DictionaryStrings::of(keys.key_type(), *values)),
            _ => None,
        };
        for (at, made) in made.enumerate() {
            if let Some(numbered) = &mut numbered {
                numbered.add(&made.numbers, made.strings);
                continue;
            }
            if at == 0 {
                all = made;
            } else {
                all.strings.append(made.strings);
                all.values.extend(made.values);
            }
        }
        let data = match self.data {
            Data::Numbers(words) => DataOut::Numbers(words.list),
            Data::Bits(words, None) => DataOut::Bits(words.list),
            Data::Bits(words, Some(mut to)) => {
                to.set(&words.list);
                DataOut::Nothing
            }
            Data::Strings => DataOut::Strings(all.strings),
            Data::Numbered(words, numbering) => match (numbered, numbering.rows) {
                (Some(strings), rows) => {
                    let strings = DictionaryStrings { keys: words.list, ..strings };
                    match rows {
                        // A row without a key has no key to express its string.
                        Some(numbered) if strings.has_none() => {
                            DataOut::Strings(strings.spread_by(self.rows, &numbered))
                        }
                        _ => DataOut::Numbered(strings),
                    }
                }
                (None, _) => DataOut::Nothing,
            },
            Data::Values => DataOut::Any(all.values),
            Data::Nothing | Data::At(..) | Data::Fields(..) => DataOut::Nothing,
        };
        let (mut qtype, mut lost) = (self.qtype, None);
        if !failed.is_empty() && !qtype.is_optional() && qtype.scalar().is_some() {
            let mut present = vec![u64::MAX; self.rows.div_ceil(64)];
            if let (Some(last), left @ 1..) = (present.last_mut(), self.rows % 64) {
                *last = (1 << left) - 1;
            }
            failed.iter().for_each(|row| present[row / 64] &= !(1 << (row % 64)));
            (qtype, lost) = (qtype.to_optional(), Some(present));
        }
        let presence = match self.presence {
            Presence::Bits(words, None) => Some(words.list),
            Presence::Bits(words, Some(mut to)) => {
                to.set(&words.list);
                None
            }
            _ => lost,
        };
        self.is_new.then_some(OutputColumn { qtype, rows: self.rows, data, presence })
    }
}
