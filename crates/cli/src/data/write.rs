//! Writes rows of results as CSV, JSON, JSON lines or a table, one row after the other.
//!
//! CSV is the form that `csv` reads, JSON the one that `json` reads; a float in JSON always has a fraction or an
//! exponent, so that it is read back as a float. One thing is lost in CSV: a present text that looks like a missing
//! value (an empty text, or the null string). A table shows a missing value as `NA`, numbers to the right, and starts
//! again under a new header every ten thousand rows, so that it needs no more memory than those.

use super::Format;
use super::error::DataError;
use super::scalar;
use super::schema::escape_controls;
use cembra_runtime::{QType, Scalar};
use cembra_value::{ScalarValue, Value};
use comfy_table::{CellAlignment, Table, presets};
use std::io::{self, BufWriter, Write};

/// Rows of one table.
const TABLE_ROWS: usize = 10_000;

/// The mark of a missing value in a table.
const TABLE_MISSING: &str = "NA";

/// Writes rows to `W`.
pub(crate) struct RowWriter<W: Write> {
    form: Form<W>,
}

enum Form<W: Write> {
    Csv { out: Box<csv::Writer<W>>, null: String },
    Json { out: BufWriter<W>, keys: Vec<String>, array: bool, rows: u64 },
    Table { out: BufWriter<W>, header: Vec<(String, CellAlignment)>, table: Box<Table> },
}

impl<W: Write> RowWriter<W> {
    /// A writer of rows of these columns. In CSV, `null` stands for missing; in CSV and tables a tuple is one column
    /// for each of its fields.
    ///
    /// # Errors
    /// A column is of a type that no data has, or the header cannot be written.
    pub(crate) fn new(format: Format, out: W, columns: &[(String, QType)], null: &str) -> Result<Self, DataError> {
        if let Some((name, qtype)) = columns.iter().find(|(_, qtype)| !qtype.is_data()) {
            return Err(DataError::no_data(qtype).in_column(name));
        }
        let form = match format {
            Format::Csv | Format::Tsv => {
                let delimiter = if format == Format::Tsv { b'\t' } else { b',' };
                let mut out = csv::WriterBuilder::new().delimiter(delimiter).from_writer(out);
                let flat = flat_columns(columns);
                out.write_record(flat.iter().map(|(name, _)| name)).map_err(|error| failed(cause(error)))?;
                Form::Csv { out: Box::new(out), null: null.to_owned() }
            }
            Format::Json | Format::JsonLines => {
                let keys = columns.iter().map(|(name, _)| format!("{}:", json_text(name))).collect();
                Form::Json { out: BufWriter::new(out), keys, array: format == Format::Json, rows: 0 }
            }
            Format::Table => {
                let header = flat_columns(columns).into_iter().map(|(name, qtype)| {
                    let numeric = qtype.scalar().is_some_and(Scalar::is_number);
                    let side = if numeric { CellAlignment::Right } else { CellAlignment::Left };
                    (escape_controls(&name), side)
                });
                let header: Vec<_> = header.collect();
                let table = Box::new(empty_table(&header));
                Form::Table { out: BufWriter::new(out), header, table }
            }
        };
        Ok(RowWriter { form })
    }

    /// Writes one row: a value for each column.
    ///
    /// # Errors
    /// It cannot be written.
    pub(crate) fn write(&mut self, row: &[Value]) -> Result<(), DataError> {
        self.try_write(row).map_err(failed)
    }

    fn try_write(&mut self, row: &[Value]) -> io::Result<()> {
        match &mut self.form {
            Form::Csv { out, null } => {
                let mut cells = Vec::with_capacity(row.len());
                row.iter().for_each(|value| flatten(value, &mut cells));
                let fields = cells.into_iter().map(|cell| cell.map_or_else(|| null.clone(), scalar::print));
                out.write_record(fields).map_err(cause)?;
            }
            Form::Json { out, keys, array, rows } => {
                if *array {
                    out.write_all(if *rows == 0 { b"[\n" } else { b",\n" })?;
                }
                *rows += 1;
                let mut before = '{';
                for (key, value) in keys.iter().zip(row) {
                    write!(out, "{before}{key}")?;
                    write_json(out, value)?;
                    before = ',';
                }
                out.write_all(if row.is_empty() { b"{}" } else { b"}" })?;
                if !*array {
                    out.write_all(b"\n")?;
                }
            }
            Form::Table { out, header, table } => {
                if table.row_count() == TABLE_ROWS {
                    writeln!(out, "{table}")?;
                    **table = empty_table(header);
                }
                let mut cells = Vec::with_capacity(row.len());
                row.iter().for_each(|value| flatten(value, &mut cells));
                let shown = cells.into_iter().map(|cell| match cell {
                    None => TABLE_MISSING.to_owned(),
                    Some(ScalarValue::Text(text)) => escape_controls(text),
                    Some(value) => scalar::print(value),
                });
                table.add_row(shown.collect::<Vec<_>>());
            }
        }
        Ok(())
    }

