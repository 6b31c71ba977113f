//! Output columns under construction, to which arrays, lists and values are appended. Models with arrays compute their
//! outputs this way, one block of rows after the other.

#![deny(clippy::arithmetic_side_effects)]

use crate::rows::output::{DataOut, OutputColumn};
use crate::rows::strings::StringBuffers;
use crate::rows::structs::each_member;
use cembra_array::struct_columns;
use cembra_runtime::{QType, Scalar, word_length};
use cembra_value::{Array, ArrayData, Value, Words};
use std::ops::DerefMut;

/// A bitmap to which bits are appended.
#[derive(Debug, Default)]
struct Bits<L = Vec<u64>> {
    words: L,
    len: usize,
}

impl<L: DerefMut<Target = [u64]> + Extend<u64>> Bits<L> {
    /// Appends the first `count` bits of `words`, or ones if there are no words.
    fn extend(&mut self, words: Option<&[u64]>, count: usize) {
        let shift = self.len % 64;
        for at in 0..count.div_ceil(64) {
            let left = count.saturating_sub(at.saturating_mul(64)).min(64);
            let mask = if left == 64 { u64::MAX } else { !(u64::MAX << left) };
            let word = words.map_or(u64::MAX, |words| words[at]) & mask;
            match self.words.last_mut() {
                Some(last) if shift > 0 => {
                    *last |= word << shift;
                    if shift.saturating_add(left) > 64 {
                        self.words.extend([word >> (64_usize.wrapping_sub(shift))]);
                    }
                }
                _ => self.words.extend([word]),
            }
        }
        self.len = self.len.saturating_add(count);
    }
}

/// A column of scalars to which elements are appended.
#[derive(Debug)]
struct Scalars {
    scalar: Scalar,
    len: usize,
    data: DataOut,
    /// The bits of presence; `None` as long as all elements are present.
    presence: Option<Bits>,
}

impl Scalars {
    fn new(scalar: Scalar, room: usize) -> Self {
        let size = QType::Scalar(scalar).layout().size as usize;
        let data = match scalar {
            Scalar::Unit => DataOut::Nothing,
            Scalar::Boolean => DataOut::Bits(Words::with_capacity(room.div_ceil(64))),
            _ if scalar.is_string() => DataOut::Strings(StringBuffers::default()),
            _ => DataOut::Numbers(Words::with_capacity(word_length(room, size).unwrap_or(0))),
        };
        Scalars { scalar, len: 0, data, presence: None }
    }

    /// Appends the elements of an array of the same type. An array of another type is ignored.
    fn extend(&mut self, array: &Array) {
        if array.scalar().representation() != self.scalar.representation() {
            return;
        }
        let len = array.len();
        match (&mut self.data, array.data()) {
            (DataOut::Numbers(to), ArrayData::Numbers(from)) => add_numbers(to, self.scalar, self.len, from, len),
            (DataOut::Bits(to), ArrayData::Bits(from)) => add_bits(to, self.len, from, len),
            (DataOut::Strings(to), ArrayData::Strings(from)) => {
                // Strings of arrays are not longer than those of columns may be.
                (0..len).for_each(|at| _ = to.push(from.get(at).unwrap_or_default()));
            }
            _ => {}
        }
        self.grow(len, array.presence());
    }

    /// Appends the rows of another column of the same type. The bytes of strings are not copied.
    fn append(&mut self, more: Scalars) {
        match (&mut self.data, more.data) {
            (DataOut::Numbers(to), DataOut::Numbers(from)) => {
                add_numbers(to, self.scalar, self.len, &from, more.len);
            }
            (DataOut::Bits(to), DataOut::Bits(from)) => add_bits(to, self.len, &from, more.len),
            (DataOut::Strings(to), DataOut::Strings(from)) => to.append(from),
            _ => {}
        }
        self.grow(more.len, more.presence.as_ref().map(|bits| &bits.words[..]));
    }

