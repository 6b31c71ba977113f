//! Copies rows of an input column to an array, or one row to a value, for callers that evaluate a model on values and not on columns in place.

#![deny(clippy::arithmetic_side_effects)]

use crate::rows::input::{DataIn, InputColumn, PresenceIn};
use crate::rows::strings::{Strings, column_bytes};
use crate::rows::structs::struct_value;
use crate::rows::{Bitmap, ListOffsets};
use cembra_runtime::{QType, Scalar, byte_length, has_room};
use cembra_value::{Array, ArrayBuilder, ArrayData, ScalarValue, StringViews, Value, Words};
use std::ops::Range;

/// Returns the bits of the rows `rows`, in words.
fn bits(bits: Bitmap<'_>, rows: &Range<usize>) -> Vec<u64> {
    rows.clone().step_by(64).map(|row| bits.word(row)).collect()
}

/// Makes words with one bit for each of `rows` rows.
fn bits_of(rows: usize, bit: impl Fn(usize) -> bool) -> Vec<u64> {
    let mut words = vec![0_u64; rows.div_ceil(64)];
    (0..rows).for_each(|row| words[row / 64] |= u64::from(bit(row)) << (row % 64));
    words
}

impl<'a> InputColumn<'a> {
    /// For a column of lists: the offsets of the lists, and the column of their elements. `None` for other columns.
    #[must_use]
    pub const fn as_lists(&self) -> Option<(&ListOffsets<'a>, &'a InputColumn<'a>)> {
        match &self.data {
            DataIn::Lists(offsets, elements) => Some((offsets, elements)),
            _ => None,
        }
    }