    /// Writes what is still to be written, and gives the output back, to be committed.
    ///
    /// # Errors
    /// It cannot be written.
    pub(crate) fn finish(self) -> Result<W, DataError> {
        match self.form {
            Form::Csv { mut out, .. } => {
                out.flush().map_err(failed)?;
                out.into_inner().map_err(|error| failed(io::Error::new(error.error().kind(), error.to_string())))
            }
            Form::Json { mut out, array, rows, .. } => {
                let end: &[u8] = match (array, rows) {
                    (false, _) => b"",
                    (true, 0) => b"[]\n",
                    (true, _) => b"\n]\n",
                };
                out.write_all(end).map_err(failed)?;
                out.into_inner().map_err(|error| failed(error.into_error()))
            }
            Form::Table { mut out, table, .. } => {
                writeln!(out, "{table}").map_err(failed)?;
                out.into_inner().map_err(|error| failed(error.into_error()))
            }
        }
    }
}

fn failed(cause: io::Error) -> DataError {
    DataError::io("cannot write the results", cause)
}

/// The failure of the system behind one of the CSV writer, which would hide what kind of failure it is.
fn cause(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(cause) => cause,
        other => io::Error::other(format!("{other:?}")),
    }
}

fn empty_table(header: &[(String, CellAlignment)]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED);
    table.set_header(header.iter().map(|(name, _)| name));
    for (column, (_, side)) in table.column_iter_mut().zip(header) {
        column.set_cell_alignment(*side);
    }
    table
}

/// The columns of the flat forms: a scalar or optional is one, a tuple `p` is `p.0`, `p.1` and so on, a named one `p.x`.
fn flat_columns(columns: &[(String, QType)]) -> Vec<(String, QType)> {
    // Tuple types nest only as deep as the parser allows, so this recursion is bounded.
    fn push(name: &str, qtype: &QType, flat: &mut Vec<(String, QType)>) {
        match qtype {
            QType::Tuple(fields) => {
                for (index, field) in fields.iter().enumerate() {
                    push(&format!("{name}.{}", fields.label(index)), field, flat);
                }
            }
            _ => flat.push((name.to_owned(), qtype.clone())),
        }
    }
    let mut flat = Vec::with_capacity(columns.len());
    columns.iter().for_each(|(name, qtype)| push(name, qtype, &mut flat));
    flat
}

/// The scalars of a value in the order of `flat_columns`; `None` for a missing one.
fn flatten<'a>(value: &'a Value, cells: &mut Vec<Option<&'a ScalarValue>>) {
    match value {
        Value::Tuple(fields) => fields.iter().for_each(|field| flatten(field, cells)),
        other => cells.push(other.as_scalar()),
    }
}

fn write_json(out: &mut impl Write, value: &Value) -> io::Result<()> {
    match value {
        Value::Tuple(fields) => {
            out.write_all(if fields.names().is_some() { b"{" } else { b"[" })?;
            for (index, field) in fields.iter().enumerate() {
                if index > 0 {
                    out.write_all(b",")?;
                }
                if let Some(name) = fields.names().and_then(|names| names.get(index)) {
                    write!(out, "{}:", json_text(name))?;
                }
                write_json(out, field)?;
            }
            out.write_all(if fields.names().is_some() { b"}" } else { b"]" })
        }
        other => match other.as_scalar() {
            None => out.write_all(b"null"),
            Some(ScalarValue::Unit) => out.write_all(b"true"),
            Some(ScalarValue::Text(text)) => out.write_all(json_text(text).as_bytes()),
            Some(value) if value.scalar().is_string() || value.scalar().is_quoted() => {
                out.write_all(json_text(&scalar::print(value)).as_bytes())
            }
            Some(scalar) if scalar.scalar().is_float() => out.write_all(json_float(&scalar::print(scalar)).as_bytes()),
            Some(scalar) => out.write_all(scalar::print(scalar).as_bytes()),
        },
    }
}

/// The float that prints as `printed`, as JSON.
fn json_float(printed: &str) -> String {
    match printed {
        "nan" => "\"NaN\"".to_owned(),
        "inf" => "\"Infinity\"".to_owned(),
        "-inf" => "\"-Infinity\"".to_owned(),
        digits if digits.contains(['.', 'e']) => digits.to_owned(),
        digits => format!("{digits}.0"),
    }
}

fn json_text(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