    /// Counts `len` new elements and appends their bits of presence; all are present if there are no bits.
    fn grow(&mut self, len: usize, presence: Option<&[u64]>) {
        if presence.is_some() && self.presence.is_none() {
            let mut all: Bits = Bits::default();
            all.extend(None, self.len);
            self.presence = Some(all);
        }
        if let Some(all) = &mut self.presence {
            all.extend(presence, len);
        }
        self.len = self.len.saturating_add(len);
    }

    /// Appends an element with the value, or a missing one if the value is not a scalar.
    fn push(&mut self, value: &Value) {
        self.extend(&Array::from_scalars(self.scalar, [value.as_scalar().cloned()]));
    }

    fn finish(self, qtype: QType) -> OutputColumn {
        OutputColumn { qtype, rows: self.len, data: self.data, presence: self.presence.map(|bits| bits.words) }
    }
}

/// Appends `len` numbers of `from` to words that hold `before` numbers.
fn add_numbers(to: &mut Words, scalar: Scalar, before: usize, from: &[u64], len: usize) {
    let size = QType::Scalar(scalar).layout().size as usize;
    if size == 8 || before.is_multiple_of(2) {
        to.extend_from_slice(&from[..len.saturating_mul(size).div_ceil(8)]);
        return;
    }
    // The last word is half full.
    for at in 0..len {
        let bits = if at.is_multiple_of(2) { from[at / 2] & 0xFFFF_FFFF } else { from[at / 2] >> 32 };
        match to.last_mut() {
            Some(last) if at.is_multiple_of(2) => *last = *last & 0xFFFF_FFFF | bits << 32,
            _ => to.push(bits),
        }
    }
}

/// Appends `len` bits of `from` to words that hold `before` bits.
fn add_bits(to: &mut Words, before: usize, from: &[u64], len: usize) {
    let mut bits = Bits { words: std::mem::take(to), len: before };
    bits.extend(Some(from), len);
    *to = bits.words;
}

/// Makes an empty list with room for `count` elements, or without room if there is not enough memory.
fn room<T>(count: usize) -> Vec<T> {
    let mut list = Vec::new();
    // Memory that is not available now is requested again when it is needed.
    let _ = list.try_reserve_exact(count);
    list
}

/// An output column that is being built: rows are appended to it.
#[derive(Debug)]
pub struct ColumnBuilder {
    qtype: QType,
    data: ColumnBuilderData,
    /// The indices of the missing rows, if the column has lists, structs or values of other types. A column of scalars
    /// has presence bits instead.
    missing: Vec<usize>,
}

/// The rows of a growing column: scalars, lists (as offsets and elements), structs, or values of other types.
#[derive(Debug)]
enum ColumnBuilderData {
    Scalars(Scalars),
    Lists(Vec<i64>, Scalars),
    /// A growing column for each column of the structs.
    Structs(Vec<ColumnBuilder>),
    Any(Vec<Value>),
}

impl ColumnBuilder {
    /// Makes a column of type `qtype` without rows, with memory for `rows` rows, and for `elements` elements if it has lists.
    #[must_use]
    pub fn new(qtype: &QType, rows: usize, elements: usize) -> Self {
        let data = match qtype {
            QType::Scalar(scalar) | QType::Optional(scalar) => ColumnBuilderData::Scalars(Scalars::new(*scalar, rows)),
            QType::Array(_, scalar) => {
                let mut offsets = room(rows.saturating_add(1));
                offsets.push(0);
                ColumnBuilderData::Lists(offsets, Scalars::new(*scalar, elements))
            }
            _ => match struct_columns(qtype).filter(|columns| !columns.is_empty()) {
                Some(columns) => ColumnBuilderData::Structs(
                    columns.iter().map(|of| ColumnBuilder::new(&of.qtype, rows, elements)).collect(),
                ),
                None => ColumnBuilderData::Any(room(rows)),
            },
        };
        ColumnBuilder { qtype: qtype.clone(), data, missing: Vec::new() }
    }

