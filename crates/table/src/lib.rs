//! Tables for cembra: rows in batches of columns, from files to files, and NumPy's arrays. A batch is an Arrow `RecordBatch`, with
//! the lines or numbers of its rows. A model is not run here: this crate knows the names and types of its inputs and outputs only.
//!
//! Reading starts with [`Dataset::open`]; [`Dataset::bind`] with the columns wanted gives a [`Table`], whose [`Source`] gives
//! [`Piece`]s that any thread may decode. Writing goes through a [`sink::Sink`]. Every problem with data is a [`error::DataError`].

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
use several::Later;
pub use several::{ColumnTypes, Following};
use std::collections::BTreeMap;
use std::path::Path;

/// How many rows are computed at once, if nobody says otherwise.
pub const BATCH_ROWS: usize = 1 << 16;

/// How many bytes of a file may be in memory at once, if nobody says otherwise.
pub const MOST_BYTES: u64 = 4 << 30;

/// A form of data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
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
    pub fn of_path(path: &Path) -> Option<Format> {
        let ending = |path: &Path| Some(path.extension()?.to_str()?.to_ascii_lowercase());
        let last = ending(path)?;
        match last.as_str() {
            "gz" | "zst" | "zstd" => Format::of_ending(&ending(Path::new(path.file_stem()?))?),
            last => Format::of_ending(last),
        }
    }

    /// The format for the ending of a file name, which must be in lower case; `None` if there is none.
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

/// How to read a file.
#[derive(Clone, Debug)]
pub struct ReadOptions {
    /// Its format.
    pub format: Format,
    /// For CSV: what stands for missing, beside an empty field.
    pub nulls: Vec<String>,
    /// For CSV: what separates fields; else what the header has most of.
    pub delimiter: Option<u8>,
    /// The spelling of values; its decimal comma is for CSV only.
    pub spelling: Spelling,
    /// About how many rows are read at once.
    pub batch_rows: usize,
    /// The most bytes that is made at once of what is compressed or says how long it is: a message of Arrow, the pages that
    /// rows of Parquet lie in.
    pub most_bytes: u64,
    /// True if rows that are no rows are passed over, and told of.
    pub tolerant: bool,
}

/// Which columns of the data are carried through.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub enum Keep {
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
pub struct Request {
    /// The leaves of the model.
    pub leaves: Vec<RequestedLeaf>,
    /// The columns that are carried through.
    pub keep: Keep,
    /// Types of some of them, in data that have none of their own.
    pub kept_types: BTreeMap<String, QType>,
    /// True if a CSV's fields are carried through as they are written, not as values of a type found for them.
    pub verbatim: bool,
    /// The names of the outputs if columns of JSON are carried through as they are written, for results that are JSON too; `None` if the columns are
    /// carried through as values.
    pub as_written: Option<Vec<String>>,
    /// The column types of the first file, in a request for a later one; else `None`.
    pub found: Option<ColumnTypes>,
}

/// How the values of a column are to be understood.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Form {
    /// As values of a type of models, which lie in an array of the type's Arrow form.
    Values(QType),
    /// As text in the file's own spelling, missing values included.
    Verbatim,
    /// As values of a type that models do not have.
    Foreign(DataType),
    /// As members of a JSON object, which replace the columns before this one; missing in rows where those columns have the values.
    AsWritten,
}

/// A column of results or of the data.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Named {
    /// Its name.
    pub name: String,
    /// Its values.
    pub form: Form,
}

/// Rows, and where they stood.
#[derive(Clone, Debug)]
pub struct Batch {
    /// First the leaves wanted, then the columns carried through.
    pub rows: RecordBatch,
    /// Where each row stood.
    pub places: Places,
}

impl Batch {
    /// Some of the rows.
    pub fn slice(&self, from: usize, count: usize) -> Batch {
        Batch { rows: self.rows.slice(from, count), places: self.places.from(from) }
    }
}

/// What was read of a piece of the data: rows, and what is wrong with the row after them.
#[derive(Debug)]
pub struct Decoded {
    /// The rows.
    pub batch: Batch,
    /// Rows that are no rows, where they are to be passed over, in their order. What is missing in them is missing.
    pub failures: Vec<(usize, DataError)>,
    /// Why there are no more rows.
    pub error: Option<DataError>,
}

impl Decoded {
    /// So many rows of these columns.
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

/// A batch of so many rows.
///
/// # Errors
/// The columns are not those of the schema.
pub fn batch(schema: &SchemaRef, columns: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch, DataError> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(schema.clone(), columns, &options)
        .map_err(|error| DataError::new(DataCode::Unreadable, error.to_string()))
}

/// A block of memory that a piece of a file holds. Several pieces hold the same block if the file says how long its parts are.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct HeldBlock {
    /// The number of the block. Those of neighbouring pieces differ unless they are the same.
    pub block: u64,
    /// Its bytes, with those that reading the piece makes of them.
    pub bytes: u64,
}

/// The part of a piece that is read at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Room {
    /// The most bytes that rows become, missing values included.
    pub bytes: u64,
    /// True if the first row is read also where it becomes more, up to what rows of the data may.
    pub takes_any_row: bool,
}

impl Room {
    /// Room for all rows.
    pub const ALL: Room = Room { bytes: u64::MAX, takes_any_row: true };

    /// True if there is room for `row` and the rows before it, which become `bytes` bytes together.
    pub(crate) const fn takes(self, row: usize, bytes: u64) -> bool {
        bytes <= self.bytes || row == 0 && self.takes_any_row
    }
}

/// A piece of the data that was cut off, so that it can be read at the same time as the next.
pub trait Piece: Send {
    /// Reads all of it.
    fn decode(self: Box<Self>) -> Decoded {
        self.decode_within(Room::ALL).0
    }

