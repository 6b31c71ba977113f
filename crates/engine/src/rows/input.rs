//! Input columns: the caller's values for many rows, in the caller's memory layout. Columns are borrowed, compared with the model's types once, and
//! read in place.

#![deny(clippy::arithmetic_side_effects)]

use crate::rows::keys::Keys;
use crate::rows::strings::Strings;
use crate::rows::{Bitmap, ListOffsets, Misfit};
use cembra_runtime::{FramePtr, Optional, Plain, QType, Scalar, for_each_scalar};
use cembra_value::{Array, ArrayData, Value};
use smallvec::{SmallVec, smallvec};
use std::marker::PhantomData;

/// A Rust type whose slices can be input and output columns. The Rust type has the size of the scalar type `SCALAR`, and every bit pattern of the
/// Rust type can be read as a value of that scalar type.
///
/// # Safety
/// COLUMNS: a value of the type has the memory layout of a value of the scalar type.
pub unsafe trait ColumnValue: Plain {
    /// The scalar type with this layout.
    const SCALAR: Scalar;
}

macro_rules! column_values {
    ([] unit $unit:tt plain { $($(#[$doc:meta])* $variant:ident($rust:ty) $facts:tt)* } $($rest:tt)*) => { $(
        // SAFETY: COLUMNS: `Plain` says so; a `bool` is a byte that is 0 or 1.
        unsafe impl ColumnValue for $rust {
            const SCALAR: Scalar = Scalar::$variant;
        }
    )* };
}

for_each_scalar!(column_values []);

/// The storage of a column's presence: which of its rows are not missing.
#[derive(Clone, Copy, Debug)]
pub(in crate::rows) enum PresenceIn<'a> {
    All,
    Bits(Bitmap<'a>),
    /// A byte per row says whether the row is present: the address of the first byte, and the stride in bytes.
    Bytes(*const u8, isize),
}

/// A function that copies a field of a Rust struct to a cell of a frame. The arguments are the address of the field, the frame, and the byte offset
/// of the cell in the frame.
///
/// # Safety
/// FIELD-TABLE: the first argument is a field of the type that the function was made for, and the frame has room for a cell at the offset.
pub type WriteField = unsafe fn(*const u8, FramePtr, u32);

/// The storage of an input column's values, such as contiguous values, bits, strings, or one value for all rows.
#[derive(Clone, Copy, Debug)]
pub(in crate::rows) enum DataIn<'a> {
    /// The column has units, which have no data.
    Nothing,
    /// The column has values in the layout that they have in frames (the memory of an evaluation): the scalar type, the
    /// address of the first value, and the stride in bytes.
    Values(Scalar, *const u8, isize),
    /// The column has truth values, one bit per row.
    Bits(Bitmap<'a>),
    /// The column has strings: texts or byte strings, according to the scalar type.
    Strings(Scalar, Strings<'a>),
    /// The column has dictionary keys, which are indices of values in another column.
    Dictionary(Keys<'a>, &'a InputColumn<'a>),
    /// The column has values of any type, one per row.
    Any(&'a [Value]),
    /// A value that all rows of the column share.
    Shared(&'a Value),
    /// The column has lists, whose elements are in another column.
    Lists(ListOffsets<'a>, &'a InputColumn<'a>),
    /// The column has structs, whose members are in other columns.
    Structs(&'a [InputColumn<'a>]),
    /// The column has fields of Rust structs: the field's type, the address of the first field, the stride in bytes, and the function that copies one
    /// field to a cell of a frame.
    Fields(&'a QType, *const u8, isize, WriteField),
    /// The column has the values that are in the memory of the output with this index before the run.
    Output(usize),
}

/// An input column of the caller: one value per row, or one value that all rows share.
#[derive(Clone, Copy, Debug)]
pub struct InputColumn<'a> {
    /// The number of rows; `None` if all rows share one value, or if the column reads the memory of an output, which determines the number.
    pub(in crate::rows) rows: Option<usize>,
    pub(in crate::rows) data: DataIn<'a>,
    pub(in crate::rows) presence: PresenceIn<'a>,
    /// True if the keys of a dictionary are known to be valid and need no check.
    knows_keys: bool,
    lives: PhantomData<&'a [u8]>,
}

// SAFETY: COLUMNS: the memory that a column points to is borrowed, shared, for as long as the column lives.
unsafe impl Send for InputColumn<'_> {}
// SAFETY: COLUMNS: the memory is borrowed in the same way, and nothing is written through the column.
unsafe impl Sync for InputColumn<'_> {}

impl<'a> InputColumn<'a> {
    const fn new(rows: usize, data: DataIn<'a>) -> Self {
        InputColumn { rows: Some(rows), data, presence: PresenceIn::All, knows_keys: false, lives: PhantomData }
    }

    /// Makes a column of numbers, truth values, dates or timestamps, all of which are present.
    #[must_use]
    pub fn values<T: ColumnValue>(values: &'a [T]) -> Self {
        let stride = size_of::<T>().cast_signed();
        InputColumn::new(values.len(), DataIn::Values(T::SCALAR, values.as_ptr().cast(), stride))
    }

    /// Makes a column of `rows` values of the slice `values`: the one with index `first`, then every `step`-th. `None` if one of them is outside of
    /// the slice.
    ///
    /// ```
    /// use cembra_engine::rows::InputColumn;
    ///
    /// let numbers = [1.0, 2.0, 3.0, 4.0, 5.0];
    /// assert_eq!(InputColumn::stepped(&numbers, 4, -2, 3).and_then(|column| column.rows()), Some(3));
    /// assert!(InputColumn::stepped(&numbers, 3, -2, 3).is_none());
    /// ```
    #[must_use]
    pub fn stepped<T: ColumnValue>(values: &'a [T], first: usize, step: isize, rows: usize) -> Option<Self> {
        let last = match isize::try_from(rows).ok()? {
            0 => return Some(InputColumn::values(&values[..0])),
            rows => step.checked_mul(rows.saturating_sub(1)).and_then(|distance| first.checked_add_signed(distance))?,
        };
        if first >= values.len() || last >= values.len() {
            return None;
        }
        let stride = step.checked_mul(size_of::<T>().cast_signed())?;
        Some(InputColumn::new(rows, DataIn::Values(T::SCALAR, values[first..].as_ptr().cast(), stride)))
    }

    /// Makes a column of contiguous optional values.
    #[must_use]
    pub fn optionals<T: ColumnValue>(values: &'a [Optional<T>]) -> Self {
        let (start, stride): (*const u8, _) = (values.as_ptr().cast(), size_of::<Optional<T>>().cast_signed());
        // An optional begins with its presence; the value follows at its alignment.
        let data = DataIn::Values(T::SCALAR, start.wrapping_add(align_of::<T>()), stride);
        let presence = PresenceIn::Bytes(start, stride);
        InputColumn { presence, ..InputColumn::new(values.len(), data) }
    }

    /// Makes a column of truth values from a bitmap.
    #[must_use]
    pub fn bits(bits: Bitmap<'a>) -> Self {
        InputColumn::new(bits.rows(), DataIn::Bits(bits))
    }

    /// Makes a column of `rows` units. Units have no data, only a presence, which [`present`](InputColumn::present) sets.
    #[must_use]
    pub fn units(rows: usize) -> Self {
        InputColumn::new(rows, DataIn::Nothing)
    }

    /// Makes a column of borrowed texts.
    #[must_use]
    pub fn texts(texts: &'a [&'a str]) -> Self {
        InputColumn::strings(Scalar::Text, Strings::Texts(texts))
    }

    /// Makes a column of texts that are stored as `String`.
    #[must_use]
    pub fn owned_texts(texts: &'a [String]) -> Self {
        InputColumn::strings(Scalar::Text, Strings::Owned(texts))
    }

    /// Makes a column of byte strings.
    #[must_use]
    pub fn bytes(bytes: &'a [&'a [u8]]) -> Self {
        InputColumn::strings(Scalar::Bytes, Strings::Bytes(bytes))
    }

    fn strings(scalar: Scalar, strings: Strings<'a>) -> Self {
        InputColumn::new(strings.rows(), DataIn::Strings(scalar, strings))
    }

    /// Makes a column of strings between adjacent offsets of 32 bits, as in Arrow's `Utf8` and `Binary`: texts if `scalar` is TEXT, else byte
    /// strings.
    ///
    /// # Safety
    /// STRING-VIEW: offsets do not decrease, the last is within the bytes, and the bytes of each text are UTF-8.
    #[must_use]
    pub unsafe fn offsets_32(scalar: Scalar, offsets: &'a [i32], bytes: &'a [u8]) -> Self {
        InputColumn::strings(scalar, Strings::Offsets32(offsets, bytes))
    }

    /// Makes a column of strings between adjacent offsets of 64 bits, as in Arrow's `LargeUtf8` and `LargeBinary`: texts if `scalar` is TEXT, else
    /// byte strings.
    ///
    /// # Safety
    /// STRING-VIEW: offsets do not decrease, the last is within the bytes, and the bytes of each text are UTF-8.
    #[must_use]
    pub unsafe fn offsets_64(scalar: Scalar, offsets: &'a [i64], bytes: &'a [u8]) -> Self {
        InputColumn::strings(scalar, Strings::Offsets64(offsets, bytes))
    }

    /// Makes a column of string views in Arrow's layout, as in `Utf8View` and `BinaryView`: texts if `scalar` is TEXT, else byte strings.
    ///
    /// # Safety
    /// STRING-VIEW: views are within the buffers, and those of texts are UTF-8.
    #[must_use]
    pub unsafe fn views(scalar: Scalar, views: &'a [u128], buffers: &'a [&'a [u8]]) -> Self {
        InputColumn::strings(scalar, Strings::Views(views, buffers))
    }

    /// Makes a column of the elements of an array, one per row.
    ///
    /// ```
    /// use cembra_engine::rows::InputColumn;
    /// use cembra_runtime::Scalar;
    /// use cembra_value::Array;
    ///
    /// let array = Array::from_scalars(Scalar::Int32, [Some(7.into()), None]);
    /// assert_eq!(InputColumn::elements(&array).rows(), Some(2));
    /// ```
    #[must_use]
    pub fn elements(array: &'a Array) -> Self {
        let (scalar, rows) = (array.scalar(), array.len());
        let data = match array.data() {
            ArrayData::Units => DataIn::Nothing,
            ArrayData::Numbers(words) => {
                let stride = QType::Scalar(scalar).layout().size as isize;
                DataIn::Values(scalar, words.as_ptr().cast(), stride)
            }
            // An array has a bit for each element, so the bits are never too few.
            ArrayData::Bits(words) => Bitmap::of_words(words, rows).map_or(DataIn::Nothing, DataIn::Bits),
            // The strings of an array of texts were checked when it was made.
            ArrayData::Strings(strings) => DataIn::Strings(scalar, Strings::Kept(strings)),
        };
        let presence = array.presence().and_then(|bits| Bitmap::of_words(bits, rows));
        InputColumn { presence: presence.map_or(PresenceIn::All, PresenceIn::Bits), ..InputColumn::new(rows, data) }
    }

    /// Makes a column of texts between adjacent offsets of 32 bits; `None` if the offsets or the texts are invalid.
    #[must_use]
    pub fn checked_offsets(offsets: &'a [i32], bytes: &'a [u8]) -> Option<Self> {
        let strings = Strings::Offsets32(offsets, bytes);
        strings.first_fault(true).is_none().then(|| InputColumn::strings(Scalar::Text, strings))
    }

    /// Makes a dictionary column: each row has a key, which is the index of the row's value in the column `values`. The key of a missing row may have
    /// any value.
    #[must_use]
    pub fn dictionary(keys: Keys<'a>, values: &'a InputColumn<'a>) -> Self {
        InputColumn::new(keys.rows(), DataIn::Dictionary(keys, values))
    }

    /// Makes a dictionary column whose keys are not checked.
    ///
    /// # Safety
    /// COLUMNS: the keys of present rows are indices of values.
    #[must_use]
    pub unsafe fn known_dictionary(keys: Keys<'a>, values: &'a InputColumn<'a>) -> Self {
        InputColumn { knows_keys: true, ..InputColumn::dictionary(keys, values) }
    }

    /// Makes a column of lists whose elements are in the column `elements`.
    pub(in crate::rows) const fn of_lists(offsets: ListOffsets<'a>, elements: &'a InputColumn<'a>) -> Self {
        InputColumn::new(offsets.rows(), DataIn::Lists(offsets, elements))
    }

    /// Makes a column of structs, or of lists of structs, for models with arrays. `columns` has one column per scalar of the type, in the type's
    /// order. An optional struct also has a mask before its columns, which says where the struct is present. A list of structs has one column of
    /// lists per scalar. Where a struct is missing, its columns may have any values or none.
    ///
    /// ```
    /// use cembra_engine::rows::{Bitmap, InputColumn};
    ///
    /// // Of the type `{id: i64, home: {zip: i32}?}`:
    /// let (id, zip) = (InputColumn::values(&[1_i64, 2]), InputColumn::values(&[8001, 0]));
    /// let has_home = InputColumn::units(2).present(Bitmap::new(&[0b01], 0, 2).unwrap());
    /// assert_eq!(InputColumn::structs(&[id, has_home, zip]).rows(), Some(2));
    /// ```
    #[must_use]
    pub fn structs(columns: &'a [InputColumn<'a>]) -> Self {
        InputColumn {
            rows: columns.iter().find_map(|column| column.rows),
            ..InputColumn::new(0, DataIn::Structs(columns))
        }
    }

    /// Makes a column of values of any type. Each value must be of exactly the input's type.
    #[must_use]
    pub fn any(values: &'a [Value]) -> Self {
        InputColumn::new(values.len(), DataIn::Any(values))
    }

    /// Makes a column of one value that all rows share. The value must be of exactly the input's type.
    #[must_use]
    pub fn shared(value: &'a Value) -> Self {
        InputColumn { rows: None, ..InputColumn::new(0, DataIn::Shared(value)) }
    }

    /// Makes a column of the values that are in the memory of the output with index `output` before the run, so that input and output share memory.
    /// Each row is read before the output overwrites it, also if a row fails. The column is accepted only in a run for which the caller provides that
    /// output's memory.
    #[must_use]
    pub fn of_output(output: usize) -> Self {
        InputColumn { rows: None, ..InputColumn::new(0, DataIn::Output(output)) }
    }

    /// Makes a column of the caller's memory that an output will overwrite. `data` and `presence` describe the memory of its values and its presence.
    pub(in crate::rows) const fn of_memory(rows: usize, data: DataIn<'a>, presence: PresenceIn<'a>) -> Self {
        InputColumn { presence, ..InputColumn::new(rows, data) }
    }

    /// The index of the output whose memory this column reads; `None` for other columns.
    pub(in crate::rows) const fn output(&self) -> Option<usize> {
        if let DataIn::Output(output) = self.data { Some(output) } else { None }
    }

    /// Returns this column with the presence bits of `other`; if `other` has no presence bits, returns this column as it is.
    pub(in crate::rows) fn present_as(self, other: &InputColumn<'a>) -> Self {
        if let PresenceIn::Bits(bits) = other.presence { self.present(bits) } else { self }
    }

    /// Makes a column of values in the layout that they have in frames (the memory of an evaluation), `stride` bytes
    /// apart, such as fields of structs. `presence` is the distance in bytes from a row's value to the byte that says
    /// whether the row is present; `None` if all rows are present.
    ///
    /// # Safety
    /// COLUMNS: the value and the byte of each row exist for as long as the column lives.
    #[must_use]
    pub unsafe fn strided(
        scalar: Scalar,
        first: *const u8,
        stride: isize,
        presence: Option<isize>,
        rows: usize,
    ) -> Self {
        let data = if scalar == Scalar::Unit { DataIn::Nothing } else { DataIn::Values(scalar, first, stride) };
        let presence = presence.map_or(PresenceIn::All, |at| PresenceIn::Bytes(first.wrapping_offset(at), stride));
        InputColumn { presence, ..InputColumn::new(rows, data) }
    }

    /// Makes a column of fields of Rust structs that are not in the layout that values have in frames (the memory of an
    /// evaluation). `write` copies a field of type `qtype` to a cell.
    ///
    /// # Safety
    /// FIELD-TABLE: the field of each row exists for as long as the column lives.
    #[must_use]
    pub unsafe fn fields(qtype: &'a QType, first: *const u8, stride: isize, write: WriteField, rows: usize) -> Self {
        InputColumn::new(rows, DataIn::Fields(qtype, first, stride, write))
    }

    /// Sets the presence bits of the column: a row is present where its bit is 1. In a dictionary column these are the bits of the keys.
    #[must_use]
    pub fn present(self, bits: Bitmap<'a>) -> Self {
        InputColumn { presence: PresenceIn::Bits(bits), ..self }
    }

    /// The number of rows of the column; `None` if all rows share one value, so that any number of rows fits.
    #[must_use]
    pub const fn rows(&self) -> Option<usize> {
        self.rows
    }

    /// Returns true if the caller has memory for each row, so that the number of rows is bounded. Units, lists without elements, and a shared value
    /// take no memory per row.
    #[must_use]
    pub fn is_backed(&self) -> bool {
        // A column that was not checked yet may have nested columns of any depth.
        let mut open: SmallVec<[&InputColumn<'a>; 4]> = smallvec![self];
        while let Some(column) = open.pop() {
            let is_marked = match column.presence {
                PresenceIn::All => false,
                PresenceIn::Bits(_) => true,
                PresenceIn::Bytes(_, stride) => stride != 0,
            };
            let is_backed = is_marked
                || match column.data {
                    DataIn::Nothing | DataIn::Shared(_) | DataIn::Output(_) => false,
                    DataIn::Values(_, _, stride) | DataIn::Fields(_, _, stride, _) => stride != 0,
                    DataIn::Lists(ListOffsets::Fixed { size: 0, .. }, _) => false,
                    DataIn::Lists(ListOffsets::Fixed { .. }, elements) => {
                        open.push(elements);
                        false
                    }
                    DataIn::Structs(columns) => {
                        open.extend(columns);
                        false
                    }
                    DataIn::Lists(..)
                    | DataIn::Bits(_)
                    | DataIn::Strings(..)
                    | DataIn::Dictionary(..)
                    | DataIn::Any(_) => true,
                };
            if is_backed {
                return true;
            }
        }
        false
    }

    /// Returns true if each value is stored by itself, so that dictionary keys can refer to the value.
    const fn lies_in_place(&self) -> bool {
        matches!(self.data, DataIn::Nothing | DataIn::Values(..) | DataIn::Bits(_) | DataIn::Strings(..))
    }

    /// Returns true if the storage of the column shows, without a look at the rows, that no row is missing.
    pub(in crate::rows) fn is_all_present(&self) -> bool {
        let values = match self.data {
            DataIn::Dictionary(_, values) => values.lies_in_place() && matches!(values.presence, PresenceIn::All),
            DataIn::Any(_) | DataIn::Shared(_) | DataIn::Fields(..) => false,
            _ => true,
        };
        values && matches!(self.presence, PresenceIn::All)
    }

    /// The scalar type of the column's values; `None` for values of any type.
    pub(in crate::rows) const fn scalar(&self) -> Option<Scalar> {
        match self.data {
            DataIn::Nothing => Some(Scalar::Unit),
            DataIn::Values(scalar, ..) | DataIn::Strings(scalar, _) => Some(scalar),
            DataIn::Bits(_) => Some(Scalar::Boolean),
            DataIn::Dictionary(_, values) if values.lies_in_place() => values.scalar(),
            DataIn::Dictionary(..)
            | DataIn::Any(_)
            | DataIn::Shared(_)
            | DataIn::Fields(..)
            | DataIn::Output(_)
            | DataIn::Lists(..)
            | DataIn::Structs(_) => None,
        }
    }

    /// Returns true if the row exists and its value is present.
    pub(in crate::rows) fn is_there(&self, row: usize) -> bool {
        self.rows.is_some_and(|rows| row < rows) && self.is_present(row)
    }

    /// Returns true if the value of row `row` is present.
    pub(in crate::rows) fn is_present(&self, row: usize) -> bool {
        self.is_marked(row)
            && match self.data {
                DataIn::Dictionary(keys, values) => keys.get(row).is_some_and(|key| values.is_marked(key)),
                _ => true,
            }
    }

    /// Returns true if row `row` exists and the column's own presence marks it as present. The values of a dictionary are not looked at.
    pub(in crate::rows) fn is_marked(&self, row: usize) -> bool {
        match self.presence {
            PresenceIn::All => true,
            PresenceIn::Bits(bits) => bits.get(row),
            // SAFETY: COLUMNS: there is a byte for each row.
            PresenceIn::Bytes(first, stride) => unsafe { *first.offset(stride.wrapping_mul(row.cast_signed())) != 0 },
        }
    }

    /// Checks that the column fits an input of the type `qtype` in a run over `rows` rows: its type, its number of rows and, unless the type is
    /// optional, that no row is missing.
    ///
    /// # Errors
    /// The first reason found why the column does not fit.
    pub fn check(&self, qtype: &QType, rows: usize) -> Result<(), Misfit> {
        let bits = if let PresenceIn::Bits(bits) = self.presence { Some(bits.rows()) } else { None };
        if let Some(found) = self.rows.filter(|found| *found != rows).or(bits.filter(|found| *found < rows)) {
            return Err(Misfit::Rows { found, expected: rows });
        }
        let is_of = |value: &Value| value.is_of(qtype);
        match self.data {
            DataIn::Dictionary(_, values) if !values.lies_in_place() => return Err(Misfit::Dictionary),
            DataIn::Any(values) => {
                if let Some(row) = values[..rows].iter().position(|value| !is_of(value)) {
                    return Err(Misfit::Value { row, found: values[row].qtype() });
                }
            }
            DataIn::Shared(value) if !is_of(value) => return Err(Misfit::Type { found: value.qtype() }),
            DataIn::Fields(found, ..) if found != qtype => return Err(Misfit::Type { found: found.clone() }),
            DataIn::Output(at) => return Err(Misfit::Output { at }),
            DataIn::Shared(_) | DataIn::Fields(..) => {}
            DataIn::Structs(_) => return Err(Misfit::Structs),
            DataIn::Lists(offsets, elements) => {
                let QType::Array(_, scalar) = qtype else {
                    return Err(list_type(elements).map_or(Misfit::Lists, |found| Misfit::Type { found }));
                };
                // The elements are in a column of their own, with `size` rows.
                let Some(size) = elements.rows.filter(|_| elements.scalar().is_some()) else {
                    return Err(Misfit::Lists);
                };
                elements.check(&QType::Optional(*scalar), size)?;
                offsets.check(size)?;
            }
            _ => {
                let found = self.scalar().unwrap_or(Scalar::Unit);
                let fits = qtype.scalar().is_some_and(|scalar| scalar == found || scalar.representation() == found);
                if !fits {
                    return Err(Misfit::Type { found: QType::Scalar(found) });
                }
            }
        }
        if let DataIn::Dictionary(keys, values) = self.data {
            let size = values.rows.unwrap_or(0);
            values.check(&qtype.to_optional(), size)?;
            let is_wrong = |row: &usize| match self.presence {
                PresenceIn::Bits(bits) if !bits.get(*row) => false,
                _ => keys.get(*row).is_none_or(|key| key >= size),
            };
            if !self.knows_keys
                && !keys.are_less(size)
                && let Some(row) = (0..rows).find(is_wrong)
            {
                return Err(Misfit::Key { row });
            }
        }
        let may_be_missing = self.scalar().is_some() || matches!(self.data, DataIn::Lists(..));
        if !qtype.is_optional() && may_be_missing && !self.is_all_present() {
            let missing = match (self.presence, self.data) {
                (PresenceIn::Bits(bits), data) if !matches!(data, DataIn::Dictionary(..)) => {
                    bits.first_zero().filter(|row| *row < rows)
                }
                _ => (0..rows).find(|row| !self.is_present(*row)),
            };
            if let Some(row) = missing {
                return Err(Misfit::Missing { row });
            }
        }
        Ok(())
    }
}

impl<'a, T: ColumnValue> From<&'a [T]> for InputColumn<'a> {
    fn from(values: &'a [T]) -> Self {
        InputColumn::values(values)
    }
}

impl<'a, T: ColumnValue> From<&'a Vec<T>> for InputColumn<'a> {
    fn from(values: &'a Vec<T>) -> Self {
        InputColumn::values(values)
    }
}

impl<'a, T: ColumnValue> From<&'a [Optional<T>]> for InputColumn<'a> {
    fn from(values: &'a [Optional<T>]) -> Self {
        InputColumn::optionals(values)
    }
}

impl<'a> InputColumn<'a> {
    /// Makes a column of lists. The column `elements` has the elements of all lists, and `offsets` has the range of these elements for each row. An
    /// element of a list is missing if it is missing in `elements`. A missing row is refused, because an array cannot be missing.
    ///
    /// ```
    /// use cembra_engine::rows::InputColumn;
    ///
    /// let elements = InputColumn::values(&[1.0, 2.0, 3.0]);
    /// let lists = InputColumn::lists(&[0_i64, 2, 2, 3][..], &elements);
    /// assert_eq!(lists.rows(), Some(3));
    /// ```
    #[must_use]
    pub fn lists(offsets: impl Into<ListOffsets<'a>>, elements: &'a InputColumn<'a>) -> Self {
        InputColumn::of_lists(offsets.into(), elements)
    }

    /// Returns the first row whose list has another length in `other` than in this column. Both columns must have been checked, and have `rows` rows.
    /// `None` if there is no such row, or if one of the columns shares one list between all rows.
    pub(crate) fn first_of_another_size(&self, other: &InputColumn<'_>, rows: usize) -> Option<usize> {
        let ((a, _), (b, _)) = (self.as_lists()?, other.as_lists()?);
        let size = |offsets: &ListOffsets<'_>, row: usize| offsets.elements(row..row.saturating_add(1)).len();
        (0..rows).find(|row| size(a, *row) != size(b, *row))
    }

    /// Returns the first row whose list has a missing element; `None` if there is none. The column must have been checked, and have `rows` rows.
    pub(crate) fn first_lacking(&self, rows: usize) -> Option<usize> {
        let (offsets, elements) = self.as_lists().filter(|(_, elements)| !elements.is_all_present())?;
        let lacks = |row: &usize| !offsets.elements(*row..row.saturating_add(1)).all(|at| elements.is_present(at));
        (0..rows).find(lacks)
    }
}

/// Returns the array type of lists whose elements are in this column; `None` if they have no scalar type.
const fn list_type(elements: &InputColumn<'_>) -> Option<QType> {
    match elements.scalar() {
        Some(scalar) => Some(QType::Array(cembra_runtime::ArrayKind::Dense, scalar)),
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_backed_by_memory_of_each() {
        let bits = Bitmap::new(&[0b11], 0, 2).unwrap();
        let (numbers, units) = (InputColumn::values(&[1.0, 2.0]), InputColumn::units(2));
        let shared = Value::from(1.0);
        let strided = |stride, presence| {
            // SAFETY: COLUMNS: there are two numbers, 8 bytes apart, and the bytes of the first may be read twice.
            unsafe { InputColumn::strided(Scalar::Float64, [1.0_f64, 2.0].as_ptr().cast(), stride, presence, 2) }
        };
        let fixed = |size, elements| InputColumn::lists(ListOffsets::Fixed { size, rows: 2 }, elements);
        let backed = [
            numbers,
            units.present(bits),
            InputColumn::bits(bits),
            InputColumn::texts(&["a", "b"]),
            InputColumn::dictionary(Keys::U8(&[0, 1]), &units),
            strided(8, None),
            fixed(1, &numbers),
            fixed(0, &numbers).present(bits),
            InputColumn::lists(&[0_i64, 1, 2][..], &units),
        ];
        assert_eq!(backed.map(|column| column.is_backed()), [true; 9]);
        let of_units = fixed(1, &units);
        let counted = [
            units,
            InputColumn::shared(&shared),
            strided(0, None),
            strided(0, Some(0)),
            fixed(0, &numbers),
            of_units,
            fixed(1, &of_units),
        ];
        assert_eq!(counted.map(|column| column.is_backed()), [false; 7]);
    }
}
