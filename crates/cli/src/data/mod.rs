//! Data in and out: rows of typed values from CSV and JSON, and results to CSV, JSON and tables. Models are not known
//! here, only the names and types of what they take and give.
//!
//! The way in: [`Dataset::open`], then [`Dataset::bind`] with the leaves wanted, then [`Rows::read`] row by row. The
//! way out: an [`output::Output`] and a [`write::RowWriter`] on it.

pub(crate) mod csv;
pub(crate) mod error;
pub(crate) mod json;
pub(crate) mod objects;
pub(crate) mod output;
pub(crate) mod records;
pub(crate) mod scalar;
pub(crate) mod schema;
pub(crate) mod write;

#[cfg(test)]
mod tests;

use cembra_value::Value;
use error::{DataCode, DataError};
use schema::{Schema, Wanted};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

/// The byte order mark of UTF-8.
const MARK: &[u8] = "\u{feff}".as_bytes();

/// The read buffer in bytes.
const BUFFER_BYTES: usize = 1 << 16;

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
    /// A table for people; written only.
    Table,
}

impl Format {
    /// The format that the ending of a file's name stands for.
    pub(crate) fn of_path(path: &Path) -> Option<Format> {
        let ending = path.extension()?.to_str()?.to_ascii_lowercase();
        Some(match ending.as_str() {
            "csv" => Format::Csv,
            "tsv" | "tab" => Format::Tsv,
            "json" => Format::Json,
            "jsonl" | "ndjson" => Format::JsonLines,
            _ => return None,
        })
    }
}

/// How to read a file.
#[derive(Clone, Debug)]
pub(crate) struct ReadOptions {
    /// Its format.
    pub(crate) format: Format,
    /// For CSV: what stands for missing, instead of an empty field.
    pub(crate) null: Option<String>,
}

/// Where bytes come from, and the name that messages give it.
pub(crate) struct Input {
    name: String,
    reader: Box<dyn Read>,
    size: Option<u64>,
}

/// How many bytes of data without a telling name are read at once to find its format.
const GUESS_BYTES: usize = 4096;

impl Input {
    /// Any reader, under a name for messages.
    pub(crate) fn new(name: impl Into<String>, reader: impl Read + 'static) -> Self {
        Input { name: name.into(), reader: Box::new(reader), size: None }
    }

    /// A file.
    ///
    /// # Errors
    /// It cannot be opened.
    pub(crate) fn file(path: &Path) -> Result<Self, DataError> {
        let name = path.display().to_string();
        let file = File::open(path).map_err(|cause| DataError::io("cannot open", cause).in_file(&name))?;
        let size = file.metadata().ok().filter(std::fs::Metadata::is_file).map(|known| known.len());
        Ok(Input { size, ..Input::new(name, file) })
    }

    /// Standard input.
    pub(crate) fn stdin() -> Self {
        Input::new("<stdin>", io::stdin())
    }

    /// The bytes there are, if that is known.
    pub(crate) fn size(&self) -> Option<u64> {
        self.size
    }

    /// The same bytes through another reader, which may count them.
    pub(crate) fn through<R: Read + 'static>(self, wrap: impl FnOnce(Box<dyn Read>) -> R) -> Self {
        Input { reader: Box::new(wrap(self.reader)), ..self }
    }

    /// The format by the looks of the first byte that is no white space: JSON if it begins an array or object, else CSV.
    ///
    /// # Errors
    /// It cannot be read.
    pub(crate) fn guess(mut self) -> Result<(Self, Format), DataError> {
        let mut start = Vec::new();
        let format = loop {
            let text = start.strip_prefix(MARK).unwrap_or(&start).trim_ascii_start();
            match text.first() {
                Some(b'{' | b'[') => break Format::JsonLines,
                Some(_) if start.len() >= MARK.len() => break Format::Csv,
                _ => {}
            }
            // Only as much as is there: waiting for more would hold up the first rows of a slow pipe.
            let mut more = [0; GUESS_BYTES];
            match self.reader.read(&mut more) {
                Ok(0) => break Format::Csv,
                Ok(read) => start.extend_from_slice(&more[..read]),
                Err(cause) if cause.kind() == io::ErrorKind::Interrupted => {}
                Err(cause) => return Err(DataError::io("cannot read", cause).in_file(&self.name)),
            }
        };
        Ok((self.through(|rest| io::Cursor::new(start).chain(rest)), format))
    }
}

