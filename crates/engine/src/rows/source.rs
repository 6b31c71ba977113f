//! The inputs of a strip, which is a block of rows: columns that code reads in place, and staged columns, which are copied strip by strip into memory
//! of the run.

use crate::rows::Bitmap;
use crate::rows::input::{DataIn, InputColumn, PresenceIn};
use crate::rows::keys::{Keys, with_keys};
use crate::rows::numbering::Numbering;
use cembra_runtime::{
    Column, ColumnForm, DataForm, Dictionary, DictionaryIndices, Frame, FramePtr, PresenceForm, QType,
};
use std::mem::MaybeUninit;

/// The way in which code gets the data of an input column: in place, or from copies.
#[derive(Debug)]
enum Data {
    /// The values are read in place: the address of the first value, and the stride in bytes.
    At(*const u8, isize),
    /// The values are bits that are read in place, from the start of a byte on.
    BitsAt(*const u8),
    /// The values are staged: copied into memory of the run, one strip (block of rows) at a time.
    Staged,
}

/// The way in which code gets the presence of an input column: in place, or from copies.
#[derive(Debug)]
enum Presence {
    All,
    BitsAt(*const u8),
    BytesAt(*const u8, isize),
    /// The presence bits are staged: shifted to the start of a byte, or computed row by row.
    Staged,
    /// The presence is stored with the values, in cells of the optional type.
    InCells,
}

/// An input column of a run, and the way in which compiled code reads its data and its presence: in place, or from copies.
#[derive(Debug)]
pub(in crate::rows) struct Source<'a> {
    column: InputColumn<'a>,
    data: Data,
    presence: Presence,
    qtype: QType,
    pub(in crate::rows) form: ColumnForm,
    /// The size in bytes of a value that is copied, one strip (block of rows) at a time.
    cell: usize,
    /// The memory of the value that all rows share; `None` for other columns.
    #[expect(dead_code, reason = "the column points to the value in this memory")]
    shared: Option<Frame>,
    /// Memory for bits that are copied because an output overwrites them.
    #[expect(dead_code, reason = "the column points to the bits in this memory")]
    copied: [Vec<u64>; 2],
}

// SAFETY: COLUMNS: the memory that an input points to is borrowed, shared, for the run.
unsafe impl Send for Source<'_> {}
// SAFETY: COLUMNS: the memory is borrowed in the same way, and nothing is written through it.
unsafe impl Sync for Source<'_> {}

/// Returns true if results can be computed once per value of the dictionary `values`: its values, and one more for
/// missing rows, must fit keys of 32 bits. If its values are bits, or take no memory, there may be at most 2^20,
/// because tables of results have an entry for each value.
fn is_numbered(values: &InputColumn<'_>) -> bool {
    const FEW: usize = 1 << 20;
    let takes_bytes = matches!(values.data, DataIn::Values(..) | DataIn::Strings(..)) && values.is_backed();
    values.rows.is_some_and(|rows| rows < if takes_bytes { u32::MAX as usize } else { FEW })
}

impl Dictionary for Source<'_> {
    fn values(&self) -> u32 {
        match self.column.data {
            DataIn::Dictionary(_, values) => values.rows.unwrap_or(0) as u32,
            _ => 0,
        }
    }

    // SAFETY: COLUMNS, as the trait says.
    unsafe fn write(&self, number: u32, to: *mut u8) -> bool {
        let DataIn::Dictionary(_, values) = self.column.data else { return false };
        let number = Some(number as usize).filter(|number| values.is_there(*number));
        // SAFETY: COLUMNS, promised by the caller: room for a value.
        unsafe { self.write_one(values, number, to) };
        number.is_some()
    }
}

/// Returns the bytes that the staged bits of `rows` rows take.
fn bit_bytes(rows: usize) -> usize {
    rows.div_ceil(64) * 8
}

/// Returns the strides of the data and of the presence that code needs to read a column with the layout `form`. A stride is `None` if the layout
/// determines it, or if no stride is used.
pub(in crate::rows) fn read_strides(form: ColumnForm, [data, presence]: [isize; 2]) -> [Option<isize>; 2] {
    let reads_data = form.data == DataForm::Values && !form.is_dense && !form.is_shared;
    let reads_presence = form.presence == PresenceForm::Bytes && !form.is_shared;
    [Some(data).filter(|_| reads_data), Some(presence).filter(|_| reads_presence)]
}

