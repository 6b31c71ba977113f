//! Tables: rows in batches of columns, from files to files. A batch is an Arrow `RecordBatch`, with where its rows stood.
//! Models are not known here but in `evaluate`, only the names and types of what they take and give.
//!
//! The way in: [`Dataset::open`], then [`Dataset::bind`] with what is wanted, which gives a [`Table`]. The way out: a
//! [`sink::Sink`]. In between, `pipeline` reads, computes and writes at the same time.

pub(crate) mod cells;
pub(crate) mod conversion;
pub(crate) mod csv;
pub(crate) mod evaluate;
pub(crate) mod input;
pub(crate) mod ipc;
pub(crate) mod json;
pub(crate) mod parquet;
pub(crate) mod pipeline;
pub(crate) mod place;
pub(crate) mod sink;
pub(crate) mod types;

#[cfg(test)]
mod tests;

use crate::data::error::{DataCode, DataError};
use crate::data::schema::{Column, Wanted};
use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{DataType, SchemaRef};
use cembra_runtime::QType;
use input::Input;
use place::Places;
use std::collections::BTreeMap;
use std::path::Path;

/// How many rows are computed at once, if nobody says otherwise.
pub(crate) const BATCH_ROWS: usize = 1 << 16;

/// A form of data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Format {
    /// Comma-separated values under a header.
    Csv,
    /// The same, separated by tabs.
    Tsv,
    /// An array of objects; when read, also one object after the other.
    Json,
    /// One object on each line.
    JsonLines,
    /// Columns in row groups.
    Parquet,
    /// Arrow's own form: written as a file, read as a file or a stream.
    Arrow,
    /// A table for people; written only.
    Table,
}

impl Format {
    /// The format that the ending of a file's name stands for; that of a compression is no ending of a format.
    pub(crate) fn of_path(path: &Path) -> Option<Format> {
        let ending = |path: &Path| Some(path.extension()?.to_str()?.to_ascii_lowercase());
        let last = ending(path)?;
        let last = match last.as_str() {
            "gz" | "zst" | "zstd" => ending(Path::new(path.file_stem()?))?,
            _ => last,
        };
        Some(match last.as_str() {
            "csv" => Format::Csv,
            "tsv" | "tab" => Format::Tsv,
            "json" => Format::Json,
            "jsonl" | "ndjson" => Format::JsonLines,
            "parquet" | "pq" => Format::Parquet,
            "arrow" | "arrows" | "feather" | "ipc" => Format::Arrow,
            _ => return None,
        })
    }
}

/// How to read a file.
#[derive(Clone, Debug)]
pub(crate) struct ReadOptions {
    /// Its format.
    pub(crate) format: Format,
    /// For CSV: what stands for missing, beside an empty field.
    pub(crate) nulls: Vec<String>,
    /// For CSV: what separates fields; else what the header has most of.
    pub(crate) delimiter: Option<u8>,
    /// About how many rows are read at once.
    pub(crate) batch_rows: usize,
    /// True if rows that are no rows are passed over, and told of.
    pub(crate) tolerant: bool,
}

/// Which columns of the data are carried through.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) enum Keep {
    /// None.
    #[default]
    None,
    /// These, in this order.
    These(Vec<String>),
    /// All, in the order of the data.
    All,
}

/// What is wanted of the data.
#[derive(Clone, Default, Debug)]
pub(crate) struct Request {
    /// The leaves of the model.
    pub(crate) leaves: Vec<Wanted>,
    /// The columns that are carried through.
    pub(crate) keep: Keep,
    /// Types of some of them, in data that have none of their own.
    pub(crate) kept_types: BTreeMap<String, QType>,
    /// True if a CSV's fields are carried through as they are written, not as values of a type found for them.
    pub(crate) verbatim: bool,
}

/// How the values of a column are to be understood.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Form {
    /// As values of a type of models, which lie in an array of the type's Arrow form.
    Values(QType),
    /// As text in the file's own spelling, missing values included.
    Verbatim,
    /// As values of a type that models do not have.
    Foreign(DataType),
}

/// A column of results or of the data.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Named {
    /// Its name.
    pub(crate) name: String,
    /// Its values.
    pub(crate) form: Form,
}

/// Rows, and where they stood.
#[derive(Clone, Debug)]
pub(crate) struct Batch {
    /// First the leaves wanted, then the columns carried through.
    pub(crate) rows: RecordBatch,
    /// Where each row stood.
    pub(crate) places: Places,
}

impl Batch {
    /// Some of the rows.
    pub(crate) fn slice(&self, from: usize, count: usize) -> Batch {
        Batch { rows: self.rows.slice(from, count), places: self.places.from(from) }
    }
}

/// What was read of a piece of the data: rows, and what is wrong with the row after them.
#[derive(Debug)]
pub(crate) struct Decoded {
    /// The rows.
    pub(crate) batch: Batch,
    /// Rows that are no rows, where they are to be passed over, in their order. What is missing in them is missing.
    pub(crate) failures: Vec<(usize, DataError)>,
    /// Why there are no more rows.
    pub(crate) error: Option<DataError>,
}

