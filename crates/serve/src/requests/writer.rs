//! Writers of answers in each format. In JSON, an object with the error stands in place of a row that failed. In CSV and Arrow, a further column has
//! the error's message.

use super::RowFormat;
use super::rows::Evaluated;
use crate::problem::RowError;
use arrow_array::{ArrayRef, RecordBatch, StringViewArray, new_null_array};
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, DataType, SchemaRef};
use cembra::{QType, Scalar};
use cembra_table::error::{DataCode, DataError};
use cembra_table::sink::{Encoder, Frame, TextForm, WriteOptions, plain};
use cembra_table::{Form as ColumnForm, Format, Named, types, written};
use std::io::Write;
use std::sync::Arc;

/// The most bytes of text, approximately, that are made at once; a single row may have more.
const PART_BYTES: u64 = 1 << 20;

/// The most bytes of one row as text.
const ROW_BYTES: u64 = 256 << 20;

/// The type of the column of errors.
const TEXTS: QType = QType::Optional(Scalar::Text);

/// A writer of an answer in one format.
pub(crate) enum Writer {
    Json { encoder: Arc<dyn Encoder>, frame: Frame, is_array: bool, is_empty: bool },
    Csv { encoder: Arc<dyn Encoder>, header: Vec<u8>, schema: SchemaRef },
    Arrow { writer: Box<StreamWriter<Vec<u8>>>, schema: SchemaRef, plain: SchemaRef },
}

impl Writer {
    /// Returns a writer of rows with the columns `columns`, which have the schema `schema` in memory.
    ///
    /// # Errors
    /// If a column cannot be written.
    pub(crate) fn new(row_format: RowFormat, mut columns: Vec<Named>, schema: &SchemaRef) -> Result<Writer, DataError> {
        let format = match row_format {
            RowFormat::Json => Format::Json,
            RowFormat::Lines => Format::JsonLines,
            RowFormat::Csv => Format::Csv,
            RowFormat::Arrow => Format::Arrow,
        };
        let options = WriteOptions { format, null: None, delimiter: None, decimal_comma: false, most_bytes: ROW_BYTES };
        if matches!(row_format, RowFormat::Json | RowFormat::Lines) {
            let TextForm { encoder, frame, .. } = text_form(&options, &columns)?;
            return Ok(Writer::Json { encoder, frame, is_array: row_format == RowFormat::Json, is_empty: true });
        }
        let name = error_name(&columns);
        let mut fields: Vec<_> = schema.fields().iter().map(|field| field.as_ref().clone()).collect();
        fields.push(types::stored_field(&name, &TEXTS, false)?);
        let schema = types::schema(fields);
        columns.push(Named { name, form: ColumnForm::Values(TEXTS) });
        if row_format == RowFormat::Csv {
            let TextForm { header, encoder, .. } = text_form(&options, &columns)?;
            return Ok(Writer::Csv { encoder, header, schema });
        }
        let plain = plain::schema(&columns, &schema);
        let writer = Box::new(StreamWriter::try_new(Vec::new(), &plain).map_err(failed)?);
        Ok(Writer::Arrow { writer, schema, plain })
    }

    /// The bytes of the answer before the first row.
    pub(crate) fn start(&mut self) -> Vec<u8> {
        match self {
            Writer::Json { .. } => Vec::new(),
            Writer::Csv { header, .. } => std::mem::take(header),
            Writer::Arrow { writer, .. } => std::mem::take(writer.get_mut()),
        }
    }

