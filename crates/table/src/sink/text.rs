//! Sink that writes results as CSV. A present text that looks like a missing value (an empty text, or the null text of the options) is read back as
//! missing. But if the options have a null text, an empty text is written as `""` and read back as an empty text. An array is written as JSON in
//! one field.

use super::json::JsonValues;
use super::lines::Encoder;
use crate::cells::Scalars;
use crate::{Form, Named};
use crate::{foreign, scalar};
use arrow_array::cast::AsArray;
use arrow_array::{Array, RecordBatch, StringViewArray};
use arrow_buffer::NullBuffer;
use arrow_schema::DataType;
use cembra_runtime::{QType, Scalar};
use cembra_value::ValueRef;

/// About the bytes of a field, for the initial size of a buffer.
const FIELD_BYTES: usize = 12;

/// A column of a CSV or of a table on a terminal. A scalar or an optional has one column. A tuple `p` has one column per field: `p.0`, `p.1` and so
/// on, or `p.x` for a field named `x`.
#[derive(Clone, Debug)]
pub(super) struct FlatColumn {
    /// The name of the column in the header.
    pub(super) name: String,
    /// The type of the column's values; `None` if the values are not scalars that models have.
    pub(super) scalar: Option<Scalar>,
}

/// The flat columns of `columns`: tuples are split into a column per field.
pub(super) fn flat_columns(columns: &[Named]) -> Vec<FlatColumn> {
    // Tuple types nest only as deep as the parser allows, so this recursion is bounded.
    fn push(name: &str, qtype: &QType, flat: &mut Vec<FlatColumn>) {
        match qtype {
            QType::Tuple(_) if let Some(of) = qtype.as_optional_struct() => push(name, of, flat),
            QType::Tuple(fields) if qtype.as_tuple().is_some() => {
                for (index, field) in fields.iter().enumerate() {
                    push(&format!("{name}.{}", fields.label(index)), field, flat);
                }
            }
            _ => flat.push(FlatColumn { name: name.to_owned(), scalar: qtype.scalar() }),
        }
    }
    let mut flat = Vec::with_capacity(columns.len());
    for column in columns {
        match &column.form {
            Form::Values(qtype) => push(&column.name, qtype, &mut flat),
            Form::Verbatim | Form::Foreign(_) => {
                flat.push(FlatColumn { name: column.name.clone(), scalar: None });
            }
            // Only JSON results have such a column.
            Form::AsWritten => {}
        }
    }
    flat
}

/// Access to the values that a flat column (a column of the CSV or the table on a terminal) has in a batch.
pub(super) enum Flat<'a> {
    /// The column has scalars of a type that models have.
    Scalars(Scalars<'a>),
    /// The column has arrays or lists, which are written as JSON.
    Json(&'a dyn Array, JsonValues<'a>),
    /// The column has texts exactly as the data spell them.
    Verbatim(&'a StringViewArray),
    /// The column has values of an Arrow type that models do not have.
    Foreign(&'a dyn Array),
    /// The column is a field of structs. The payload is the validity of the structs, and the access to the field's values; a value is missing where
    /// its struct is null.
    Part(&'a NullBuffer, Box<Flat<'a>>),
}

/// Access to the values of a batch's flat columns, in the order of [`flat_columns`].
pub(super) fn flat<'a>(columns: &[Named], rows: &'a RecordBatch) -> Vec<Flat<'a>> {
    // Tuple types nest only as deep as the parser allows, so this recursion is bounded.
    fn push<'a>(array: &'a dyn Array, qtype: &QType, flat: &mut Vec<Flat<'a>>) {
        let qtype = qtype.as_optional_struct().unwrap_or(qtype);
        match (qtype, array.as_struct_opt()) {
            (QType::Tuple(fields), Some(found)) if qtype.as_tuple().is_some() => {
                let first = flat.len();
                found.columns().iter().zip(fields.iter()).for_each(|(part, qtype)| push(part.as_ref(), qtype, flat));
                if let Some(there) = found.nulls() {
                    let parts = flat.split_off(first);
                    flat.extend(parts.into_iter().map(|part| Flat::Part(there, Box::new(part))));
                }
            }
            (QType::Array(..) | QType::Tuple(_), _) => {
                flat.extend(JsonValues::of(array, qtype).map(|values| Flat::Json(array, values)));
            }
            _ => flat.extend(qtype.scalar().and_then(|scalar| Scalars::of(array, scalar)).map(Flat::Scalars)),
        }
    }
    let mut all = Vec::new();
    for (column, array) in columns.iter().zip(rows.columns()) {
        match &column.form {
            Form::Values(qtype) => push(array.as_ref(), qtype, &mut all),
            Form::Verbatim => all.extend(array.as_string_view_opt().map(Flat::Verbatim)),
            Form::Foreign(_) => all.push(Flat::Foreign(array.as_ref())),
            Form::AsWritten => {}
        }
    }
    all
}