impl Decoded {
    /// So many rows of these columns.
    pub(crate) fn new(
        schema: &SchemaRef,
        columns: Vec<ArrayRef>,
        rows: usize,
        places: Places,
        failures: Vec<(usize, DataError)>,
        error: Option<DataError>,
    ) -> Decoded {
        match batch(schema, columns, rows) {
            Ok(rows) => Decoded { batch: Batch { rows, places }, failures, error },
            Err(error) => {
                let rows = RecordBatch::new_empty(schema.clone());
                Decoded { batch: Batch { rows, places }, failures: Vec::new(), error: Some(error) }
            }
        }
    }
}

/// A batch of so many rows.
///
/// # Errors
/// The columns are not those of the schema.
pub(crate) fn batch(schema: &SchemaRef, columns: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch, DataError> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(schema.clone(), columns, &options)
        .map_err(|error| DataError::new(DataCode::Unreadable, error.to_string()))
}

/// A piece of the data that was cut off, so that it can be read at the same time as the next.
pub(crate) trait Piece: Send {
    /// Reads it.
    fn decode(self: Box<Self>) -> Decoded;
}

impl Piece for Decoded {
    fn decode(self: Box<Self>) -> Decoded {
        *self
    }
}

/// Pieces of data, one after the other.
pub(crate) trait Source: Send {
    /// The next piece; none after the last.
    ///
    /// # Errors
    /// The data cannot be read. Nothing can be read after that.
    fn next(&mut self) -> Result<Option<Box<dyn Piece>>, DataError>;
}

/// Data whose columns are found and typed.
pub(crate) struct Table {
    /// The file's name, for messages.
    pub(crate) name: String,
    /// The leaves, in the order wanted: the first columns of every batch.
    pub(crate) leaves: Vec<Column>,
    /// The columns carried through, which follow them.
    pub(crate) kept: Vec<Named>,
    /// The columns of every batch, as they are stored.
    pub(crate) schema: SchemaRef,
    /// True if a row's place is its number, not its line.
    pub(crate) numbered: bool,
    /// How many rows there are, if the file says so.
    pub(crate) total: Option<u64>,
    /// The rows.
    pub(crate) source: Box<dyn Source>,
}

/// Data that is open: its columns are known, the types of what is wanted are not yet.
pub(crate) struct Dataset {
    name: String,
    form: Opened,
}

enum Opened {
    Csv(csv::CsvData),
    Json(json::JsonData),
    Parquet(parquet::ParquetData),
    Arrow(ipc::ArrowData),
}

impl Dataset {
    /// Opens data: reads a CSV's header, or a schema.
    ///
    /// # Errors
    /// It cannot be read, or its header is no header.
    pub(crate) fn open(input: Input, options: &ReadOptions) -> Result<Dataset, DataError> {
        let name = input.name().to_owned();
        let form = open(input, options).map_err(|error| error.in_file(&name))?;
        Ok(Dataset { name, form })
    }

    /// False if the data has no column of this name; of JSON only reading it tells, and what no object has is missing there.
    pub(crate) fn has(&self, name: &str) -> bool {
        match &self.form {
            Opened::Csv(data) => data.has(name),
            Opened::Json(_) => true,
            Opened::Parquet(data) => data.has(name),
            Opened::Arrow(data) => data.has(name),
        }
    }

    /// Finds what is wanted, and the types of the leaves that have none; other columns are not looked at. With a type for
    /// every leaf nothing is read ahead.
    ///
    /// # Errors
    /// A column is not there or of another type, or the first rows, read to find a type, are no rows.
    pub(crate) fn bind(self, request: &Request) -> Result<Table, DataError> {
        let bound = match self.form {
            Opened::Csv(data) => data.bind(request),
            Opened::Json(data) => data.bind(request),
            Opened::Parquet(data) => data.bind(request),
            Opened::Arrow(data) => data.bind(request),
        };
        let table = bound.map_err(|error| error.in_file(&self.name))?;
        Ok(Table { name: self.name, ..table })
    }
}

fn open(input: Input, options: &ReadOptions) -> Result<Opened, DataError> {
    match options.format {
        Format::Csv => csv::CsvData::open(input.into_text()?, options, options.delimiter).map(Opened::Csv),
        Format::Tsv => {
            let delimiter = options.delimiter.unwrap_or(b'\t');
            csv::CsvData::open(input.into_text()?, options, Some(delimiter)).map(Opened::Csv)
        }
        Format::Json | Format::JsonLines => json::JsonData::open(input.into_text()?, options).map(Opened::Json),
        Format::Parquet => parquet::ParquetData::open(input.into_file()?, options).map(Opened::Parquet),
        Format::Arrow => ipc::ArrowData::open(input.into_bytes()?, options).map(Opened::Arrow),
        Format::Table => Err(DataError::unreadable("tables are only written, never read")),
    }
}