    /// For a column of structs: the columns that it consists of. `None` for other columns, and for structs with presence bits of their own, which
    /// models refuse.
    #[must_use]
    pub const fn as_structs(&self) -> Option<&'a [InputColumn<'a>]> {
        match (self.data, self.presence) {
            (DataIn::Structs(columns), PresenceIn::All) => Some(columns),
            _ => None,
        }
    }

    /// Returns the first of `rows` rows in which `mask` is present, but this column has a missing value. The column's values have the type `scalar`.
    /// `None` if there is no such row.
    #[must_use]
    pub fn first_missing_where(&self, mask: &InputColumn<'_>, scalar: Scalar, rows: usize) -> Option<usize> {
        let has = |column: &InputColumn<'_>, scalar, row| match column.data {
            DataIn::Any(_) | DataIn::Shared(_) => column.scalar_at(scalar, row).is_some(),
            _ => column.is_present(row),
        };
        let is_missing = |row: &usize| has(mask, Scalar::Unit, *row) && !has(self, scalar, *row);
        if self.is_all_present() { None } else { (0..rows).find(is_missing) }
    }

    /// The value that all rows of the column share; `None` if each row has its own value.
    #[must_use]
    pub const fn as_shared(&self) -> Option<&'a Value> {
        if let DataIn::Shared(value) = self.data { Some(value) } else { None }
    }

    /// True if the rows exist, and have bits of presence if the column has them.
    fn has_rows(&self, rows: &Range<usize>) -> bool {
        let has_bits = !matches!(self.presence, PresenceIn::Bits(bits) if bits.rows() < rows.end);
        rows.start <= rows.end && self.rows.is_none_or(|all| rows.end <= all) && has_bits
    }

    /// Returns the bytes that strings take in a copy of `rows`; for lists, the strings of their elements. A string that several rows share counts for
    /// each of them.
    #[must_use]
    pub fn string_bytes(&self, rows: Range<usize>) -> u64 {
        let sum = |all: u64, bytes: u64| all.saturating_add(bytes);
        match self.data {
            DataIn::Strings(_, strings) => strings.bytes(rows),
            DataIn::Dictionary(keys, values) => {
                let one = |key: usize| values.string_bytes(key..key.saturating_add(1));
                rows.filter_map(|row| keys.get(row)).map(one).fold(0, sum)
            }
            // A single row takes the shared value itself, and so does each row that is a list.
            DataIn::Shared(_) if rows.len() < 2 => 0,
            DataIn::Shared(value) => column_bytes(value).saturating_mul(rows.len() as u64),
            DataIn::Any(values) => {
                let scalars =
                    values.iter().skip(rows.start).take(rows.len()).filter(|value| value.as_scalar().is_some());
                scalars.map(column_bytes).fold(0, sum)
            }
            DataIn::Lists(offsets, elements) => elements.string_bytes(offsets.elements(rows)),
            DataIn::Structs(columns) => columns.iter().map(|column| column.string_bytes(rows.clone())).fold(0, sum),
            DataIn::Nothing | DataIn::Values(..) | DataIn::Bits(_) | DataIn::Fields(..) | DataIn::Output(_) => 0,
        }
    }

    /// Copies `rows` of a column of scalars to an array. `scalar` must be the column's type, or a type with the same layout. `None` if the rows do
    /// not exist, there is not enough memory, a string is longer than 2 GiB, or the column has another type, lists, or fields of Rust structs.
    #[must_use]
    pub fn array(&self, scalar: Scalar, rows: Range<usize>) -> Option<Array> {
        let is_of = |found: Scalar| found == scalar || found == scalar.representation();
        if !self.has_rows(&rows) || !self.scalar().is_none_or(is_of) {
            return None;
        }
        let len = rows.len();
        // A shared value has any number of rows, and no memory of the caller bounds it.
        let size = QType::Scalar(scalar).layout().size as usize;
        let copied = match (self.data, self.presence) {
            (DataIn::Nothing, PresenceIn::All) => 0,
            (DataIn::Nothing, _) => len.div_ceil(8),
            _ => byte_length(len, size)?,
        };
        if !has_room(copied) {
            return None;
        }
        // The offset of a row's value from that of the first copied row, in bytes; for columns with memory, or one value, for all rows.
        let far = |stride: isize, row: usize| stride.wrapping_mul(rows.start.wrapping_add(row).cast_signed());
        let data = match self.data {
            DataIn::Nothing => ArrayData::Units,
            DataIn::Values(Scalar::Boolean, first, stride) => {
                let bits = bits_of(len, |row| {
                    // SAFETY: COLUMNS: there is a byte for each row.
                    unsafe { *first.offset(far(stride, row)) != 0 }
                });
                ArrayData::Bits(bits.into())
            }
            DataIn::Values(_, first, stride) => {
                let is_dense = stride == size.cast_signed();
                let from = first.wrapping_offset(far(stride, 0));
                ArrayData::Numbers(
                    if is_dense && size == size_of::<u64>() && from.cast::<u64>().is_aligned() && len > 0 {
                        // SAFETY: COLUMNS: there is a value of 64 bits for each row, next to each other.
                        Words::from(unsafe { std::slice::from_raw_parts(from.cast::<u64>(), len) })
                    } else {
                        let mut words = Words::try_zeros(copied.div_ceil(8))?;
                        let to: *mut u8 = words.as_mut_ptr().cast();
                        let (count, bytes) = if is_dense { (1, copied) } else { (len, size) };
                        for row in 0..count {
                            // SAFETY: COLUMNS: there is a value of this size for each row, and room for as many in the words.
                            unsafe {
                                let from = first.offset(far(stride, row));
                                to.add(row.wrapping_mul(size)).copy_from_nonoverlapping(from, bytes);
                            }
                        }
                        words
                    },
                )
            }
            DataIn::Bits(all) => ArrayData::Bits(bits(all, &rows).into()),
            DataIn::Strings(_, Strings::Kept(strings)) => ArrayData::Strings(strings.slice(rows.clone())?),
            DataIn::Strings(_, strings) => {
                let mut views = StringViews::default();
                let mut push = |bytes: &[u8]| match scalar {
                    // SAFETY: STRING-VIEW: strings of a column of texts are UTF-8.
                    Scalar::Text => views.push_text(unsafe { std::str::from_utf8_unchecked(bytes) }),
                    _ => views.push(bytes),
                };
                let mut all = rows.clone().map(|row| strings.get(row).unwrap_or_default());
                if !all.all(&mut push) {
                    return None;
                }
                ArrayData::Strings(views)
            }
            DataIn::Dictionary(..) | DataIn::Any(_) | DataIn::Shared(_) => {
                let mut made = ArrayBuilder::new(scalar, len);
                for row in rows {
                    made.push(self.scalar_at(scalar, row).as_ref());
                }
                return Some(made.finish());
            }
            DataIn::Fields(..) | DataIn::Output(_) | DataIn::Lists(..) | DataIn::Structs(_) => return None,
        };
        let presence = match self.presence {
            PresenceIn::All => None,
            PresenceIn::Bits(all) => Some(bits(all, &rows)),
            PresenceIn::Bytes(..) => Some(bits_of(len, |row| self.is_present(rows.start.wrapping_add(row)))),
        };
        Array::from_parts(scalar, len, data, presence)
    }

    /// Returns the scalar of a row, which must exist; `None` if it is missing.
    fn scalar_at(&self, scalar: Scalar, row: usize) -> Option<ScalarValue> {
        if !self.is_marked(row) {
            return None;
        }
        match self.data {
            DataIn::Any(values) => values.get(row)?.as_scalar().cloned(),
            DataIn::Shared(value) => value.as_scalar().cloned(),
            // The values of a dictionary are not a dictionary.
            DataIn::Dictionary(keys, values) => {
                let key = keys.get(row)?;
                values.array(scalar, key..key.checked_add(1)?)?.get(0)
            }
            _ => self.array(scalar, row..row.checked_add(1)?)?.get(0),
        }
    }

    /// Returns the value of row `row`, of type `qtype`. `None` if the row does not exist, has another type, is missing although the type is not
    /// optional, or is a field of a Rust struct.
    #[must_use]
    pub fn value(&self, qtype: &QType, row: usize) -> Option<Value> {
        if !self.has_rows(&(row..row.checked_add(1)?)) {
            return None;
        }
        match (qtype, self.data) {
            (_, DataIn::Any(values)) => values.get(row).filter(|value| value.is_of(qtype)).cloned(),
            (_, DataIn::Shared(value)) => Some(value).filter(|value| value.is_of(qtype)).cloned(),
            (QType::Array(kind, scalar), DataIn::Lists(offsets, elements)) => {
                let array = elements.array(*scalar, offsets.elements(row..row.checked_add(1)?))?;
                Some(Value::Array(*kind, array.into()))
            }
            (QType::Optional(scalar), _) => Some(Value::optional(*scalar, self.scalar_at(*scalar, row))),
            (QType::Scalar(scalar), _) => self.scalar_at(*scalar, row).map(Value::Scalar),
            (QType::Tuple(_), DataIn::Structs(columns)) => {
                let mut columns = columns.iter();
                struct_value(qtype, true, &mut |of| {
                    // Columns of structs do not contain columns of structs.
                    columns.next().filter(|column| column.as_structs().is_none())?.value(of, row)
                })
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::{Keys, Misfit};
    use cembra_runtime::Optional;

    /// Columns nested to any depth: safe code can make them, but no run accepts them.
    #[test]
    fn columns_inside_of_each_other_need_no_stack() {
        let numbers = InputColumn::values(&[1.0, 2.0]);
        let keys = Keys::U8(&[0, 1]);
        let (mut dictionary, mut structs) = (InputColumn::dictionary(keys, &numbers), numbers);
        assert!(dictionary.check(&QType::FLOAT64, 2).is_ok());
        for _ in 0..200_000 {
            dictionary = InputColumn::dictionary(keys, Box::leak(Box::new(dictionary)));
            structs = InputColumn::structs(std::slice::from_ref(Box::leak(Box::new(structs))));
        }
        assert_eq!(dictionary.check(&QType::FLOAT64, 2), Err(Misfit::Dictionary));
        assert!(!dictionary.is_all_present() && dictionary.scalar().is_none() && structs.is_backed());
    }

    fn shown(column: InputColumn<'_>, scalar: Scalar, rows: Range<usize>) -> String {
        column.array(scalar, rows).unwrap().to_string()
    }

    #[test]
    fn rows_of_any_column_are_arrays() {
        let numbers: Vec<i32> = (0..200).collect();
        assert_eq!(shown(InputColumn::values(&numbers), Scalar::Int32, 3..6), "[3, 4, 5]");
        let bytes = [0b1010_1010_u8; 30];
        let bits = |offset| Bitmap::new(&bytes, offset, 200).unwrap();
        assert_eq!(shown(InputColumn::values(&numbers).present(bits(1)), Scalar::Int32, 3..6), "[NA, 4, NA]");
        assert_eq!(shown(InputColumn::bits(bits(2)), Scalar::Boolean, 64..66), "[false, true]");
        assert_eq!(shown(InputColumn::values(&[true, false, true]), Scalar::Boolean, 1..3), "[false, true]");
        let optionals: [Optional<f64>; 3] = [1.5.into(), Optional::missing(), 2.5.into()];
        assert_eq!(shown(InputColumn::optionals(&optionals), Scalar::Float64, 0..3), "[1.5, NA, 2.5]");
        let texts = InputColumn::texts(&["a", "a text that is longer", "c"]);
        assert_eq!(shown(texts, Scalar::Text, 1..3), "['a text that is longer', 'c']");
        let keys = InputColumn::dictionary(Keys::U8(&[2, 0, 0, 1]), &texts);
        assert_eq!(shown(keys, Scalar::Text, 0..2), "['c', 'a']");
        let any = [Value::from(Some(1_i64)), Value::from(None::<i64>)];
        assert_eq!(shown(InputColumn::any(&any), Scalar::Int64, 0..2), "[1, NA]");
        assert_eq!(shown(InputColumn::shared(&any[0]), Scalar::Int64, 5..8), "[1, 1, 1]");
        assert_eq!(shown(InputColumn::units(9).present(bits(0)), Scalar::Unit, 0..4), "[NA, unit, NA, unit]");
        assert_eq!(shown(InputColumn::values(&numbers), Scalar::Int32, 7..7), "[]");
    }

    /// Rows of a shared value take no memory, so a copy may not have room for all of them.
    #[test]
    fn rows_that_there_is_no_memory_for_are_none() {
        let numbers = [1.5_f64, 2.5];
        for rows in [1 << 61, (1 << 61) + 1, (1 << 62) + 2, isize::MAX as usize, 1 << 50] {
            let one = InputColumn::stepped(&numbers, 1, 0, rows).unwrap();
            assert!(one.array(Scalar::Float64, 0..rows).is_none(), "{rows}");
            assert_eq!(shown(one, Scalar::Float64, rows - 2..rows), "[2.5, 2.5]");
            let flags = InputColumn::stepped(&[true], 0, 0, rows).unwrap();
            assert!(flags.array(Scalar::Boolean, 0..rows).is_none(), "{rows}");
            let small = InputColumn::stepped(&[7_i32], 0, 0, rows).unwrap();
            assert!(small.array(Scalar::Int32, 0..rows).is_none(), "{rows}");
            let value = Value::from(3_i64);
            assert!(InputColumn::shared(&value).array(Scalar::Int64, 0..rows).is_none(), "{rows}");
            // One row of lists, which has all elements.
            let points = [0, rows as i64];
            let qtype = QType::Array(cembra_runtime::ArrayKind::Dense, Scalar::Float64);
            assert!(InputColumn::lists(&points[..], &one).value(&qtype, 0).is_none());
        }
    }

    #[test]
    fn rows_are_values() {
        let elements = InputColumn::values(&[1_i64, 2, 3]);
        let lists = InputColumn::lists(&[0_i32, 2, 2, 3][..], &elements);
        let qtype = QType::Array(cembra_runtime::ArrayKind::Dense, Scalar::Int64);
        let shown = |row| lists.value(&qtype, row).unwrap().to_string();
        assert_eq!([shown(0), shown(1), shown(2)], ["[1, 2]", "[]", "[3]"]);
        assert_eq!(elements.value(&QType::INT64, 1), Some(Value::from(2_i64)));
        assert_eq!(elements.value(&QType::Optional(Scalar::Int64), 1), Some(Value::from(Some(2_i64))));
    }

    #[test]
    fn rows_that_there_are_not_or_of_another_type_are_none() {
        let elements = InputColumn::values(&[1_i64, 2, 3]);
        assert!(elements.array(Scalar::Int64, 2..4).is_none() && elements.array(Scalar::Timestamp, 2..3).is_some());
        assert!(elements.array(Scalar::Int32, 0..1).is_none() && elements.array(Scalar::Text, 0..1).is_none());
        let few = elements.present(Bitmap::new(&[1], 0, 1).unwrap());
        assert!(few.array(Scalar::Int64, 0..1).is_some() && few.array(Scalar::Int64, 0..2).is_none());
        assert!(few.value(&QType::INT64, 1).is_none() && elements.value(&QType::INT64, 3).is_none());
        assert!(elements.value(&QType::FLOAT64, 0).is_none());
        let qtype = QType::Array(cembra_runtime::ArrayKind::Dense, Scalar::Int64);
        for points in [[0_i64, 4], [2, 1], [-1, 2]] {
            assert!(InputColumn::lists(&points[..], &elements).value(&qtype, 0).is_none(), "{points:?}");
        }
        let keys = InputColumn::dictionary(Keys::I8(&[3, -1, 1]), &elements);
        assert_eq!(keys.array(Scalar::Int64, 0..3).unwrap().to_string(), "[NA, NA, 2]");
        let fixed = InputColumn::lists(ListOffsets::Fixed { size: usize::MAX, rows: 3 }, &elements);
        assert!(fixed.value(&qtype, 2).is_none());
    }
}