    /// The number of rows that the column has so far.
    #[must_use]
    pub fn rows(&self) -> usize {
        match &self.data {
            ColumnBuilderData::Scalars(scalars) => scalars.len,
            ColumnBuilderData::Lists(offsets, _) => offsets.len().saturating_sub(1),
            // Structs have no columns of structs.
            ColumnBuilderData::Structs(columns) => columns.first().map_or(0, ColumnBuilder::rows),
            ColumnBuilderData::Any(values) => values.len(),
        }
    }

    /// The columns that a column of structs consists of, in the order of [`struct_columns`]; for other types the column itself.
    pub fn columns_mut(&mut self) -> &mut [ColumnBuilder] {
        match self.data {
            ColumnBuilderData::Structs(ref mut columns) => columns,
            _ => std::slice::from_mut(self),
        }
    }

    /// Appends one row for each element of `array`. Does nothing unless this is a column of scalars of the array's type.
    pub fn extend(&mut self, array: &Array) {
        if let ColumnBuilderData::Scalars(scalars) = &mut self.data {
            scalars.extend(array);
        }
    }

    /// Appends rows of lists: the list of the new row `n`, counted from 0, has the elements from `points[n]` up to `points[n + 1]`. Does nothing
    /// unless the points ascend from 0 to the number of elements.
    pub fn extend_lists(&mut self, points: &[i64], elements: &Array) {
        let ends = points
            .first()
            .zip(points.last())
            .is_some_and(|(first, last)| (*first, *last) == (0, elements.len() as i64));
        if !ends || !points.is_sorted() {
            return;
        }
        if let ColumnBuilderData::Lists(offsets, all) = &mut self.data {
            let before = all.len as i64;
            offsets.extend(points.iter().skip(1).map(|point| before.saturating_add(*point)));
            all.extend(elements);
        }
    }

    /// Appends a row with a value of the column's type; `None` appends a missing row.
    pub fn push(&mut self, value: Option<&Value>) {
        let row = self.rows();
        match (&mut self.data, value) {
            (ColumnBuilderData::Scalars(scalars), value) => scalars.push(value.unwrap_or(&Value::Nothing)),
            (ColumnBuilderData::Lists(offsets, all), value) => {
                if let Some(Value::Array(_, array)) = value {
                    all.extend(array);
                } else {
                    self.missing.push(row);
                }
                offsets.push(all.len as i64);
            }
            (ColumnBuilderData::Structs(columns), Some(value)) => {
                let mut columns = columns.iter_mut();
                each_member(value, &mut |member| {
                    columns.next().into_iter().for_each(|column| column.push(Some(member)));
                });
            }
            (ColumnBuilderData::Structs(columns), None) => {
                self.missing.push(row);
                columns.iter_mut().for_each(|column| column.push(None));
            }
            (ColumnBuilderData::Any(values), Some(value)) => values.push(value.clone()),
            (ColumnBuilderData::Any(values), None) => {
                self.missing.push(row);
                values.push(Value::Nothing);
            }
        }
    }

    /// Appends the rows of `other`. A column of another type is ignored.
    pub fn append(&mut self, other: ColumnBuilder) {
        if self.qtype != other.qtype {
            return;
        }
        let before = self.rows();
        match (&mut self.data, other.data) {
            (ColumnBuilderData::Scalars(all), ColumnBuilderData::Scalars(more)) => all.append(more),
            (ColumnBuilderData::Lists(offsets, all), ColumnBuilderData::Lists(points, more)) => {
                let elements = all.len as i64;
                offsets.extend(points.iter().skip(1).map(|point| elements.saturating_add(*point)));
                all.append(more);
            }
            (ColumnBuilderData::Structs(columns), ColumnBuilderData::Structs(more)) => {
                columns.iter_mut().zip(more).for_each(|(column, more)| column.append(more));
            }
            (ColumnBuilderData::Any(values), ColumnBuilderData::Any(more)) => values.extend(more),
            _ => return,
        }
        self.missing.extend(other.missing.iter().map(|row| before.saturating_add(*row)));
    }