/// Data that is open: its columns are known, the types of what is wanted are not yet.
pub(crate) struct Dataset {
    name: String,
    form: Opened,
}

enum Opened {
    Csv(csv::CsvData),
    Json(json::JsonData),
}

/// Rows of values in the columns of a schema.
pub(crate) struct Rows {
    name: String,
    form: Bound,
    count: u64,
}

enum Bound {
    Csv(csv::CsvRows),
    Json(json::JsonRows),
}

impl Dataset {
    /// Opens data: skips a byte order mark, reads a CSV's header.
    ///
    /// # Errors
    /// It cannot be read, or its header is no header.
    pub(crate) fn open(input: Input, options: &ReadOptions) -> Result<Dataset, DataError> {
        let Input { name, reader, .. } = input;
        let form = open(reader, options).map_err(|error| error.in_file(&name))?;
        Ok(Dataset { name, form })
    }

    /// Finds the leaves wanted, and the types of those that have none; other columns are not looked at. With a type
    /// for every leaf nothing is read ahead.
    ///
    /// # Errors
    /// A column is not there, or the first rows, read to find a type, are no rows.
    pub(crate) fn bind(self, wanted: &[Wanted]) -> Result<Rows, DataError> {
        let form = match self.form {
            Opened::Csv(data) => data.bind(wanted).map(Bound::Csv),
            Opened::Json(data) => data.bind(wanted).map(Bound::Json),
        };
        Ok(Rows { form: form.map_err(|error| error.in_file(&self.name))?, name: self.name, count: 0 })
    }
}

fn open(reader: Box<dyn Read>, options: &ReadOptions) -> Result<Opened, DataError> {
    let input = without_mark(reader).map_err(|cause| DataError::io("cannot read", cause))?;
    let null = options.null.clone();
    match options.format {
        Format::Csv => csv::CsvData::open(input, b',', null).map(Opened::Csv),
        Format::Tsv => csv::CsvData::open(input, b'\t', null).map(Opened::Csv),
        Format::Json | Format::JsonLines => json::JsonData::open(input).map(Opened::Json),
        Format::Table => Err(DataError::new(DataCode::Unreadable, "tables are only written, never read")),
    }
}

/// The bytes after a byte order mark, if there is one.
fn without_mark(mut reader: Box<dyn Read>) -> io::Result<Box<dyn BufRead>> {
    let mut start = Vec::with_capacity(MARK.len());
    reader.by_ref().take(MARK.len() as u64).read_to_end(&mut start)?;
    if start == MARK {
        start.clear();
    }
    Ok(Box::new(BufReader::with_capacity(BUFFER_BYTES, io::Cursor::new(start).chain(reader))))
}

impl Rows {
    /// The columns of the rows, in the order wanted.
    pub(crate) fn schema(&self) -> &Schema {
        match &self.form {
            Bound::Csv(rows) => rows.schema(),
            Bound::Json(rows) => rows.schema(),
        }
    }

    /// Reads the next row into `row`, one value for each column; false after the last.
    ///
    /// # Errors
    /// The row is not of the file's form, or a value is not of its column's type. Nothing can be read after that.
    pub(crate) fn read(&mut self, row: &mut Vec<Value>) -> Result<bool, DataError> {
        let read = match &mut self.form {
            Bound::Csv(rows) => rows.read(row),
            Bound::Json(rows) => rows.read(row),
        };
        let read = read.map_err(|error| error.in_file(&self.name))?;
        self.count += u64::from(read);
        Ok(read)
    }

    /// Where the row read last stands: `rows.csv:17`.
    pub(crate) fn place(&self) -> String {
        let line = match &self.form {
            Bound::Csv(rows) => rows.line(),
            Bound::Json(rows) => rows.line(),
        };
        format!("{}:{line}", self.name)
    }

    /// How many rows were read.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }
}
