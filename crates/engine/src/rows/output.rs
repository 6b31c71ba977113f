//! Output columns: new columns that a batch makes and its caller owns, and memory of the caller that a batch writes to.

use crate::rows::input::{ColumnValue, DataIn, InputColumn, PresenceIn};
use crate::rows::strings::{DictionaryStrings, OutputRoom, StringBuffers};
use crate::rows::structs::struct_value;
use crate::rows::{BitmapMut, KeyType, Misfit};
use cembra_runtime::{FramePtr, Optional, QType, Scalar};
use cembra_value::{ArrayBuilder, ScalarValue, Value, Words};
use std::marker::PhantomData;

impl OutputRoom {
    /// Returns this limit on memory, reduced by the bytes of the strings in `columns`.
    #[must_use]
    pub fn beside(self, columns: &[OutputColumn]) -> Self {
        let held = columns.iter().map(OutputColumn::string_bytes).fold(0, u64::saturating_add);
        OutputRoom::of((self.left() as u64).saturating_sub(held))
    }
}

/// A new column that a batch has made for one output: its type, its values, and its presence bits.
#[derive(Clone, Debug)]
pub struct OutputColumn {
    pub(in crate::rows) qtype: QType,
    pub(in crate::rows) rows: usize,
    pub(in crate::rows) data: DataOut,
    /// The presence bits of the column, one per row, lowest bit first; `None` if all rows are present.
    pub(in crate::rows) presence: Option<Vec<u64>>,
}

/// The data of an output column, in one of several memory layouts: numbers in words, bits, strings, lists and others.
#[derive(Clone, Debug)]
pub(in crate::rows) enum DataOut {
    /// The column has units, which have no data.
    Nothing,
    /// The column has contiguous numbers, packed in words.
    Numbers(Words),
    /// The column has truth values, one bit per row.
    Bits(Words),
    Strings(StringBuffers),
    Numbered(DictionaryStrings),
    /// The column has lists: the index of each row's first element and the end of the last row, and the column of the elements of all rows.
    Lists(Vec<i64>, Box<OutputColumn>),
    /// The column has structs: the columns that they consist of.
    Structs(Vec<OutputColumn>),
    /// The column has values of types that are not scalars.
    Any(Vec<Value>),
}

impl OutputColumn {
    /// The type of the column's values: optional if some rows may be missing.
    #[must_use]
    pub const fn qtype(&self) -> &QType {
        &self.qtype
    }

    /// The number of rows of the column.
    #[must_use]
    pub const fn rows(&self) -> usize {
        self.rows
    }

