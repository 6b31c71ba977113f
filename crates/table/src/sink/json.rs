//! Sink that writes results as JSON: an array of objects, or an object on each line. A float always has a fraction or an exponent, so that
//! reading the JSON gives a float again.

use super::lines::{Encoder, Frame};
use crate::cells::{Lists, Scalars};
use crate::foreign;
use crate::json_text::{write_all, write_scalar};
use crate::{Form, Named};
use arrow_array::cast::AsArray;
use arrow_array::{Array, LargeListArray, RecordBatch};
use arrow_buffer::NullBuffer;
use cembra_runtime::QType;
use std::io::Write;

/// The most elements of a list that a table shows in full.
const MOST_SHOWN: usize = 100;

/// The number of elements that a table shows of a longer list.
const FIRST_SHOWN: usize = 10;

/// The text around the objects of a JSON array. Each object begins with a comma; the comma of the first object is replaced by the bracket.
pub(super) const ARRAY: Frame = Frame { first: Some(b'['), end: b"\n]\n", end_of_none: b"[]\n" };

/// An encoder that writes rows as JSON objects: one per line, or in an array.
pub(super) struct JsonEncoder {
    columns: Vec<Named>,
    /// The text before each value: its key and a colon.
    keys: Vec<String>,
    array: bool,
}

impl JsonEncoder {
    /// Makes an encoder for rows of `columns`. With `array`, the objects are elements of a JSON array; otherwise each object is on a line of its
    /// own.
    pub(super) fn new(columns: &[Named], array: bool) -> Self {
        let keys = columns.iter().map(|column| key(&column.name)).collect();
        JsonEncoder { columns: columns.to_vec(), keys, array }
    }
}