impl<'a> Source<'a> {
    /// Makes the source for `column`, which was checked to have the type `qtype`.
    pub(in crate::rows) fn of(column: InputColumn<'a>, qtype: &QType) -> Source<'a> {
        let layout = qtype.layout();
        let cell = (layout.size as usize).max(1);
        let optional = qtype.is_optional();
        let mut shared = None;
        let (data, form) = match column.data {
            // `read_first` makes sources for the memory of outputs.
            // Inputs of plans are not lists.
            DataIn::Nothing | DataIn::Output(_) | DataIn::Lists(..) | DataIn::Structs(_) => {
                (Data::At(std::ptr::null(), 0), DataForm::Nothing)
            }
            DataIn::Values(_, first, stride) => (Data::At(first, stride), DataForm::Values),
            DataIn::Bits(bits) => match bits.address() {
                Some(first) => (Data::BitsAt(first), DataForm::Bits),
                None => (Data::Staged, DataForm::Bits),
            },
            DataIn::Shared(value) => {
                let mut frame = Frame::zeroed(cell);
                // SAFETY: FRAME-SLOT: a frame of one value of the type, which was compared; its texts are borrowed for the run.
                unsafe { value.write_to(frame.ptr(), 0) };
                let first = frame.ptr().as_ptr();
                shared = Some(frame);
                (Data::At(first.wrapping_add(qtype.optional_value_offset().unwrap_or(0) as usize), 0), DataForm::Values)
            }
            DataIn::Strings(..) | DataIn::Dictionary(..) | DataIn::Any(_) | DataIn::Fields(..) => {
                (Data::Staged, DataForm::Values)
            }
        };
        let is_unit = qtype.scalar() == Some(cembra_runtime::Scalar::Unit);
        let form = if is_unit { DataForm::Nothing } else { form };
        let in_cells = matches!(column.data, DataIn::Any(_) | DataIn::Fields(..));
        let presence = match (optional, column.data, column.presence) {
            (false, ..) => Presence::All,
            _ if in_cells => Presence::InCells,
            (_, DataIn::Shared(_), _) => {
                let first = shared.as_mut().map_or(std::ptr::null(), |frame| frame.ptr().as_ptr().cast_const());
                Presence::BytesAt(first, 0)
            }
            _ if column.is_all_present() => Presence::All,
            (_, DataIn::Dictionary(..), _) => Presence::Staged,
            (.., PresenceIn::Bits(bits)) => bits.address().map_or(Presence::Staged, Presence::BitsAt),
            (.., PresenceIn::Bytes(first, stride)) => Presence::BytesAt(first, stride),
            (.., PresenceIn::All) => Presence::All,
        };
        let size = qtype.scalar().map_or(cell, |scalar| QType::Scalar(scalar).layout().size as usize);
        let is_dense = match (&data, in_cells) {
            (Data::At(_, stride), _) => *stride == size.cast_signed(),
            (Data::BitsAt(_), _) => true,
            (Data::Staged, in_cells) => !in_cells || cell == size,
        };
        let form = ColumnForm {
            data: form,
            presence: match presence {
                Presence::All => PresenceForm::All,
                Presence::BitsAt(_) | Presence::Staged => PresenceForm::Bits,
                Presence::BytesAt(..) | Presence::InCells => PresenceForm::Bytes,
            },
            is_dictionary: matches!(column.data, DataIn::Dictionary(_, values) if is_numbered(values)),
            is_shared: matches!(column.data, DataIn::Shared(_)),
            is_dense,
            stride_classes: [0; 2],
        };
        // Cells hold a value with its presence only where both are staged together.
        let cell = if in_cells { cell } else { size };
        Source { column, data, presence, qtype: qtype.clone(), form, cell, shared, copied: Default::default() }
    }

    /// Makes a source that reads the old contents of an output's memory, which have the type `qtype`. The old values of a strip (block of rows) are
    /// copied before the output overwrites the strip, so that code sees no overlapping columns and rows can be run again. Bitmaps are copied
    /// completely by this function, because their memory must not be read while the output is being written.
    pub(in crate::rows) fn read_first(column: InputColumn<'_>, qtype: &QType) -> Source<'a> {
        let optional = qtype.is_optional();
        let rows = column.rows.unwrap_or(0);
        let copy = |bits: Bitmap<'_>| (0..rows).step_by(64).map(|row| bits.word(row)).collect::<Vec<u64>>();
        let mut copied = [Vec::new(), Vec::new()];
        let (data, data_form, values) = match column.data {
            DataIn::Bits(bits) => {
                copied[0] = copy(bits);
                (Data::BitsAt(copied[0].as_ptr().cast()), DataForm::Bits, DataIn::Nothing)
            }
            DataIn::Values(scalar, first, stride) => {
                (Data::Staged, DataForm::Values, DataIn::Values(scalar, first, stride))
            }
            _ => (Data::At(std::ptr::null(), 0), DataForm::Nothing, DataIn::Nothing),
        };
        let (presence, presence_form, bytes) = match column.presence {
            PresenceIn::Bits(bits) if optional => {
                copied[1] = copy(bits);
                (Presence::BitsAt(copied[1].as_ptr().cast()), PresenceForm::Bits, PresenceIn::All)
            }
            PresenceIn::Bytes(first, stride) if optional => {
                (Presence::Staged, PresenceForm::Bits, PresenceIn::Bytes(first, stride))
            }
            _ => (Presence::All, PresenceForm::All, PresenceIn::All),
        };
        let form = ColumnForm { data: data_form, presence: presence_form, ..ColumnForm::DENSE };
        let cell = qtype.scalar().map_or(0, |scalar| QType::Scalar(scalar).layout().size as usize);
        let column = InputColumn::of_memory(rows, values, bytes);
        Source { column, data, presence, qtype: qtype.clone(), form, cell, shared: None, copied }
    }

    /// The strides of the data and of the presence; not used for bits.
    fn strides(&self) -> [isize; 2] {
        let data = match self.data {
            Data::At(_, stride) => stride,
            Data::BitsAt(_) | Data::Staged => self.cell.cast_signed(),
        };
        let presence = match self.presence {
            Presence::BytesAt(_, stride) => stride,
            Presence::InCells => data,
            Presence::All | Presence::BitsAt(_) | Presence::Staged => 0,
        };
        [data, presence]
    }

    /// The strides of the data and of the presence that code needs to read the column. A stride is `None` if the layout determines it, or if no
    /// stride is used.
    pub(in crate::rows) fn read_strides(&self) -> [Option<isize>; 2] {
        read_strides(self.form, self.strides())
    }

    /// Returns true if the values or the presence of the column are copied, one strip (block of rows) at a time, before
    /// code reads them.
    pub(in crate::rows) fn is_staged(&self) -> bool {
        matches!(self.data, Data::Staged) || matches!(self.presence, Presence::Staged)
    }

    /// The number of 64-bit words that the copies for `rows` rows take.
    pub(in crate::rows) fn staged_words(&self, rows: usize) -> usize {
        let data = match (&self.data, self.form.data) {
            (Data::Staged, DataForm::Bits) => bit_bytes(rows),
            (Data::Staged, _) => rows * self.cell,
            _ => 0,
        };
        let presence = if matches!(self.presence, Presence::Staged) { bit_bytes(rows) } else { 0 };
        let numbers = if self.form.is_dictionary { rows * size_of::<u32>() } else { 0 };
        data.div_ceil(8) + presence.div_ceil(8) + numbers.div_ceil(8)
    }

    /// The keys of a dictionary column, with the bitmap of the rows that have a key; `None` for other columns.
    pub(in crate::rows) fn numbering(&self) -> Option<Numbering<'a>> {
        let rows = if let PresenceIn::Bits(bits) = self.column.presence { Some(bits) } else { None };
        match self.column.data {
            DataIn::Dictionary(keys, values) if self.form.is_dictionary => {
                Some(Numbering { keys, values: values.rows.unwrap_or(0), rows })
            }
            _ => None,
        }
    }

    /// Returns the keys of a dictionary column for `rows` rows from row `start` on; `start` must be a multiple of 64. The keys are read in place, or
    /// are copied to the end of `words`, the memory for copies. `None` for other columns.
    ///
    /// # Safety
    /// COLUMNS: the requirements of the method `column` must hold.
    pub(in crate::rows) unsafe fn numbers(
        &self,
        start: usize,
        rows: usize,
        words: *mut u64,
    ) -> Option<DictionaryIndices<'_>> {
        let DataIn::Dictionary(keys, values) = self.column.data else { return None };
        let in_place = match (keys, self.column.presence) {
            (Keys::I32(keys), PresenceIn::All) => Some(keys[start..].as_ptr().cast()),
            (Keys::U32(keys), PresenceIn::All) => Some(keys[start..].as_ptr()),
            _ => None,
        };
        let of_rows = in_place.unwrap_or_else(|| {
            let to: *mut u32 =
                words.wrapping_add(self.staged_words(rows) - (rows * size_of::<u32>()).div_ceil(8)).cast();
            with_keys!(keys, keys => {
                // SAFETY: COLUMNS, promised by the caller: room for a number a row, and a key for each.
                let to = unsafe { std::slice::from_raw_parts_mut(to.cast::<MaybeUninit<u32>>(), rows) };
                to.iter_mut().zip(&keys[start..]).for_each(|(to, key)| _ = to.write(i128::from(*key) as u32));
            });
            let none = values.rows.unwrap_or(0) as u32;
            if let PresenceIn::Bits(bits) = self.column.presence {
                for first in (0..rows).step_by(64) {
                    let mut missing = !bits.word(start + first);
                    if let left @ 1..64 = rows - first {
                        missing &= (1 << left) - 1;
                    }
                    while missing != 0 {
                        // SAFETY: COLUMNS, promised by the caller: room for a number a row.
                        unsafe { to.add(first + missing.trailing_zeros() as usize).write(none) };
                        missing &= missing - 1;
                    }
                }
            }
            to.cast_const()
        });
        let all_present = matches!(self.column.presence, PresenceIn::All);
        Some(DictionaryIndices { of_rows, all_present, dictionary: self })
    }

