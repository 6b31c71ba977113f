//! Tables for cembra: readers and writers of data files and of NumPy's arrays. Rows are passed in batches: Arrow `RecordBatch`es with the line or the
//! row number of each row. Models are not run here: this crate knows only the names and types of their inputs and outputs.
//!
//! Reading starts with [`Dataset::open`]. [`Dataset::bind`] selects the requested columns and returns a [`Table`],
//! whose [`Source`] returns [`Piece`]s: undecoded parts of the file, which any thread may decode. Writing goes through
//! a [`sink::Sink`]. Every problem with data is a [`error::DataError`].

mod casts;
pub mod cells;
mod chunks;
mod conversion;
mod csv;
mod deltas;
pub mod error;
mod foreign;
mod guard;
pub mod input;
mod ipc;
mod json;
pub mod json_text;
mod messages;
pub mod numpy;
#[cfg(feature = "tiles")]
pub mod numpy_tiles;
mod objects;
pub mod output;
mod pages;
mod parquet;
pub mod place;
pub mod scalar;
pub mod schema;
mod several;
pub mod sink;
mod structs;
mod thrift;
pub mod types;
pub mod unfinished;
mod unread;
pub mod written;

#[cfg(test)]
mod tests;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{DataType, SchemaRef};
use cembra_runtime::{QType, Scalar};
pub use csv::spelling::Spelling;
use error::{DataCode, DataError};
pub use guard::is_guarded;
use input::Input;
use place::Places;
use schema::{Column, Inferred, RequestedLeaf};
use several::SubsequentFile;
pub use several::{ColumnTypes, FileOpener};
use std::collections::BTreeMap;
use std::path::Path;

/// The default number of rows that are read and computed at once.
pub const BATCH_ROWS: usize = 1 << 16;

/// The default limit for the bytes of a data file that are in memory at once.
pub const MOST_BYTES: u64 = 4 << 30;

/// A format of data files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// Comma-separated values under a header line.
    Csv,
    /// Tab-separated values under a header line.
    Tsv,
    /// JSON: an array of objects. A sequence of objects is read too.
    Json,
    /// JSON Lines: one object on each line.
    JsonLines,
    /// Parquet: columns in row groups.
    Parquet,
    /// Arrow IPC: written as a file, read as a file or a stream.
    Arrow,
    /// A table for people to read; written only.
    Table,
}

impl Format {
    /// The data format for the extension of `path`, such as CSV for `a.csv` and `a.CSV`; `None` if no format has the extension. The extension of a
    /// compression (`.gz`, `.zst`, `.zstd`) is skipped, so `a.csv.gz` is CSV too.
    pub fn of_path(path: &Path) -> Option<Format> {
        let ending = |path: &Path| Some(path.extension()?.to_str()?.to_ascii_lowercase());
        let last = ending(path)?;
        match last.as_str() {
            "gz" | "zst" | "zstd" => Format::of_ending(&ending(Path::new(path.file_stem()?))?),
            last => Format::of_ending(last),
        }
    }

    /// The data format for the extension `ending`, such as `csv`, which must be in lower case; `None` if no format has this extension.
    pub fn of_ending(ending: &str) -> Option<Format> {
        Some(match ending {
            "csv" => Format::Csv,
            "tsv" | "tab" => Format::Tsv,
            "json" => Format::Json,
            "jsonl" | "ndjson" => Format::JsonLines,
            "parquet" | "pq" => Format::Parquet,
            "arrow" | "arrows" | "feather" | "ipc" => Format::Arrow,
            _ => return None,
        })
    }

    /// The name of the format, for messages.
    pub const fn name(self) -> &'static str {
        match self {
            Format::Csv => "CSV",
            Format::Tsv => "TSV",
            Format::Json | Format::JsonLines => "JSON",
            Format::Parquet => "Parquet",
            Format::Arrow => "Arrow",
            Format::Table => "a table",
        }
    }
}

/// Options for reading a data file.
#[derive(Clone, Debug)]
pub struct ReadOptions {
    /// The format of the data file.
    pub format: Format,
    /// For CSV: the texts that stand for a missing value, besides an empty field.
    pub nulls: Vec<String>,
    /// For CSV: the character that separates fields; `None` for the candidate (comma, semicolon, ..) that occurs most often in the header.
    pub delimiter: Option<u8>,
    /// The spelling of numbers, dates and timestamps in the data. A decimal comma in the spelling applies to CSV only.
    pub spelling: Spelling,
    /// The approximate number of rows that are read at once.
    pub batch_rows: usize,
    /// The most bytes that are allocated at once for compressed data, or for a part of the file whose length the file declares: an Arrow message, or
    /// the Parquet pages of the rows that are read at once.
    pub most_bytes: u64,
    /// True if rows that cannot be read are skipped and reported.
    pub tolerant: bool,
}