impl Encoder for JsonEncoder {
    fn encode(&self, rows: &RecordBatch) -> Vec<u8> {
        let mut cells: Vec<(&[u8], JsonValues<'_>)> = Vec::with_capacity(self.columns.len());
        let mut written = None;
        for ((column, array), key) in self.columns.iter().zip(rows.columns()).zip(&self.keys) {
            if column.form == Form::AsWritten {
                written = array.as_string_view_opt().map(|texts| (cells.len(), texts));
            }
            cells.extend(JsonValues::of_column(array.as_ref(), &column.form).map(|values| (key.as_bytes(), values)));
        }
        let mut out = Vec::new();
        for row in 0..rows.num_rows() {
            if self.array {
                out.extend_from_slice(b",\n");
            }
            let mut before = b'{';
            let from = written.map_or(0, |(at, texts)| {
                if texts.is_valid(row) && !texts.value(row).is_empty() {
                    out.push(before);
                    out.extend_from_slice(texts.value(row).as_bytes());
                    before = b',';
                }
                if texts.is_valid(row) { at } else { 0 }
            });
            for (key, values) in &cells[from..] {
                out.push(before);
                out.extend_from_slice(key);
                values.write(&mut out, row);
                before = b',';
            }
            out.extend_from_slice(if before == b'{' { b"{}" } else { b"}" });
            if !self.array {
                out.push(b'\n');
            }
        }
        out
    }
}

/// Access to the values of a column or field, for writing them as JSON.
pub(super) enum JsonValues<'a> {
    Scalars(Scalars<'a>),
    Arrays(Lists<'a>),
    /// The values are lists of structs.
    Structs(&'a LargeListArray, Box<JsonValues<'a>>),
    /// The values are tuples. A row that is null in `there` is written as `null`, whatever its fields are.
    Tuple {
        keys: Vec<String>,
        named: bool,
        fields: Vec<JsonValues<'a>>,
        there: Option<&'a NullBuffer>,
    },
    Foreign(&'a dyn Array),
}

impl<'a> JsonValues<'a> {
    fn of_column(array: &'a dyn Array, form: &Form) -> Option<JsonValues<'a>> {
        match form {
            Form::Values(qtype) => JsonValues::of(array, qtype),
            Form::Verbatim | Form::Foreign(_) => Some(JsonValues::Foreign(array)),
            // The members replace other columns and are not values of a column.
            Form::AsWritten => None,
        }
    }

    /// Access to the values of `array`; `None` if it does not have the Arrow type for `qtype`.
    pub(super) fn of(array: &'a dyn Array, qtype: &QType) -> Option<JsonValues<'a>> {
        // Tuple types nest only as deep as the parser allows, so this recursion is bounded.
        match qtype {
            QType::Tuple(_) if qtype.as_optional_struct().is_some() => {
                JsonValues::of(array, qtype.as_optional_struct()?)
            }
            QType::Tuple(_) if qtype.element().is_some() => {
                let list = array.as_list_opt::<i64>()?;
                Some(JsonValues::Structs(list, JsonValues::of(list.values().as_ref(), qtype.element()?)?.into()))
            }
            QType::Tuple(types) => {
                let found = array.as_struct_opt()?;
                let parts = found.columns().iter().zip(types.iter());
                let fields =
                    parts.map(|(part, qtype)| JsonValues::of(part.as_ref(), qtype)).collect::<Option<Vec<_>>>()?;
                let keys = types.names().map(|names| names.iter().map(|name| key(name)).collect());
                let named = keys.is_some();
                Some(JsonValues::Tuple { keys: keys.unwrap_or_default(), named, fields, there: found.nulls() })
            }
            QType::Array(_, scalar) => Some(JsonValues::Arrays(Lists::of(array, *scalar)?)),
            _ => Some(JsonValues::Scalars(Scalars::of(array, qtype.scalar()?)?)),
        }
    }

    /// Appends the column's value in `row` to `out` as JSON.
    pub(super) fn write(&self, out: &mut Vec<u8>, row: usize) {
        match self {
            JsonValues::Arrays(lists) => match lists.at(row) {
                Some(elements) => write_all(out, b"[]", elements, |out, element| write_scalar(out, &element)),
                None => out.extend_from_slice(b"null"),
            },
            JsonValues::Structs(list, _) if list.is_null(row) => out.extend_from_slice(b"null"),
            JsonValues::Structs(list, element) => {
                let ends = list.offsets();
                let at = |row: usize| usize::try_from(ends[row]).unwrap_or(0);
                write_all(out, b"[]", at(row)..at(row + 1), |out, place| element.write(out, place));
            }
            JsonValues::Tuple { there: Some(there), .. } if there.is_null(row) => out.extend_from_slice(b"null"),
            JsonValues::Tuple { keys, named, fields, .. } => {
                let brackets = if *named { b"{}" } else { b"[]" };
                write_all(out, brackets, fields.iter().enumerate(), |out, (index, field)| {
                    out.extend_from_slice(keys.get(index).map_or(b"", |key| key.as_bytes()));
                    field.write(out, row);
                });
            }
            JsonValues::Foreign(array) => foreign::write_json(out, *array, row),
            JsonValues::Scalars(scalars) => write_scalar(out, &scalars.at(row)),
        }
    }

    /// Appends the value in `row` as JSON for a table on a terminal: only the first elements of a long list, and its length.
    pub(super) fn show(&self, out: &mut Vec<u8>, row: usize) {
        let from = out.len();
        let len = match self {
            JsonValues::Arrays(lists) => {
                let elements = lists.at(row);
                let len = elements.as_ref().map_or(0, ExactSizeIterator::len);
                if len > MOST_SHOWN {
                    let first = elements.into_iter().flatten().take(FIRST_SHOWN);
                    write_all(out, b"[]", first, |out, element| write_scalar(out, &element));
                }
                len
            }
            JsonValues::Structs(list, element) if list.is_valid(row) => {
                let len = usize::try_from(list.value_length(row)).unwrap_or(0);
                let first = usize::try_from(list.offsets()[row]).unwrap_or(0);
                if len > MOST_SHOWN {
                    write_all(out, b"[]", first..first + FIRST_SHOWN, |out, place| element.write(out, place));
                }
                len
            }
            _ => 0,
        };
        if out.len() == from {
            return self.write(out, row);
        }
        out.pop();
        let _never_fails = write!(out, ", ... ({len} elements)]");
    }
}

fn key(name: &str) -> String {
    format!("{}:", serde_json::Value::from(name))
}
