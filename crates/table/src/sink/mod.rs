//! Sinks: writers of results, which take batches of rows and write a file of one format. The end of a file is written by `finish`; `output`
//! moves the file to its path.

mod arrow;
mod dictionaries;
mod json;
mod lines;
mod parquet;
pub mod plain;
mod shown;
mod stored;
mod text;

use super::{Form, Format, Named, types};
use crate::error::DataError;
use crate::output::Output;
use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
pub use lines::{Encoder, Frame, Lines};
use std::io;
use std::sync::Arc;

/// A writer of results: it takes batches of rows, and writes a file of one format.
pub enum Sink {
    /// The sink has a text format, in which batches can be encoded independently on any thread.
    Lines(Lines),
    /// The sink has a format in which the bytes of a batch depend on the batches before it.
    Rows(Box<dyn Rows>),
}

impl Sink {
    /// Appends `rows` to the file.
    ///
    /// # Errors
    /// If the rows cannot be written.
    pub fn write(&mut self, rows: &RecordBatch) -> Result<(), DataError> {
        match self {
            Sink::Lines(lines) => lines.write(&lines.encoder().encode(rows)),
            Sink::Rows(sink) => sink.write(rows),
        }
    }

    /// Writes the end of the file, and returns the output. The file appears at its path only when the output is committed.
    ///
    /// # Errors
    /// If the end cannot be written.
    pub fn finish(self) -> Result<Output, DataError> {
        match self {
            Sink::Lines(lines) => lines.finish(),
            Sink::Rows(sink) => sink.finish(),
        }
    }
}

/// A sink for a binary format (Arrow, Parquet) or for tables on a terminal. It encodes its batches itself, one after the other.
pub trait Rows {
    /// Appends `rows` to the file.
    ///
    /// # Errors
    /// If the rows cannot be written.
    fn write(&mut self, rows: &RecordBatch) -> Result<(), DataError>;

    /// Writes the end of the file, and returns the output. The file appears at its path only when the output is committed.
    ///
    /// # Errors
    /// If the end cannot be written.
    fn finish(self: Box<Self>) -> Result<Output, DataError>;
}

/// Options for writing a file of results.
pub struct WriteOptions<'a> {
    /// The format of the results' file.
    pub format: Format,
    /// For CSV and tables: the text for a missing value; `None` for the default.
    pub null: Option<&'a str>,
    /// For CSV: the character between fields; `None` for a comma, or a semicolon if numbers have decimal commas.
    pub delimiter: Option<u8>,
    /// For CSV and tables: true if numbers have a decimal comma instead of a point.
    pub decimal_comma: bool,
    /// For Parquet: the most bytes of memory that the column writers may take before any row is written.
    pub most_bytes: u64,
}

/// Opens a sink for `columns`, whose batches have the schema `schema`.
///
/// # Errors
/// If a column has a type that cannot be stored as data, or the first bytes cannot be written.
pub fn open(
    options: &WriteOptions<'_>,
    output: Output,
    columns: &[Named],
    schema: &SchemaRef,
) -> Result<Sink, DataError> {
    check(columns)?;
    Ok(match options.format {
        Format::Csv | Format::Tsv | Format::Json | Format::JsonLines => {
            let TextForm { header, encoder, frame } = text_form(options, columns);
            Sink::Lines(Lines::open(output, &header, encoder, frame)?)
        }
        Format::Table => Sink::Rows(Box::new(shown::TableSink::open(output, columns, options))),
        Format::Parquet => {
            Sink::Rows(Box::new(parquet::ParquetSink::open(output, columns, schema, options.most_bytes)?))
        }
        Format::Arrow => Sink::Rows(Box::new(arrow::ArrowSink::open(output, columns, schema)?)),
    })
}

/// Checks that every column has a type that can be stored as data.
fn check(columns: &[Named]) -> Result<(), DataError> {
    let no_data = columns.iter().find_map(|column| match &column.form {
        Form::Values(qtype) if types::of_qtype(qtype).is_none() => {
            Some(DataError::no_data(qtype).in_column(&column.name))
        }
        _ => None,
    });
    no_data.map_or(Ok(()), Err)
}

/// The parts of a file in a text format, for programs that write the bytes themselves, for example to a socket.
pub struct TextForm {
    /// The bytes before the first row: the header of a CSV.
    pub header: Vec<u8>,
    /// The encoder of the rows.
    pub encoder: Arc<dyn Encoder>,
    /// The text around the rows.
    pub frame: Frame,
}

impl TextForm {
    /// Returns the parts of a file with the columns `columns`; `None` if the format of `options` is not a text format.
    ///
    /// # Errors
    /// If a column has a type that cannot be stored as data.
    pub fn of(options: &WriteOptions<'_>, columns: &[Named]) -> Result<Option<TextForm>, DataError> {
        check(columns)?;
        let is_text = matches!(options.format, Format::Csv | Format::Tsv | Format::Json | Format::JsonLines);
        Ok(is_text.then(|| text_form(options, columns)))
    }
}

/// Returns the parts of a file in a text format. Every format except JSON is written as CSV.
fn text_form(options: &WriteOptions<'_>, columns: &[Named]) -> TextForm {
    if matches!(options.format, Format::Json | Format::JsonLines) {
        let array = options.format == Format::Json;
        let frame = if array { json::ARRAY } else { Frame::default() };
        return TextForm { header: Vec::new(), encoder: Arc::new(json::JsonEncoder::new(columns, array)), frame };
    }
    let usual = match (options.format, options.decimal_comma) {
        (Format::Tsv, _) => b'\t',
        (_, true) => b';',
        (_, false) => b',',
    };
    let delimiter = options.delimiter.unwrap_or(usual);
    let encoder = text::CsvEncoder::new(columns, delimiter, options.null, options.decimal_comma);
    TextForm { header: encoder.header(), encoder: Arc::new(encoder), frame: Frame::default() }
}

fn failed(cause: io::Error) -> DataError {
    DataError::io("cannot write the results", cause)
}