    /// Reads rows from the first on, as many as there is room for, and gives the rest back.
    fn decode_within(self: Box<Self>, room: Room) -> (Decoded, Option<Box<dyn Piece>>);

    /// What it holds on to; nothing of data that are cut off in bounded pieces.
    fn held(&self) -> HeldBlock {
        HeldBlock::default()
    }
}

impl Piece for Decoded {
    fn decode_within(self: Box<Self>, _: Room) -> (Decoded, Option<Box<dyn Piece>>) {
        (*self, None)
    }
}

/// Pieces of data, one after the other.
pub trait Source: Send {
    /// The next piece; none after the last.
    ///
    /// # Errors
    /// The data cannot be read. Nothing can be read after that.
    fn next(&mut self) -> Result<Option<Box<dyn Piece>>, DataError>;

    /// True if the next piece lies in memory that the last one holds on to.
    fn is_at_hand(&self) -> bool {
        false
    }
}

/// Data whose columns are found and typed.
pub struct Table {
    /// The file's name, for messages.
    pub name: String,
    /// The leaves, in the order wanted: the first columns of every batch.
    pub leaves: Vec<Column>,
    /// The columns carried through, which follow them.
    pub kept: Vec<Named>,
    /// The types of leaves and of columns carried through that were taken from the data.
    pub inferred: Vec<Inferred>,
    /// The types of dates and timestamps that leaves read from columns of whole numbers; `None` for data whose columns have no types.
    pub counted: Option<Vec<Scalar>>,
    /// The columns of every batch, as they are stored.
    pub schema: SchemaRef,
    /// True if a row's place is its number, not its line.
    pub numbered: bool,
    /// How many rows there are, if the file says so.
    pub total: Option<u64>,
    /// The rows.
    pub source: Box<dyn Source>,
}

impl Table {
    /// The table of a text without column types: the place of a row is its line, and the number of rows is unknown.
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

/// Data that is open: its columns are known, the types of what is wanted are not yet.
pub struct Dataset {
    name: String,
    format: Format,
    form: Opened,
    most_bytes: u64,
    /// The files after this one; `later_names` has the names of all their columns, sorted.
    later: Vec<Later>,
    later_names: Vec<String>,
}

/// About the bytes that a column takes besides its values: its name in several places, what is filled with its values, and the array
/// that these become.
const COLUMN_BYTES: u64 = 2_048;

/// About the bytes that the name of a column takes while columns are looked for, besides its text.
const NAME_BYTES: u64 = 256;

/// The count of columns that are free.
const FEW_COLUMNS: usize = 1_000;

/// The most failed rows among the rows that are read at once: an error takes more memory than most rows.
pub(crate) const MOST_FAILURES: usize = 4_096;

/// Counts columns before there is memory for them, of which each takes `each` bytes besides its values.
///
/// # Errors
/// They take more than there may be in memory at once.
pub(crate) fn count_columns(columns: usize, each: u64, most_bytes: u64) -> Result<(), DataError> {
    let bytes = (columns.saturating_sub(FEW_COLUMNS) as u64).saturating_mul(each);
    if bytes <= most_bytes {
        return Ok(());
    }
    Err(chunks::too_large(format!("{columns} columns take {bytes} bytes besides their values, more than {most_bytes}")))
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
    pub fn open(input: Input, options: &ReadOptions) -> Result<Dataset, DataError> {
        let name = input.name().to_owned();
        let form = open(input, options).map_err(|error| error.in_file(&name))?;
        let (format, most_bytes) = (options.format, options.most_bytes);
        Ok(Dataset { name, format, form, most_bytes, later: Vec::new(), later_names: Vec::new() })
    }

    /// Appends the rows of more files.
    ///
    /// # Errors
    /// A file cannot be opened, or is of another form than the first one.
    pub fn followed_by(mut self, files: Vec<Following>) -> Result<Dataset, DataError> {
        let mut names = Vec::new();
        for file in files {
            let later = Later::look(file, &self, &mut names)?;
            self.later.push(later);
            names.sort_unstable();
            names.dedup();
        }
        self.later_names = names;
        Ok(self)
    }

    /// The format of the data.
    pub fn format(&self) -> Format {
        self.format
    }

    /// The keys in the first rows of JSON; `None` for other data.
    pub(crate) fn keys(&mut self) -> Result<Option<Vec<String>>, DataError> {
        match &mut self.form {
            Opened::Json(data) => data.keys().map(Some),
            Opened::Csv(_) | Opened::Parquet(_) | Opened::Arrow(_) => Ok(None),
        }
    }

    /// False if no file has a column `name`. True for all JSON: only reading shows its keys, and a key that no object has is missing.
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

    /// True if the data are CSV that would have a column `name` with another delimiter.
    pub fn has_otherwise(&self, name: &str) -> bool {
        matches!(&self.form, Opened::Csv(data) if data.other_delimiter(name).is_some())
    }

    /// The names of the columns; of JSON only reading it tells.
    pub fn names(&self) -> Vec<&str> {
        match &self.form {
            Opened::Csv(data) => data.names(),
            Opened::Json(_) => Vec::new(),
            Opened::Parquet(data) => data.names(),
            Opened::Arrow(data) => data.names(),
        }
    }

    /// Finds what is wanted, and the types of the leaves that have none; other columns are not looked at. With a type for
    /// every leaf nothing is read ahead.
    ///
    /// # Errors
    /// A column is not there or of another type, or the first rows, read to find a type, are no rows; or there are more columns than may
    /// be in memory at once.
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
        Format::Table => Err(DataError::unreadable("tables are only written, never read")),
    }
}