/// The choice of data columns that are copied to the results.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub enum Keep {
    /// No columns are copied to the results.
    #[default]
    None,
    /// The columns with these names are copied, in this order.
    These(Vec<String>),
    /// Every column is copied, in the order of the data.
    All,
}

/// The columns that a model and the command request from the data.
#[derive(Clone, Default, Debug)]
pub struct Request {
    /// The inputs of the model that are read from the data.
    pub leaves: Vec<RequestedLeaf>,
    /// The choice of columns that are copied to the results.
    pub keep: Keep,
    /// The declared types of columns that are copied to the results, by column name. Types can be declared for formats whose columns have no types
    /// (CSV, JSON).
    pub kept_types: BTreeMap<String, QType>,
    /// True if the fields of a CSV are copied to the results as they are written, not as values of an inferred type.
    pub verbatim: bool,
    /// The names of the model's outputs, if JSON data are copied to JSON results in their original spelling (`1e3`
    /// stays `1e3`). A member of a JSON object is not copied if it has the name of an output. `None` if data are copied
    /// as values.
    pub as_written: Option<Vec<String>>,
    /// The column types of the first of several data files, for a request to a later file; `None` for the first file.
    pub found: Option<ColumnTypes>,
}

/// The form in which a column stores its values: as values of a type that models have, as the texts of the file, or as values of an Arrow type that
/// models do not have.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Form {
    /// The column has values of this type of models, in an array of the matching Arrow type.
    Values(QType),
    /// The column has texts exactly as the file spells them. Texts that stand for missing values are copied too.
    Verbatim,
    /// The column has values of this Arrow type, which models do not have.
    Foreign(DataType),
    /// The column has texts: members (keys and values) of a JSON object as they are spelled in the data. In a row with
    /// such a text, the results have these members in place of the columns before this one. In any other row the text
    /// is missing.
    AsWritten,
}

/// A column of the results or of the data: its name, and the form (such as texts) in which it stores its values.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Named {
    /// The name of the column in the results or in the data.
    pub name: String,
    /// The form in which the column stores its values.
    pub form: Form,
}

/// A batch of rows, with the place of each row in the data.
#[derive(Clone, Debug)]
pub struct Batch {
    /// The columns of the batch: first the requested inputs, then the columns copied to the results.
    pub rows: RecordBatch,
    /// The place of each row in the data: the line that the row starts on, or the row number.
    pub places: Places,
}

impl Batch {
    /// Returns the `count` rows of the batch that begin with row `from`.
    pub fn slice(&self, from: usize, count: usize) -> Batch {
        Batch { rows: self.rows.slice(from, count), places: self.places.from(from) }
    }
}

/// The result of decoding a piece of data: a batch of rows, the rows that failed, and the error that ended decoding, if there is one.
#[derive(Debug)]
pub struct Decoded {
    /// The rows that were decoded.
    pub batch: Batch,
    /// The rows that cannot be read and are to be skipped, in order: each with its index in the batch and its error. Values of these rows that
    /// could not be read are missing in the batch.
    pub failures: Vec<(usize, DataError)>,
    /// The error that ended decoding, so that later rows are not in `batch`; `None` if there was no error.
    pub error: Option<DataError>,
}

impl Decoded {
    /// Makes the result of decoding `rows` rows with the columns `columns`. If the columns do not fit `schema`, the result is an empty batch with
    /// an error.
    pub fn new(
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

/// Makes an Arrow batch of `rows` rows from `columns`.
///
/// # Errors
/// If the columns do not fit `schema`.
pub fn batch(schema: &SchemaRef, columns: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch, DataError> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(schema.clone(), columns, &options)
        .map_err(|error| DataError::new(DataCode::Unreadable, error.to_string()))
}

/// A block of memory that an undecoded piece of a file keeps alive. Several pieces share a block if they were cut from one part of the file whose
/// length the file declares, for example an Arrow message.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct HeldBlock {
    /// The number of the memory block. Neighbouring pieces have the same number only if they share the block.
    pub block: u64,
    /// The size of the memory block in bytes, including the memory that decoding the piece needs.
    pub bytes: u64,
}

/// A memory limit for the rows that are decoded at once from a piece (an undecoded part of a file).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DecodeLimit {
    /// The most bytes of the decoded rows, missing values included.
    pub bytes: u64,
    /// True if the first row is decoded even if it is larger than `bytes`. The separate limit for the size of any row of the data still applies.
    pub takes_first_row: bool,
}