    /// Converts the growing column to a finished output column.
    #[must_use]
    pub fn finish(self) -> OutputColumn {
        let rows = self.rows();
        let mut presence = None;
        if !self.missing.is_empty() {
            let mut bits: Bits = Bits::default();
            bits.extend(None, rows);
            self.missing.iter().for_each(|row| bits.words[row / 64] &= !(1 << (row % 64)));
            presence = Some(bits.words);
        }
        match self.data {
            ColumnBuilderData::Scalars(scalars) => {
                // A type that is not optional has missing rows only where rows failed.
                let fails = scalars.presence.as_ref().is_some_and(|bits| !is_full(bits));
                match (self.qtype.is_optional(), fails) {
                    (false, true) => scalars.finish(self.qtype.to_optional()),
                    (false, false) => OutputColumn { presence: None, ..scalars.finish(self.qtype) },
                    (true, _) => scalars.finish(self.qtype),
                }
            }
            ColumnBuilderData::Lists(offsets, elements) => {
                let qtype = QType::Optional(elements.scalar);
                let elements = Box::new(elements.finish(qtype));
                OutputColumn { qtype: self.qtype, rows, data: DataOut::Lists(offsets, elements), presence }
            }
            ColumnBuilderData::Structs(columns) => {
                let columns = columns.into_iter().map(ColumnBuilder::finish).collect();
                OutputColumn { qtype: self.qtype, rows, data: DataOut::Structs(columns), presence }
            }
            ColumnBuilderData::Any(values) => {
                OutputColumn { qtype: self.qtype, rows, data: DataOut::Any(values), presence }
            }
        }
    }
}

impl OutputColumn {
    /// Converts a column of structs, or of lists of structs, in which each row is stored as one value, to a column that consists of
    /// [columns](OutputColumn::structs). Models without arrays make such values, which are copied. Any other column is returned as it is.
    #[must_use]
    pub fn with_structs(self) -> OutputColumn {
        let DataOut::Any(values) = &self.data else { return self };
        let mut columns = ColumnBuilder::new(&self.qtype, self.rows, 0);
        if !matches!(columns.data, ColumnBuilderData::Structs(_)) {
            return self;
        }
        for (row, value) in values.iter().enumerate() {
            columns.push(Some(value).filter(|_| self.is_present(row)));
        }
        columns.finish()
    }
}