    /// The column's values, if they have the type `T`; else `None`. A missing row has an unspecified value. For BOOLEAN, use
    /// [`bits`](OutputColumn::bits).
    #[must_use]
    pub fn values<T: ColumnValue>(&self) -> Option<&[T]> {
        let is_of =
            self.qtype.scalar().is_some_and(|scalar| scalar == T::SCALAR || scalar.representation() == T::SCALAR);
        match &self.data {
            DataOut::Numbers(words) if is_of => {
                // SAFETY: COLUMNS: there is a number of this type for each row, in words that started as zeros.
                Some(unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), self.rows) })
            }
            _ => None,
        }
    }

    /// The column's truth values, one bit per row, lowest bit first; `None` for other types.
    #[must_use]
    pub fn bits(&self) -> Option<&[u64]> {
        if let DataOut::Bits(words) = &self.data { Some(words) } else { None }
    }

    /// The presence bits of the column, one per row, lowest bit first; `None` if all rows are present.
    #[must_use]
    pub fn presence(&self) -> Option<&[u64]> {
        self.presence.as_deref()
    }

    /// Returns true if row `row` exists and its value is present.
    #[must_use]
    pub fn is_present(&self, row: usize) -> bool {
        row < self.rows && self.presence.as_ref().is_none_or(|words| bit(words, row))
    }

    /// The bytes of the string in row `row`; `None` if the row is missing, or the column has another type.
    #[must_use]
    pub fn string(&self, row: usize) -> Option<&[u8]> {
        match &self.data {
            DataOut::Strings(strings) if self.is_present(row) => strings.get(row),
            DataOut::Numbered(strings) if self.is_present(row) => strings.get(row),
            _ => None,
        }
    }

    /// The text in row `row`; `None` if the row is missing, or the column has another type.
    #[must_use]
    pub fn text(&self, row: usize) -> Option<&str> {
        if self.qtype.scalar() == Some(Scalar::Text) { std::str::from_utf8(self.string(row)?).ok() } else { None }
    }

    /// The bytes of memory that the column's string views refer to, including the strings in lists and structs.
    #[must_use]
    pub fn string_bytes(&self) -> u64 {
        let of = |made: &StringBuffers| made.buffers.iter().map(|buffer| buffer.len() as u64).sum();
        match &self.data {
            DataOut::Strings(made) => of(made),
            DataOut::Numbered(numbered) => of(&numbered.strings),
            DataOut::Lists(_, elements) => elements.string_bytes(),
            DataOut::Structs(columns) => columns.iter().map(OutputColumn::string_bytes).fold(0, u64::saturating_add),
            _ => 0,
        }
    }

    /// For a column of lists: the offsets, and the column of the elements of all rows. The list of row `n` has the elements from `offsets[n]` up to
    /// `offsets[n + 1]`. `None` for other columns.
    #[must_use]
    pub fn lists(&self) -> Option<(&[i64], &OutputColumn)> {
        if let DataOut::Lists(offsets, elements) = &self.data { Some((offsets, elements)) } else { None }
    }

    /// For a column of structs or of lists of structs: the columns that it consists of, in the order of
    /// [`InputColumn::structs`](crate::rows::InputColumn::structs). `None` for other types, and for models without arrays, which make one value per
    /// row instead.
    #[must_use]
    pub fn structs(&self) -> Option<&[OutputColumn]> {
        if let DataOut::Structs(columns) = &self.data { Some(columns) } else { None }
    }

    /// The value of row `row`; `None` after the last row. If the row failed and the column's type is not a scalar (a list, a struct), the value is
    /// `Value::Nothing`.
    #[must_use]
    pub fn value(&self, row: usize) -> Option<Value> {
        if row >= self.rows {
            return None;
        }
        if let DataOut::Any(values) = &self.data {
            return values.get(row).cloned();
        }
        if let (DataOut::Lists(offsets, elements), QType::Array(kind, scalar)) = (&self.data, &self.qtype) {
            let row_elements = offsets[row] as usize..offsets[row + 1] as usize;
            let mut array = ArrayBuilder::new(*scalar, row_elements.len());
            row_elements.for_each(|at| array.push(elements.value(at).as_ref().and_then(Value::as_scalar)));
            return Some(if self.is_present(row) {
                Value::Array(*kind, array.finish().into())
            } else {
                Value::Nothing
            });
        }
        if let DataOut::Structs(columns) = &self.data {
            let mut columns = columns.iter();
            // A scalar of an optional struct is optional in its column.
            let mut next = |of: &QType| match (columns.next()?.value(row)?, of) {
                (Value::Present(value), QType::Scalar(_)) => Some(Value::Scalar(value)),
                (value, _) => Some(value),
            };
            return if self.is_present(row) {
                struct_value(&self.qtype, true, &mut next)
            } else {
                Some(Value::Nothing)
            };
        }
        let scalar = self.qtype.scalar()?;
        let value = if self.is_present(row) { self.scalar_value(scalar, row) } else { None };
        Some(match (self.qtype.is_optional(), value) {
            (true, value) => Value::optional(scalar, value),
            (false, value) => Value::Scalar(value?),
        })
    }

    fn scalar_value(&self, scalar: Scalar, row: usize) -> Option<ScalarValue> {
        match &self.data {
            DataOut::Nothing => Some(ScalarValue::Unit),
            DataOut::Bits(words) => Some(ScalarValue::Boolean(bit(words, row))),
            DataOut::Numbers(words) => {
                let size = QType::Scalar(scalar).layout().size as usize;
                let bits = if size == 8 { words[row] } else { words[row / 2] >> (32 * (row % 2)) & 0xFFFF_FFFF };
                ScalarValue::from_bits(scalar, bits)
            }
            DataOut::Strings(_) | DataOut::Numbered(_) => {
                let bytes = self.string(row)?;
                Some(match scalar {
                    Scalar::Text => ScalarValue::Text(std::str::from_utf8(bytes).ok()?.into()),
                    _ => ScalarValue::Bytes(bytes.into()),
                })
            }
            DataOut::Any(_) | DataOut::Lists(..) | DataOut::Structs(_) => None,
        }
    }

    /// The integer type of the column's dictionary keys; `None` if each row has a string of its own.
    #[must_use]
    pub fn key_type(&self) -> Option<KeyType> {
        if let DataOut::Numbered(strings) = &self.data { Some(strings.key_type) } else { None }
    }

    /// Converts a dictionary column to a column with one string view per row. The bytes of the strings are not copied. Other columns stay as they
    /// are.
    #[must_use]
    pub fn spread(mut self) -> OutputColumn {
        if let DataOut::Numbered(numbered) = self.data {
            self.data = DataOut::Strings(numbered.spread(self.rows));
        }
        self
    }

    /// Takes the column apart: its type, its data, and its presence bits (one per row, `None` if all rows are present). Strings are views and buffers
    /// in Arrow's layout.
    #[must_use]
    pub fn into_parts(self) -> (QType, OutputParts, Option<Vec<u64>>) {
        let parts = match self.data {
            DataOut::Nothing => OutputParts::Nothing,
            DataOut::Numbers(words) => OutputParts::Numbers(words),
            DataOut::Bits(words) => OutputParts::Bits(words),
            DataOut::Strings(StringBuffers { views, buffers }) => OutputParts::Strings(views, buffers),
            DataOut::Numbered(DictionaryStrings { key_type, keys, strings, present }) => {
                OutputParts::Dictionary { key_type, keys, views: strings.views, buffers: strings.buffers, present }
            }
            DataOut::Lists(offsets, elements) => OutputParts::Lists(offsets, elements),
            DataOut::Structs(columns) => OutputParts::Structs(columns),
            DataOut::Any(values) => OutputParts::Any(values),
        };
        (self.qtype, parts, self.presence)
    }
}