impl DecodeLimit {
    /// The limit for decoding all rows of a piece at once: every row fits into it.
    pub const ALL: DecodeLimit = DecodeLimit { bytes: u64::MAX, takes_first_row: true };

    /// Returns true if row `row` fits into the limit together with the rows before it; `bytes` is the size of these rows and row `row` together.
    pub(crate) const fn takes(self, row: usize, bytes: u64) -> bool {
        bytes <= self.bytes || row == 0 && self.takes_first_row
    }
}

/// A part of the data that is read but not decoded yet, so that several pieces can be decoded at the same time.
pub trait Piece: Send {
    /// Decodes all rows of the piece.
    fn decode(self: Box<Self>) -> Decoded {
        self.decode_within(DecodeLimit::ALL).0
    }

    /// Decodes rows of the piece from the first on, as many as fit into `limit`. Returns the decoded rows and the rest of the piece; the rest is
    /// `None` if all rows were decoded.
    fn decode_within(self: Box<Self>, limit: DecodeLimit) -> (Decoded, Option<Box<dyn Piece>>);

    /// The block of memory that the piece keeps alive; a block of zero bytes if the data are cut into pieces of bounded size.
    fn held(&self) -> HeldBlock {
        HeldBlock::default()
    }
}

impl Piece for Decoded {
    fn decode_within(self: Box<Self>, _: DecodeLimit) -> (Decoded, Option<Box<dyn Piece>>) {
        (*self, None)
    }
}

/// The source of a data file's rows: it returns the undecoded pieces of the file, in order.
pub trait Source: Send {
    /// Reads the next piece of the file; `None` after the last.
    ///
    /// # Errors
    /// If the data cannot be read. Nothing can be read after an error.
    fn next(&mut self) -> Result<Option<Box<dyn Piece>>, DataError>;

    /// Returns true if the next piece is in the memory block of the previous piece, so that nothing needs to be read.
    fn is_at_hand(&self) -> bool {
        false
    }
}

/// An open data file whose requested columns are found and have types.
pub struct Table {
    /// The name of the data file, for messages.
    pub name: String,
    /// The inputs, in the order of the request: the first columns of every batch.
    pub leaves: Vec<Column>,
    /// The columns copied to the results, which follow the inputs in every batch.
    pub kept: Vec<Named>,
    /// The types of inputs, and of columns copied to the results, that were inferred from the data.
    pub inferred: Vec<Inferred>,
    /// The types (date, timestamp) of the inputs that are read from columns of whole numbers; `None` for data whose columns have no types.
    pub counted: Option<Vec<Scalar>>,
    /// The schema of every batch that is read from the table.
    pub schema: SchemaRef,
    /// True if the place of a row in the data is a row number; false if the place is a line.
    pub numbered: bool,
    /// The number of rows in the file; `None` if the file does not state it.
    pub total: Option<u64>,
    /// The source of the table's rows.
    pub source: Box<dyn Source>,
}

impl Table {
    /// Makes the table of a text file. The place of a row is the line that it starts on. The number of rows is unknown.
    pub(crate) fn of_lines(
        leaves: Vec<Column>,
        kept: Vec<Named>,
        inferred: Vec<Inferred>,
        schema: SchemaRef,
        source: Box<dyn Source>,
    ) -> Table {
        let name = String::new();
        Table { name, leaves, kept, inferred, counted: None, schema, numbered: false, total: None, source }
    }
}

/// An open data file whose columns are not selected yet. If the format has a header or a schema, this header or schema has been read.
pub struct Dataset {
    name: String,
    format: Format,
    form: Opened,
    most_bytes: u64,
    /// The files after the first one. Their columns' names are in `later_names`, sorted.
    later: Vec<SubsequentFile>,
    later_names: Vec<String>,
}

/// The approximate memory in bytes for a column besides its values: for its name in several places, its builder, and
/// its array.
const COLUMN_BYTES: u64 = 2_048;

/// The approximate memory in bytes for the name of a column, in addition to the text, while columns are looked up by
/// name.
const NAME_BYTES: u64 = 256;

/// The number of columns that are not counted against the memory limit.
const FEW_COLUMNS: usize = 1_000;

/// The most failed rows in one decoded batch of a text file. After this number of failures the batch ends, because an error takes more memory than
/// most rows.
pub(crate) const MOST_FAILURES: usize = 4_096;