    /// Returns the column of `rows` rows from row `start` on, in the layout that code takes; `start` must be a multiple of 64. Data that is not read
    /// in place is first copied to `words`.
    ///
    /// # Safety
    /// COLUMNS: the column must have been compared with the type, and must have these rows. `words` must point to as
    /// many words as `staged_words` returns, which nothing else uses.
    pub(in crate::rows) unsafe fn column(&self, start: usize, rows: usize, words: *mut u64) -> Column {
        let at = |first: *const u8, stride: isize| first.wrapping_offset(stride * start.cast_signed()).cast_mut();
        let [stride, presence_stride] = self.strides();
        let mut used = 0;
        let mut data: *mut u8 = match &self.data {
            Data::At(first, _) => at(*first, stride),
            Data::BitsAt(first) => first.wrapping_add(start / 8).cast_mut(),
            Data::Staged => {
                let bytes = if self.form.data == DataForm::Bits { bit_bytes(rows) } else { rows * self.cell };
                used = bytes.div_ceil(8);
                // SAFETY: COLUMNS, promised by the caller.
                unsafe { self.write_data(start, rows, words) };
                words.cast()
            }
        };
        let mut presence = std::ptr::null_mut();
        match &self.presence {
            Presence::All => {}
            Presence::BitsAt(first) => presence = first.wrapping_add(start / 8).cast_mut(),
            Presence::BytesAt(first, _) => presence = at(*first, presence_stride),
            Presence::InCells => {
                presence = data;
                data = data.wrapping_add(self.qtype.optional_value_offset().unwrap_or(0) as usize);
            }
            Presence::Staged => {
                presence = words.wrapping_add(used).cast();
                // SAFETY: COLUMNS, promised by the caller: room for a bit a row.
                let to = unsafe { std::slice::from_raw_parts_mut(words.add(used), rows.div_ceil(64)) };
                let column = &self.column;
                match (column.presence, column.data) {
                    (PresenceIn::Bits(bits), data) if !matches!(data, DataIn::Dictionary(..)) => {
                        to.iter_mut().enumerate().for_each(|(at, word)| *word = bits.word(start + 64 * at));
                    }
                    _ => {
                        to.fill(0);
                        for row in (0..rows).filter(|row| column.is_present(start + row)) {
                            to[row / 64] |= 1 << (row % 64);
                        }
                    }
                }
            }
        }
        Column { data, stride, presence, presence_stride }
    }