/// The data of a column that a batch has made, in one of several memory layouts: numbers in words, bits, strings, lists and others.
#[derive(Debug)]
pub enum OutputParts {
    /// The column has units, which have no data.
    Nothing,
    /// The column has contiguous numbers, one per row, packed in words.
    Numbers(Words),
    /// The column has truth values, one bit per row.
    Bits(Words),
    /// The column has strings: one view per row, and the buffers that the views refer to.
    Strings(Vec<u128>, Vec<Vec<u8>>),
    /// The column has dictionary keys of strings, because its strings depend on one dictionary input alone. Each row has the key that the input has
    /// in that row.
    Dictionary {
        /// The integer type of the dictionary keys.
        key_type: KeyType,
        /// The dictionary keys, one per row, contiguous and packed in words; unspecified where a row is missing.
        keys: Vec<u64>,
        /// The views of the dictionary's strings.
        views: Vec<u128>,
        /// The buffers that the string views refer to.
        buffers: Vec<Vec<u8>>,
        /// The presence bits of the strings, one per string: 0 for a missing string, and for a key that no row has.
        present: Vec<u64>,
    },
    /// The column has lists: the index of each row's first element and the end of the last row, and the column of the elements of all rows.
    Lists(Vec<i64>, Box<OutputColumn>),
    /// The column has structs: the columns that they consist of.
    Structs(Vec<OutputColumn>),
    /// The column has values of types that are not scalars.
    Any(Vec<Value>),
}

/// Returns the bit of row `row` in a bitmap.
pub(in crate::rows) fn bit(words: &[u64], row: usize) -> bool {
    words[row / 64] >> (row % 64) & 1 != 0
}