    /// Writes the rows of `evaluated`, and passes the bytes to `take` in parts. `first` is the number of the first row, counted from 0.
    ///
    /// # Errors
    /// If a row is too large, or `take` returns an error.
    pub(crate) fn write<E: From<DataError>>(
        &mut self,
        evaluated: &Evaluated,
        first: u64,
        mut take: impl FnMut(Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        let Evaluated { outputs, failures, .. } = evaluated;
        let mut failures = failures.as_slice();
        let mut from = 0;
        for count in written::cuts(outputs, PART_BYTES, ROW_BYTES)? {
            let own = failures.partition_point(|(row, _)| *row < from + count);
            let range = RowRange { rows: outputs.slice(from, count), failures: &failures[..own], before: from, first };
            take(self.encode(&range)?)?;
            failures = &failures[own..];
            from += count;
        }
        Ok(())
    }

    fn encode(&mut self, range: &RowRange<'_>) -> Result<Vec<u8>, DataError> {
        match self {
            Writer::Json { encoder, frame, is_array, is_empty } => {
                let mut out = range.json(encoder.as_ref(), *is_array);
                if *is_empty && !out.is_empty() {
                    *is_empty = false;
                    if let (Some(begin), Some(byte)) = (frame.first, out.first_mut()) {
                        *byte = begin;
                    }
                }
                Ok(out)
            }
            Writer::Csv { encoder, schema, .. } => Ok(encoder.encode(&range.with_errors(schema)?)),
            Writer::Arrow { writer, schema, plain } => {
                plain::rows(&range.with_errors(schema)?, plain, |rows| writer.write(&rows).map_err(failed))?;
                Ok(std::mem::take(writer.get_mut()))
            }
        }
    }

    /// The bytes of the answer after the last row.
    ///
    /// # Errors
    /// If these bytes cannot be written.
    pub(crate) fn end(&mut self) -> Result<Vec<u8>, DataError> {
        match self {
            Writer::Json { frame, is_empty, .. } => {
                Ok(if *is_empty { frame.end_of_none.to_vec() } else { frame.end.to_vec() })
            }
            Writer::Csv { .. } => Ok(Vec::new()),
            Writer::Arrow { writer, .. } => {
                writer.finish().map_err(failed)?;
                Ok(std::mem::take(writer.get_mut()))
            }
        }
    }

    /// The bytes that tell the client that an answer, which has begun, ends early because of `error` in row `row`. Empty in a format that cannot tell
    /// this.
    pub(crate) fn broken_off(&self, error: &RowError, row: u64) -> Vec<u8> {
        match self {
            Writer::Json { is_array: false, .. } => format!("{}\n", error.object(row)).into_bytes(),
            _ => Vec::new(),
        }
    }
}

/// Consecutive rows of a batch that are written at once.
struct RowRange<'e> {
    rows: RecordBatch,
    /// The rows that failed, counted like `before`.
    failures: &'e [(usize, RowError)],
    /// The number of rows before these in their batch.
    before: usize,
    /// The number of rows before the batch.
    first: u64,
}

impl RowRange<'_> {
    /// The rows as JSON, with an object for each row that failed.
    fn json(&self, encoder: &dyn Encoder, is_array: bool) -> Vec<u8> {
        if self.failures.is_empty() {
            return encoder.encode(&self.rows);
        }
        let mut out = Vec::new();
        let mut from = 0;
        for (row, error) in self.failures {
            let at = row - self.before;
            if at > from {
                out.extend_from_slice(&encoder.encode(&self.rows.slice(from, at - from)));
            }
            let (before, after) = if is_array { (",\n", "") } else { ("", "\n") };
            // Writing to a vector does not fail.
            let _never_fails = write!(out, "{before}{}{after}", error.object(self.first + *row as u64));
            from = at + 1;
        }
        if from < self.rows.num_rows() {
            out.extend_from_slice(&encoder.encode(&self.rows.slice(from, self.rows.num_rows() - from)));
        }
        out
    }

    /// The rows with the column of errors.
    fn with_errors(&self, schema: &SchemaRef) -> Result<RecordBatch, DataError> {
        let rows = self.rows.num_rows();
        let errors: ArrayRef = if self.failures.is_empty() {
            new_null_array(&DataType::Utf8View, rows)
        } else {
            let mut messages = vec![None; rows];
            for (row, error) in self.failures {
                messages[row - self.before] = Some(error.message.as_str());
            }
            Arc::new(StringViewArray::from(messages))
        };
        let columns = self.rows.columns().iter().cloned().chain([errors]).collect();
        cembra_table::batch(schema, columns, rows)
    }
}

fn text_form(options: &WriteOptions<'_>, columns: &[Named]) -> Result<TextForm, DataError> {
    TextForm::of(options, columns)?.ok_or_else(|| DataError::unreadable("the form is not a text"))
}

/// The name of the column of errors: `error`, or `error_2` and so on if an output has the name.
fn error_name(columns: &[Named]) -> String {
    let is_free = |name: &String| columns.iter().all(|column| column.name != *name);
    let names = std::iter::once("error".to_owned()).chain((2..).map(|number| format!("error_{number}")));
    names.into_iter().find(is_free).unwrap_or_default()
}

fn failed(error: ArrowError) -> DataError {
    DataError::new(DataCode::Io, format!("the results cannot be written: {error}"))
}