/// True if all bits are ones.
fn is_full(bits: &Bits) -> bool {
    let (whole, left) = (bits.len / 64, bits.len % 64);
    bits.words[..whole].iter().all(|word| *word == u64::MAX)
        && (left == 0 || bits.words[whole].trailing_ones() as usize >= left)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cembra_runtime::ArrayKind;
    use cembra_value::ScalarValue;

    fn element(scalar: Scalar, at: usize) -> Option<ScalarValue> {
        (at % 5 != 2).then(|| match scalar {
            Scalar::Text => ScalarValue::Text("ab".repeat(at % 11).into()),
            Scalar::Bytes => ScalarValue::Bytes(vec![7; at % 19].into()),
            Scalar::Boolean => ScalarValue::Boolean(at.is_multiple_of(3)),
            _ => ScalarValue::from_bits(scalar, at as u64).unwrap_or(ScalarValue::Unit),
        })
    }

    /// Arrays of all lengths are appended, so that an appended array begins at each bit of a word.
    #[test]
    fn columns_grow_by_pieces_of_any_length() {
        for scalar in Scalar::ALL {
            for lengths in [&[3, 64, 1, 0, 127, 5][..], &[1, 1, 1, 63, 2], &[200, 7]] {
                let mut all = ColumnBuilder::new(&QType::Optional(scalar), 0, 0);
                let (mut parts, mut at) = (ColumnBuilder::new(&QType::Optional(scalar), 0, 0), 0);
                for (number, length) in lengths.iter().enumerate() {
                    // Some pieces have no missing elements.
                    let full = number % 2 == 0;
                    let values = (at..at + length).map(|at| element(scalar, if full { 5 * at } else { at }));
                    let piece = Array::from_scalars(scalar, values);
                    all.extend(&piece);
                    let mut part = ColumnBuilder::new(&QType::Optional(scalar), 0, 0);
                    part.extend(&piece);
                    parts.append(part);
                    at += length;
                }
                let (all, parts) = (all.finish(), parts.finish());
                assert_eq!((all.rows(), parts.rows()), (at, at));
                let mut row = 0;
                for (number, length) in lengths.iter().enumerate() {
                    for _ in 0..*length {
                        let value = element(scalar, if number % 2 == 0 { 5 * row } else { row });
                        let expected = Value::optional(scalar, value);
                        assert_eq!(all.value(row), Some(expected.clone()), "{scalar} {lengths:?} {row}");
                        assert_eq!(parts.value(row), Some(expected), "{scalar} {lengths:?} {row}");
                        row += 1;
                    }
                }
            }
        }
    }

    #[test]
    fn lists_grow_by_rows_and_by_many() {
        let qtype = QType::Array(ArrayKind::Dense, Scalar::Int32);
        let array = |values: &[i32]| {
            Array::from_scalars(Scalar::Int32, values.iter().map(|value| Some(ScalarValue::Int32(*value))))
        };
        let mut column = ColumnBuilder::new(&qtype, 0, 0);
        column.extend_lists(&[0, 1, 1], &array(&[5]));
        column.push(Some(&Value::Array(ArrayKind::Dense, array(&[6, 7]).into())));
        column.push(None);
        let mut more = ColumnBuilder::new(&qtype, 0, 0);
        more.push(None);
        more.extend_lists(&[0, 2], &array(&[8, 9]));
        column.append(more);
        let made = column.finish();
        let (offsets, elements) = made.lists().unwrap();
        assert_eq!((offsets, elements.values::<i32>()), (&[0, 1, 1, 3, 3, 3, 5][..], Some(&[5, 6, 7, 8, 9][..])));
        assert_eq!(made.presence(), Some(&[0b10_0111][..]));
        assert_eq!(made.value(2).unwrap().to_string(), "[6, 7]");
        assert_eq!((made.value(3), made.value(6)), (Some(Value::Nothing), None));
    }

    #[test]
    fn rows_that_are_not_among_the_elements_are_not_added() {
        let two = Array::from_scalars(Scalar::Int32, [Some(ScalarValue::Int32(1)), Some(ScalarValue::Int32(2))]);
        let mut column = ColumnBuilder::new(&QType::Array(ArrayKind::Dense, Scalar::Int32), usize::MAX, usize::MAX);
        for points in [&[][..], &[1, 2], &[0, 3], &[0, i64::MAX], &[0, 3, 2], &[0, -1, 2], &[0, 1]] {
            column.extend_lists(points, &two);
            assert_eq!(column.rows(), 0, "{points:?}");
        }
        let mut numbers = ColumnBuilder::new(&QType::INT64, 0, 0);
        numbers.push(Some(&Value::from(3_i64)));
        let mut others = ColumnBuilder::new(&QType::INT32, 0, 0);
        others.append(numbers);
        assert_eq!(others.rows(), 0);
        column.extend_lists(&[0, 1, 2], &two);
        assert_eq!(column.finish().value(1).unwrap().to_string(), "[2]");
    }

    #[test]
    fn rows_that_failed_make_a_column_optional() {
        let mut column = ColumnBuilder::new(&QType::INT64, 0, 0);
        column.push(Some(&Value::from(3_i64)));
        assert_eq!(column.rows(), 1);
        column.push(None);
        let made = column.finish();
        assert_eq!((made.qtype(), made.presence()), (&QType::Optional(Scalar::Int64), Some(&[0b01][..])));
        let mut column = ColumnBuilder::new(&QType::INT64, 0, 0);
        column.push(Some(&Value::from(3_i64)));
        assert_eq!((column.finish().qtype(), 1), (&QType::INT64, 1));
    }
}