/// Checks, before memory is reserved, that `columns` columns fit into `most_bytes`, if each column takes `each` bytes besides its values.
///
/// # Errors
/// If the columns do not fit into `most_bytes`.
pub(crate) fn count_columns(columns: usize, each: u64, most_bytes: u64) -> Result<(), DataError> {
    let bytes = (columns.saturating_sub(FEW_COLUMNS) as u64).saturating_mul(each);
    if bytes <= most_bytes {
        return Ok(());
    }
    Err(chunks::too_large(format!(
        "{columns} columns take {bytes} bytes besides their values; the limit is {most_bytes} bytes"
    )))
}

/// The open file, by format.
enum Opened {
    Csv(csv::CsvData),
    Json(json::JsonData),
    Parquet(parquet::ParquetData),
    Arrow(ipc::ArrowData),
}

impl Dataset {
    /// Opens the data file `input`: reads the header of a CSV, or the schema of a format that has one.
    ///
    /// # Errors
    /// If the data cannot be read, or a header is not valid.
    pub fn open(input: Input, options: &ReadOptions) -> Result<Dataset, DataError> {
        let name = input.name().to_owned();
        let form = open(input, options).map_err(|error| error.in_file(&name))?;
        let (format, most_bytes) = (options.format, options.most_bytes);
        Ok(Dataset { name, format, form, most_bytes, later: Vec::new(), later_names: Vec::new() })
    }

    /// Appends the rows of `files` after the rows of this file.
    ///
    /// # Errors
    /// If a file cannot be opened, or has another format than the first file.
    pub fn followed_by(mut self, files: Vec<FileOpener>) -> Result<Dataset, DataError> {
        let mut names = Vec::new();
        for file in files {
            let later = SubsequentFile::open(file, &self, &mut names)?;
            self.later.push(later);
            names.sort_unstable();
            names.dedup();
        }
        self.later_names = names;
        Ok(self)
    }

    /// The format of the data file.
    pub fn format(&self) -> Format {
        self.format
    }

    /// The keys of the objects in the first rows of JSON; `None` for other formats.
    pub(crate) fn keys(&mut self) -> Result<Option<Vec<String>>, DataError> {
        match &mut self.form {
            Opened::Json(data) => data.keys().map(Some),
            Opened::Csv(_) | Opened::Parquet(_) | Opened::Arrow(_) => Ok(None),
        }
    }

    /// Returns true if one of the files has a column `name`. Always true for JSON, whose keys are known only after reading; a key that no
    /// object has is missing in every row.
    pub fn has(&self, name: &str) -> bool {
        self.later_names.binary_search_by(|other| other.as_str().cmp(name)).is_ok() || self.first_has(name)
    }

    fn first_has(&self, name: &str) -> bool {
        match &self.form {
            Opened::Csv(data) => data.has(name),
            Opened::Json(_) => true,
            Opened::Parquet(data) => data.has(name),
            Opened::Arrow(data) => data.has(name),
        }
    }

    /// Returns true if the data are a CSV whose header would have a column `name` if it were split at another delimiter.
    pub fn has_otherwise(&self, name: &str) -> bool {
        matches!(&self.form, Opened::Csv(data) if data.other_delimiter(name).is_some())
    }

    /// The names of the data's columns; empty for JSON, whose keys are known only after reading.
    pub fn names(&self) -> Vec<&str> {
        match &self.form {
            Opened::Csv(data) => data.names(),
            Opened::Json(_) => Vec::new(),
            Opened::Parquet(data) => data.names(),
            Opened::Arrow(data) => data.names(),
        }
    }

    /// Finds the requested columns, and infers the types of inputs that have no declared type. Columns that are not requested are ignored. If every
    /// input has a declared type, no rows are read ahead.
    ///
    /// # Errors
    /// If a requested column is absent or its type does not fit, if the first rows (read to find a type) cannot be read as rows, or if there are more
    /// columns than may be in memory at once.
    pub fn bind(mut self, request: &Request) -> Result<Table, DataError> {
        let later = std::mem::take(&mut self.later);
        let table = self.bind_alone(request)?;
        if later.is_empty() { Ok(table) } else { several::after(table, later, request) }
    }

    fn bind_alone(self, request: &Request) -> Result<Table, DataError> {
        // JSON counts all of its columns itself, once it knows them.
        let kept = match &request.keep {
            Keep::None => 0,
            Keep::These(names) => names.len(),
            Keep::All => self.names().len(),
        };
        let counted = count_columns(request.leaves.len() + kept, COLUMN_BYTES, self.most_bytes);
        counted.map_err(|error| error.in_file(&self.name))?;
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
        Format::Parquet => {
            parquet::ParquetData::open(input.into_file(options.most_bytes)?, options).map(Opened::Parquet)
        }
        Format::Arrow => ipc::ArrowData::open(input, options).map(Opened::Arrow),
        Format::Table => Err(DataError::unreadable("a table can only be written, not read")),
    }
}
