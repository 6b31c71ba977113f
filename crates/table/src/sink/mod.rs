//! Sinks: output of batches of results as files of a format. The end of a file is written by `finish`; `output` moves the file to its path.

mod arrow;
mod dictionaries;
mod json;
mod lines;
mod parquet;
mod plain;
mod shown;
mod stored;
mod text;

use super::{Form, Format, Named, types};
use crate::error::DataError;
use crate::output::Output;
use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use lines::Frame;
pub use lines::{Encoder, Lines};
use std::io;
use std::sync::Arc;

/// A sink of batches of results.
pub enum Sink {
    /// A text format, in which batches can be encoded independently on any thread.
    Lines(Lines),
    /// A format in which the bytes of a batch depend on those before.
    Rows(Box<dyn Rows>),
}

impl Sink {
    /// Writes rows.
    ///
    /// # Errors
    /// If the rows cannot be written.
    pub fn write(&mut self, rows: &RecordBatch) -> Result<(), DataError> {
        match self {
            Sink::Lines(lines) => lines.write(&lines.encoder().encode(rows)),
            Sink::Rows(sink) => sink.write(rows),
        }
    }

    /// Writes the end of the file, and returns the output, which must be committed.
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

/// A sink whose batches must be written one after the other.
pub trait Rows {
    /// Writes rows.
    ///
    /// # Errors
    /// If the rows cannot be written.
    fn write(&mut self, rows: &RecordBatch) -> Result<(), DataError>;

    /// Writes the end of the file, and returns the output, which must be committed.
    ///
    /// # Errors
    /// If the end cannot be written.
    fn finish(self: Box<Self>) -> Result<Output, DataError>;
}

/// Options for writing results.
pub struct WriteOptions<'a> {
    /// The format of the results.
    pub format: Format,
    /// For CSV and tables: the text for a missing value; `None` for the default.
    pub null: Option<&'a str>,
    /// For CSV: the character between fields; by default a comma, or a semicolon if numbers have commas.
    pub delimiter: Option<u8>,
    /// For CSV and tables: true if numbers have a comma before their fraction.
    pub decimal_comma: bool,
    /// For Parquet: the most bytes that the writers of columns may take before there are rows.
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
    let no_data = columns.iter().find_map(|column| match &column.form {
        Form::Values(qtype) if types::of_qtype(qtype).is_none() => {
            Some(DataError::no_data(qtype).in_column(&column.name))
        }
        _ => None,
    });
    if let Some(error) = no_data {
        return Err(error);
    }
    Ok(match options.format {
        Format::Csv | Format::Tsv => {
            let usual = match (options.format, options.decimal_comma) {
                (Format::Tsv, _) => b'\t',
                (_, true) => b';',
                (_, false) => b',',
            };
            let delimiter = options.delimiter.unwrap_or(usual);
            let encoder = text::CsvEncoder::new(columns, delimiter, options.null, options.decimal_comma);
            let frame = Frame::default();
            let header = encoder.header();
            Sink::Lines(Lines::open(output, &header, Arc::new(encoder), frame)?)
        }
        Format::Json | Format::JsonLines => {
            let array = options.format == Format::Json;
            let frame = if array { json::ARRAY } else { Frame::default() };
            Sink::Lines(Lines::open(output, &[], Arc::new(json::JsonEncoder::new(columns, array)), frame)?)
        }
        Format::Table => Sink::Rows(Box::new(shown::TableSink::open(output, columns, options))),
        Format::Parquet => {
            Sink::Rows(Box::new(parquet::ParquetSink::open(output, columns, schema, options.most_bytes)?))
        }
        Format::Arrow => Sink::Rows(Box::new(arrow::ArrowSink::open(output, columns, schema)?)),
    })
}

fn failed(cause: io::Error) -> DataError {
    DataError::io("cannot write the results", cause)
}
