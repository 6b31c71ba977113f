//! Results as CSV, which `csv` reads. One thing is lost: a present text that looks like a missing value (an empty text, or
//! the null string); but with a null string an empty text is written as `""`, and read as one. An array is a field of JSON.

use super::json::Node;
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

/// About as many bytes as a field has: room is made for so many at once.
const FIELD_BYTES: usize = 12;

/// A column of the flat forms: a scalar or optional is one, a tuple `p` is `p.0`, `p.1` and so on, a named one `p.x`.
#[derive(Clone, Debug)]
pub(super) struct FlatColumn {
    /// Its name.
    pub(super) name: String,
    /// The type of its values; none if they are written as they are.
    pub(super) scalar: Option<Scalar>,
}

/// The columns of the flat forms.
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

/// The values of a flat column in a batch.
pub(super) enum Flat<'a> {
    /// Of a type of models.
    Scalars(Scalars<'a>),
    /// Arrays.
    Json(&'a dyn Array, Node<'a>),
    /// As they are written in the data.
    Verbatim(&'a StringViewArray),
    /// Of another type.
    Foreign(&'a dyn Array),
    /// A field of structs, some of which may be null: then so are their fields, whatever they are.
    Part(&'a NullBuffer, Box<Flat<'a>>),
}

/// The flat columns of a batch.
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
                flat.extend(Node::of(array, qtype).map(|node| Flat::Json(array, node)));
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
    /// Adds the value of a row as text; false if it is missing.
    #[inline]
    pub(super) fn write(&self, out: &mut Vec<u8>, row: usize) -> bool {
        match self {
            Flat::Scalars(scalars) => {
                let value = scalars.at(row);
                scalar::write(out, &value);
                value != ValueRef::Missing
            }
            Flat::Json(array, node) => {
                let present = array.is_valid(row);
                if present {
                    node.write(out, row);
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

    /// Adds the value of a row as text for people, who see of a long list the first elements alone; false if it is missing.
    pub(super) fn show(&self, out: &mut Vec<u8>, row: usize) -> bool {
        match self {
            Flat::Json(array, node) if array.is_valid(row) => {
                node.show(out, row);
                true
            }
            Flat::Part(there, part) => there.is_valid(row) && part.show(out, row),
            _ => self.write(out, row),
        }
    }

    /// True if the text of a value may have a decimal point.
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

    /// True if what is written may need quotes.
    fn may_need_quotes(&self) -> bool {
        match self {
            Flat::Scalars(scalars) => scalars.scalar == Scalar::Text,
            Flat::Json(..) | Flat::Verbatim(_) | Flat::Foreign(..) => true,
            Flat::Part(_, part) => part.may_need_quotes(),
        }
    }
}

/// Makes records of CSV.
pub(super) struct CsvEncoder {
    columns: Vec<Named>,
    delimiter: u8,
    null: Option<String>,
    decimal_comma: bool,
}

impl CsvEncoder {
    /// Writes records of `columns` with `delimiter` between fields, `null` for missing values and, if `decimal_comma`, a comma instead of the point
    /// in numbers.
    pub(super) fn new(columns: &[Named], delimiter: u8, null: Option<&str>, decimal_comma: bool) -> Self {
        let null = null.filter(|null| !null.is_empty()).map(str::to_owned);
        CsvEncoder { columns: columns.to_vec(), delimiter, null, decimal_comma }
    }

    /// The record of the names.
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
                // Of what is verbatim nothing is known but how it was written.
                let empty_text = present && null.is_some() && !matches!(column, Flat::Verbatim(_));
                // A number needs quotes only where the field is all there is of the row, and empty.
                if quoting[at] || !present || self.delimiter != b',' {
                    quote(&mut out, start, self.delimiter, alone, alone || empty_text);
                }
            }
            out.push(b'\n');
        }
        out
    }
}

/// Puts a comma into the place of a number's decimal point.
pub(super) fn put_comma(number: &mut [u8]) {
    if let Some(point) = number.iter_mut().find(|byte| **byte == b'.') {
        *point = b',';
    }
}

/// Puts the field that starts at `start` into quotes if it needs them, or if it is empty and `empty_too`. If the field is `alone` in its row, a comma
/// in it needs quotes even with semicolons, because no semicolon shows readers the delimiter.
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