/// A function that moves a value from a cell of a frame to a field of a Rust struct. The arguments are the address of the field, the frame, and the
/// byte offset of the cell in the frame.
///
/// # Safety
/// FIELD-TABLE: the first argument is a field of the type that the function was made for, and the cell at the offset has a value.
pub type ReadField = unsafe fn(*mut u8, FramePtr, u32);

/// The caller's memory that the values of one output are written to.
#[derive(Debug)]
pub struct ColumnMut<'a> {
    pub(in crate::rows) rows: usize,
    pub(in crate::rows) data: DataTo<'a>,
    /// The memory for the presence of the output's rows.
    pub(in crate::rows) presence: PresenceTo<'a>,
    lives: PhantomData<&'a mut [u8]>,
}

// SAFETY: COLUMNS: the memory that a column points to is borrowed, exclusively, for as long as the column lives.
unsafe impl Send for ColumnMut<'_> {}

/// The memory for the values of an output, in its layout.
#[derive(Debug)]
pub(in crate::rows) enum DataTo<'a> {
    Nothing,
    Values(Scalar, *mut u8, isize),
    Bits(BitmapMut<'a>),
    Fields(&'a QType, *mut u8, isize, ReadField),
}

/// The memory for the presence of an output's rows.
#[derive(Debug)]
pub(in crate::rows) enum PresenceTo<'a> {
    /// There is no memory for presence, because the output is never missing.
    Nowhere,
    Bits(BitmapMut<'a>),
    Bytes(*mut u8, isize),
}

impl<'a> ColumnMut<'a> {
    const fn new(rows: usize, data: DataTo<'a>) -> Self {
        ColumnMut { rows, data, presence: PresenceTo::Nowhere, lives: PhantomData }
    }

    /// Wraps the caller's memory for numbers, truth values, dates or timestamps that are never missing.
    #[must_use]
    pub fn values<T: ColumnValue>(values: &'a mut [T]) -> Self {
        let stride = size_of::<T>().cast_signed();
        ColumnMut::new(values.len(), DataTo::Values(T::SCALAR, values.as_mut_ptr().cast(), stride))
    }

    /// Wraps the caller's memory for contiguous optional values.
    #[must_use]
    pub fn optionals<T: ColumnValue>(values: &'a mut [Optional<T>]) -> Self {
        let (start, stride): (*mut u8, _) = (values.as_mut_ptr().cast(), size_of::<Optional<T>>().cast_signed());
        let data = DataTo::Values(T::SCALAR, start.wrapping_add(align_of::<T>()), stride);
        ColumnMut { presence: PresenceTo::Bytes(start, stride), ..ColumnMut::new(values.len(), data) }
    }

    /// Wraps the caller's memory for truth values, one bit per row.
    #[must_use]
    pub fn bits(bits: BitmapMut<'a>) -> Self {
        ColumnMut::new(bits.rows(), DataTo::Bits(bits))
    }

    /// Makes the destination for `rows` units. Units have no data, only a presence if [`present`](ColumnMut::present) adds bits for it.
    #[must_use]
    pub fn units(rows: usize) -> Self {
        ColumnMut::new(rows, DataTo::Nothing)
    }

    /// Sets the memory for presence bits: one per row, which the run sets where the row is present.
    #[must_use]
    pub fn present(self, bits: BitmapMut<'a>) -> Self {
        ColumnMut { presence: PresenceTo::Bits(bits), ..self }
    }

    /// Wraps the caller's memory for values in the layout that they have in frames (the memory of an evaluation),
    /// `stride` bytes apart, such as fields of structs. `presence` is the distance in bytes from a row's value to the
    /// byte for its presence.
    ///
    /// # Safety
    /// COLUMNS: the value and the byte of each row exist for as long as the column lives, and nothing else uses them.
    #[must_use]
    pub unsafe fn strided(scalar: Scalar, first: *mut u8, stride: isize, presence: Option<isize>, rows: usize) -> Self {
        let data = if scalar == Scalar::Unit { DataTo::Nothing } else { DataTo::Values(scalar, first, stride) };
        let presence = presence.map_or(PresenceTo::Nowhere, |at| PresenceTo::Bytes(first.wrapping_offset(at), stride));
        ColumnMut { presence, ..ColumnMut::new(rows, data) }
    }

    /// Wraps the memory of fields of Rust structs that are not in the layout that values have in frames (the memory of
    /// an evaluation). `read` moves a value from a cell to a field.
    ///
    /// # Safety
    /// FIELD-TABLE: the field of each row exists for as long as the column lives, and nothing else uses it.
    #[must_use]
    pub unsafe fn fields(qtype: &'a QType, first: *mut u8, stride: isize, read: ReadField, rows: usize) -> Self {
        ColumnMut::new(rows, DataTo::Fields(qtype, first, stride, read))
    }

    /// The number of rows that this memory has room for.
    #[must_use]
    pub const fn rows(&self) -> usize {
        self.rows
    }

    /// Returns true if the caller has memory for each row, so that the number of rows is bounded. Units without presence take no memory.
    #[must_use]
    pub const fn is_backed(&self) -> bool {
        let data = match self.data {
            DataTo::Nothing => false,
            DataTo::Values(_, _, stride) | DataTo::Fields(_, _, stride, _) => stride != 0,
            DataTo::Bits(_) => true,
        };
        data || match self.presence {
            PresenceTo::Nowhere => false,
            PresenceTo::Bits(_) => true,
            PresenceTo::Bytes(_, stride) => stride != 0,
        }
    }

    /// Returns the current contents of the memory as an input column of at most `rows` rows; `None` for fields that are
    /// not in the layout that values have in frames (the memory of an evaluation).
    pub(in crate::rows) fn as_input(&self, rows: usize) -> Option<InputColumn<'_>> {
        let data = match &self.data {
            DataTo::Nothing => DataIn::Nothing,
            DataTo::Values(scalar, first, stride) => DataIn::Values(*scalar, *first, *stride),
            DataTo::Bits(bits) => DataIn::Bits(bits.as_bits()),
            DataTo::Fields(..) => return None,
        };
        let presence = match &self.presence {
            PresenceTo::Nowhere => PresenceIn::All,
            PresenceTo::Bits(bits) => PresenceIn::Bits(bits.as_bits()),
            PresenceTo::Bytes(first, stride) => PresenceIn::Bytes(*first, *stride),
        };
        Some(InputColumn::of_memory(self.rows.min(rows), data, presence))
    }

    /// Checks that the memory fits an output of type `qtype` with `rows` rows.
    ///
    /// # Errors
    /// The first reason found why the memory does not fit.
    pub(in crate::rows) fn check(&self, qtype: &QType, rows: usize) -> Result<(), Misfit> {
        let has_bits = !matches!(&self.presence, PresenceTo::Bits(bits) if bits.rows() < rows);
        if self.rows < rows || !has_bits {
            return Err(Misfit::Rows { found: self.rows, expected: rows });
        }
        let found = match &self.data {
            DataTo::Fields(found, ..) if *found == qtype => return Ok(()),
            DataTo::Fields(found, ..) => return Err(Misfit::Type { found: (*found).clone() }),
            DataTo::Nothing => Scalar::Unit,
            DataTo::Values(scalar, ..) => *scalar,
            DataTo::Bits(_) => Scalar::Boolean,
        };
        if !qtype.scalar().is_some_and(|scalar| scalar == found || scalar.representation() == found) {
            return Err(Misfit::Type { found: QType::Scalar(found) });
        }
        if qtype.is_optional() && matches!(self.presence, PresenceTo::Nowhere) {
            return Err(Misfit::Presence);
        }
        Ok(())
    }
}

impl<'a, T: ColumnValue> From<&'a mut [T]> for ColumnMut<'a> {
    fn from(values: &'a mut [T]) -> Self {
        ColumnMut::values(values)
    }
}

impl<'a, T: ColumnValue> From<&'a mut [Optional<T>]> for ColumnMut<'a> {
    fn from(values: &'a mut [Optional<T>]) -> Self {
        ColumnMut::optionals(values)
    }
}