    /// Copies the data of some rows to staging memory.
    ///
    /// # Safety
    /// COLUMNS: the requirements of `column` must hold.
    unsafe fn write_data(&self, start: usize, rows: usize, words: *mut u64) {
        match self.column.data {
            DataIn::Bits(bits) => {
                // SAFETY: COLUMNS, promised by the caller: room for a bit a row.
                let to = unsafe { std::slice::from_raw_parts_mut(words, rows.div_ceil(64)) };
                to.iter_mut().enumerate().for_each(|(at, word)| *word = bits.word(start + 64 * at));
            }
            DataIn::Strings(_, strings) => {
                // SAFETY: COLUMNS, promised by the caller: room for an address and a length a row.
                let to =
                    unsafe { std::slice::from_raw_parts_mut(words.cast::<MaybeUninit<(*const u8, usize)>>(), rows) };
                strings.write(start, to);
            }
            DataIn::Fields(_, first, stride, write) => {
                for row in 0..rows {
                    let field = first.wrapping_offset(stride * (start + row).cast_signed());
                    let cell = FramePtr::from_raw(words.cast::<u8>().wrapping_add(row * self.cell));
                    // SAFETY: FIELD-TABLE: there is a field for each row. COLUMNS, promised by the caller: room for a cell.
                    unsafe { write(field, cell, 0) };
                }
            }
            DataIn::Any(values) => {
                for (row, value) in values[start..start + rows].iter().enumerate() {
                    let cell = FramePtr::from_raw(words.cast::<u8>().wrapping_add(row * self.cell));
                    // SAFETY: COLUMNS, promised by the caller: room for a cell; the value was compared with the type.
                    unsafe { value.write_to(cell, 0) };
                }
            }
            DataIn::Dictionary(keys, values) => {
                for row in 0..rows {
                    let key = keys.get(start + row).filter(|key| values.rows.is_none_or(|rows| *key < rows));
                    // SAFETY: COLUMNS, promised by the caller: room for a value.
                    unsafe { self.write_one(values, key, words.cast::<u8>().add(row * self.cell)) };
                }
            }
            DataIn::Values(_, first, stride) => {
                let first = first.wrapping_offset(stride * start.cast_signed());
                // Most values are contiguous, and are one copy.
                let (each, copies) =
                    if stride == self.cell.cast_signed() { (rows * self.cell, 1) } else { (self.cell, rows) };
                for copy in 0..copies {
                    // SAFETY: COLUMNS: there is a value for each row. COLUMNS, promised by the caller: room for it.
                    unsafe {
                        let from = first.offset(stride * copy.cast_signed());
                        std::ptr::copy_nonoverlapping(from, words.cast::<u8>().add(copy * self.cell), each);
                    }
                }
            }
            DataIn::Nothing | DataIn::Shared(_) | DataIn::Output(_) | DataIn::Lists(..) | DataIn::Structs(_) => {}
        }
    }

    /// Writes one value of a dictionary; zeros or an empty string if there is no key.
    ///
    /// # Safety
    /// COLUMNS: there is room for a value of the scalar type.
    unsafe fn write_one(&self, values: &InputColumn<'a>, key: Option<usize>, to: *mut u8) {
        // SAFETY: COLUMNS, promised by the caller; the values were compared with the type, and have one for the key.
        unsafe {
            match (values.data, key) {
                (DataIn::Values(_, first, stride), Some(key)) => {
                    let from = first.offset(stride * key.cast_signed());
                    std::ptr::copy_nonoverlapping(from, to, self.cell);
                }
                (DataIn::Strings(_, strings), Some(key)) => {
                    let bytes = strings.get(key).unwrap_or_default();
                    to.cast::<(*const u8, usize)>().write_unaligned((bytes.as_ptr(), bytes.len()));
                }
                (DataIn::Bits(bits), Some(key)) => *to = u8::from(bits.get(key)),
                _ => std::ptr::write_bytes(to, 0, self.cell),
            }
        }
    }
}
