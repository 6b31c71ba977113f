//! Results as files: batches in, bytes out. What a file is whole with is written at the end; putting it into its place is
//! the business of `output`.

mod arrow;
mod json;
mod parquet;
mod shown;
mod text;

use super::{Form, Format, Named};
use crate::data::error::DataError;
use crate::data::output::Output;
use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use std::io;

/// Where batches of results go.
pub(crate) trait Sink {
    /// Writes rows.
    ///
    /// # Errors
    /// They cannot be written.
    fn write(&mut self, rows: &RecordBatch) -> Result<(), DataError>;

    /// Writes what is still to be written, and gives the output back, to be committed.
    ///
    /// # Errors
    /// It cannot be written.
    fn finish(self: Box<Self>) -> Result<Output, DataError>;
}

/// How results are written.
pub(crate) struct WriteOptions<'a> {
    /// Their form.
    pub(crate) format: Format,
    /// For CSV: what stands for missing.
    pub(crate) null: Option<&'a str>,
    /// For CSV: what separates fields.
    pub(crate) delimiter: Option<u8>,
}

/// A sink of rows of these columns, which lie in batches of the schema.
///
/// # Errors
/// A column is of a type that no data has, or the first bytes cannot be written.
pub(crate) fn open(
    options: &WriteOptions<'_>,
    output: Output,
    columns: &[Named],
    schema: &SchemaRef,
) -> Result<Box<dyn Sink>, DataError> {
    let no_data = columns.iter().find_map(|column| match &column.form {
        Form::Values(qtype) if !qtype.is_data() => Some(DataError::no_data(qtype).in_column(&column.name)),
        _ => None,
    });
    if let Some(error) = no_data {
        return Err(error);
    }
    Ok(match options.format {
        Format::Csv | Format::Tsv => {
            let usual = if options.format == Format::Tsv { b'\t' } else { b',' };
            let delimiter = options.delimiter.unwrap_or(usual);
            Box::new(text::CsvSink::open(output, columns, delimiter, options.null)?)
        }
        Format::Json | Format::JsonLines => {
            Box::new(json::JsonSink::open(output, columns, options.format == Format::Json))
        }
        Format::Table => Box::new(shown::TableSink::open(output, columns)),
        Format::Parquet => Box::new(parquet::ParquetSink::open(output, schema)?),
        Format::Arrow => Box::new(arrow::ArrowSink::open(output, schema)?),
    })
}

fn failed(cause: io::Error) -> DataError {
    DataError::io("cannot write the results", cause)
}