impl Flat<'_> {
    /// Appends the value in `row` as text; returns false if the value is missing.
    #[inline]
    pub(super) fn write(&self, out: &mut Vec<u8>, row: usize) -> bool {
        match self {
            Flat::Scalars(scalars) => {
                let value = scalars.at(row);
                scalar::write(out, &value);
                value != ValueRef::Missing
            }
            Flat::Json(array, values) => {
                let present = array.is_valid(row);
                if present {
                    values.write(out, row);
                }
                present
            }
            Flat::Verbatim(texts) => {
                if texts.is_valid(row) {
                    out.extend_from_slice(texts.value(row).as_bytes());
                }
                true
            }
            Flat::Foreign(array) => foreign::write_text(out, *array, row),
            Flat::Part(there, part) => there.is_valid(row) && part.write(out, row),
        }
    }

    /// Appends the value in `row` as text for a table on a terminal, which shows only the first elements of a long list. Returns false if the value
    /// is missing.
    pub(super) fn show(&self, out: &mut Vec<u8>, row: usize) -> bool {
        match self {
            Flat::Json(array, values) if array.is_valid(row) => {
                values.show(out, row);
                true
            }
            Flat::Part(there, part) => there.is_valid(row) && part.show(out, row),
            _ => self.write(out, row),
        }
    }

    /// Returns true if the text of some value of the column may have a decimal point.
    pub(super) fn has_point(&self) -> bool {
        match self {
            Flat::Scalars(scalars) => scalars.scalar.is_float(),
            Flat::Foreign(array) => match array.data_type() {
                DataType::Dictionary(_, values) => values.is_numeric(),
                of => of.is_numeric(),
            },
            Flat::Part(_, part) => part.has_point(),
            Flat::Json(..) | Flat::Verbatim(_) => false,
        }
    }

    /// Returns true if the text of a value may need quotes.
    fn may_need_quotes(&self) -> bool {
        match self {
            Flat::Scalars(scalars) => scalars.scalar == Scalar::Text,
            Flat::Json(..) | Flat::Verbatim(_) | Flat::Foreign(..) => true,
            Flat::Part(_, part) => part.may_need_quotes(),
        }
    }
}

/// An encoder that writes rows as records of CSV.
pub(super) struct CsvEncoder {
    columns: Vec<Named>,
    delimiter: u8,
    null: Option<String>,
    decimal_comma: bool,
}

impl CsvEncoder {
    /// Makes an encoder for rows of `columns`, with `delimiter` between fields, `null` for missing values and, if `decimal_comma`, a
    /// decimal comma in numbers.
    pub(super) fn new(columns: &[Named], delimiter: u8, null: Option<&str>, decimal_comma: bool) -> Self {
        let null = null.filter(|null| !null.is_empty()).map(str::to_owned);
        CsvEncoder { columns: columns.to_vec(), delimiter, null, decimal_comma }
    }

    /// The header of the CSV: a record with the names of the columns.
    pub(super) fn header(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let flat = flat_columns(&self.columns);
        for (at, column) in flat.iter().enumerate() {
            if at > 0 {
                bytes.push(self.delimiter);
            }
            let start = bytes.len();
            bytes.extend_from_slice(column.name.as_bytes());
            quote(&mut bytes, start, self.delimiter, flat.len() == 1, flat.len() == 1);
        }
        bytes.push(b'\n');
        bytes
    }
}

impl Encoder for CsvEncoder {
    fn encode(&self, rows: &RecordBatch) -> Vec<u8> {
        let flat = flat(&self.columns, rows);
        let alone = flat.len() == 1;
        let null = self.null.as_deref();
        let with_comma: Vec<bool> = flat.iter().map(|column| self.decimal_comma && column.has_point()).collect();
        let quoting: Vec<bool> = flat.iter().map(Flat::may_need_quotes).collect();
        let mut out = Vec::with_capacity(rows.num_rows() * flat.len() * FIELD_BYTES);
        for row in 0..rows.num_rows() {
            for (at, column) in flat.iter().enumerate() {
                if at > 0 {
                    out.push(self.delimiter);
                }
                let start = out.len();
                let present = column.write(&mut out, row);
                if with_comma[at] {
                    put_comma(&mut out[start..]);
                }
                if !present {
                    out.extend_from_slice(null.unwrap_or_default().as_bytes());
                }
                // For verbatim fields, only the written text is known.
                let empty_text = present && null.is_some() && !matches!(column, Flat::Verbatim(_));
                // A number needs quotes only if its field is empty and the only one in the row.
                if quoting[at] || !present || self.delimiter != b',' {
                    quote(&mut out, start, self.delimiter, alone, alone || empty_text);
                }
            }
            out.push(b'\n');
        }
        out
    }
}

/// Replaces a number's decimal point by a comma.
pub(super) fn put_comma(number: &mut [u8]) {
    if let Some(point) = number.iter_mut().find(|byte| **byte == b'.') {
        *point = b',';
    }
}

/// Puts the field that starts at `start` into quotes if it needs them, or if it is empty and `empty_too`. If the field is `alone` in its
/// row, a comma in it needs quotes even with semicolons, because no semicolon shows readers the delimiter.
fn quote(out: &mut Vec<u8>, start: usize, delimiter: u8, alone: bool, empty_too: bool) {
    let field = &out[start..];
    let special = |byte: &u8| *byte == delimiter || matches!(byte, b'"' | b'\n' | b'\r');
    let has_comma = alone && delimiter == b';' && field.contains(&b',');
    if field.is_empty() && empty_too {
        out.extend_from_slice(b"\"\"");
    } else if has_comma || field.iter().any(special) {
        let field = out.split_off(start);
        out.push(b'"');
        for byte in field {
            if byte == b'"' {
                out.push(b'"');
            }
            out.push(byte);
        }
        out.push(b'"');
    }
}
