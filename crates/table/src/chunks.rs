//! Checks on the bytes of a Parquet file before Parquet's library trusts them. The footer is checked for its length, the nesting depth of columns
//! and the lengths of lists. Each page is checked for the decompressed size and the number of values that its header declares.

#![deny(clippy::arithmetic_side_effects)]

use super::thrift::{self, ThriftEvent};
use crate::error::{DataCode, DataError};
use ::parquet::basic::Type;
use ::parquet::errors::ParquetError;
use ::parquet::file::metadata::ParquetMetaData;
use ::parquet::file::reader::{ChunkReader, Length};
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::sync::{Arc, Mutex, PoisonError};

/// The number of bytes after the footer of a file. They are the footer's length and the magic number.
const TAIL_BYTES: u64 = 8;

/// The metadata of a Parquet file may take at most the memory limit divided by `METADATA_SHARE`, because decoded metadata take several times as
/// much memory.
pub(crate) const METADATA_SHARE: u64 = 64;

/// The most nested columns, the groups of Parquet's lists and maps included.
const SCHEMA_DEPTH: usize = 128;

/// The rows that are read at once may take at most one part in `ROWS_SHARE` of the memory limit.
const ROWS_SHARE: u64 = 8;

/// The fewest bytes of memory that a decoded value takes, with its repetition and definition level.
const VALUE_BYTES: u64 = 16;

/// The most bytes that decompression is expected to give per compressed byte. The extreme is zstd, where a block of four bytes may repeat a
/// byte 131,072 times.
pub(crate) const MOST_RATIO: u64 = 1 << 15;

/// The number of decompressed bytes that a page may have in addition to [`MOST_RATIO`] times its compressed bytes.
const ANY_BYTES: u64 = 1 << 17;

/// A Parquet file whose footer is checked, for reading its column chunks with checked pages.
pub(crate) struct Chunks {
    file: File,
    state: Arc<Mutex<State>>,
    most_bytes: u64,
}

/// The state of the columns that are read: where their chunks are in the file, and how much memory their pages take.
#[derive(Default)]
struct State {
    /// The column chunks, in the order of the file.
    chunks: Vec<Chunk>,
    /// For each column of the file, three sizes in bytes: its dictionary, its current page, and the values decoded from that page.
    held: Vec<[u64; 3]>,
    /// The bytes in memory for the batch of rows that is read now: values of lists, pages of strings, and values decoded from pages that end within
    /// the batch.
    rows: u64,
    /// The bytes of all pages together, if they exceeded the limit and reading stopped; `None` otherwise.
    too_large: Option<u64>,
}

/// A column chunk: the values of a column in a row group.
struct Chunk {
    start: u64,
    end: u64,
    column: usize,
    /// The offset of the data of the page whose header was read last; `None` if the page has no data.
    data: Option<u64>,
    /// The bytes per value in a column of lists; `None` for a column without lists, which has at most one value per row.
    list_value: Option<u64>,
    /// True if the column's values are strings. The decoded strings are views of their page, so the page stays in memory while the rows are used.
    is_strings: bool,
}

/// The fields of a page header.
#[derive(Default)]
struct Page {
    is_dictionary: bool,
    size: i64,
    compressed: i64,
    values: i64,
}

impl Chunks {
    /// Checks the footer of the Parquet file `file`. The pages that are in memory at a time may take at most `most_bytes` bytes together.
    ///
    /// # Errors
    /// If there is no valid footer, or its columns nest too deep.
    pub(crate) fn open(mut file: File, most_bytes: u64) -> Result<Chunks, DataError> {
        let size = file.metadata().map_err(DataError::unread)?.len();
        let footer = |file: &mut File| -> io::Result<Option<(u64, u64)>> {
            let Some(end) = size.checked_sub(TAIL_BYTES) else { return Ok(None) };
            file.seek(SeekFrom::Start(end))?;
            let mut tail = [0; TAIL_BYTES as usize];
            file.read_exact(&mut tail)?;
            let len = u32::from_le_bytes([tail[0], tail[1], tail[2], tail[3]]);
            Ok(end.checked_sub(u64::from(len)).map(|start| (start, u64::from(len))))
        };
        let (start, len) = footer(&mut file)
            .map_err(DataError::unread)?
            .ok_or_else(|| DataError::unreadable("not Parquet: the file is shorter than its footer"))?;
        if len > most_bytes / METADATA_SHARE {
            let message = format!("the footer has {len} bytes; the limit is {most_bytes} / {METADATA_SHARE} bytes");
            return Err(too_large(message));
        }
        let mut depth = Depth::default();
        let read = |file: &mut File, depth: &mut Depth| -> io::Result<u64> {
            file.seek(SeekFrom::Start(start))?;
            thrift::walk(BufReader::new(file), len, |path, seen| depth.see(path, seen))
        };
        read(&mut file, &mut depth)
            .map_err(|error| DataError::unreadable(format!("not Parquet: its footer: {error}")))?;
        match depth.wrong {
            Some(wrong) => Err(DataError::unreadable(format!("not Parquet: {wrong}"))),
            None => Ok(Chunks { file, state: Arc::default(), most_bytes }),
        }
    }

    /// Records the position in the file of each column for which `is_read` returns true. Returns the number of rows that may be read at once, at
    /// most `batch_rows`.
    ///
    /// # Errors
    /// If columns overlap in the file, or a row is larger than the memory limit.
    pub(crate) fn expect(
        &self,
        metadata: &ParquetMetaData,
        is_read: impl Fn(usize) -> bool,
        batch_rows: usize,
    ) -> Result<(usize, Rows), DataError> {
        let columns = metadata.file_metadata().schema_descr().columns();
        let width = |column: usize| {
            let descriptor = columns.get(column);
            let fixed = descriptor.and_then(|of| match of.self_type().is_primitive() {
                true => u64::try_from(of.type_length()).ok(),
                false => None,
            });
            fixed.unwrap_or(0).max(VALUE_BYTES)
        };
        let mut chunks = Vec::new();
        for group in metadata.row_groups() {
            for (column, chunk) in group.columns().iter().enumerate().filter(|(column, _)| is_read(*column)) {
                let (start, len) = chunk.byte_range();
                let end = start.checked_add(len).ok_or_else(|| wrong("a column ends after the end of the file"))?;
                let is_list = columns.get(column).is_some_and(|of| of.max_rep_level() > 0);
                let list_value = is_list.then(|| width(column));
                let is_strings = chunk.column_type() == Type::BYTE_ARRAY;
                chunks.push(Chunk { start, end, column, data: None, list_value, is_strings });
            }
        }
        chunks.sort_by_key(|chunk| chunk.start);
        if chunks.windows(2).any(|pair| pair[1].start < pair[0].end) {
            return Err(wrong("two columns overlap in the file"));
        }
        let row = (0..columns.len())
            .filter(|column| is_read(*column))
            .fold(0_u64, |sum, column| sum.saturating_add(width(column)));
        if row > self.most_bytes {
            return Err(too_large(format!("a row has {row} bytes; the limit is {} bytes", self.most_bytes)));
        }
        // Several times as many rows are in progress at once, and they become columns of other types.
        let rows = (self.most_bytes / ROWS_SHARE).checked_div(row).unwrap_or(u64::MAX).max(1);
        let rows = usize::try_from(rows).unwrap_or(usize::MAX).min(batch_rows);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        *state = State { chunks, held: vec![[0; 3]; columns.len()], rows: 0, too_large: None };
        Ok((rows, Rows { state: self.state.clone(), most_bytes: self.most_bytes }))
    }
}

impl Chunks {
    /// Records that the strings decoded from a page of `column` take `bytes` bytes. These strings take memory in addition to the page, because a
    /// prefix that several strings share is stored only once in the page.
    ///
    /// # Errors
    /// If all pages together exceed the limit.
    pub(crate) fn make(&self, column: usize, bytes: u64) -> Result<(), String> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(held) = state.held.get_mut(column) {
            held[2] = bytes;
        }
        state.compare(self.most_bytes)
    }
}

/// Access to the memory checks of pages, for the reader of rows. The reader resets the checks when a batch of rows
/// begins, and asks for the reason why reading stopped.
pub(crate) struct Rows {
    state: Arc<Mutex<State>>,
    most_bytes: u64,
}

impl Rows {
    /// Begins the next batch of rows: list values and strings that are read from now on count as memory of that batch.
    pub(crate) fn begin(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).rows = 0;
    }

    /// The error that the pages of the next batch of rows exceed the memory limit; `None` if they fit.
    pub(crate) fn refusal(&self) -> Option<DataError> {
        let held = self.state.lock().unwrap_or_else(PoisonError::into_inner).too_large?;
        Some(too_large(format!("the pages of the next rows have {held} bytes; the limit is {} bytes", self.most_bytes)))
    }
}

fn wrong(what: &str) -> DataError {
    DataError::unreadable(format!("not Parquet: {what}"))
}

/// The error that more bytes would be read at once than the memory limit allows. `message` says which bytes.
pub(crate) fn too_large(message: String) -> DataError {
    DataError::new(DataCode::Limit, message).hint("raise the limit: `--set-limit array_bytes=..`")
}

impl State {
    /// The chunk in which a page header begins at `start`. `None` if no chunk has this offset, or the data of a page begin there.
    fn chunk(&mut self, start: u64) -> Option<&mut Chunk> {
        let at = self.chunks.partition_point(|chunk| chunk.start <= start).checked_sub(1)?;
        self.chunks.get_mut(at).filter(|chunk| start < chunk.end && chunk.data != Some(start))
    }

    /// Counts the memory that a page will need, and checks the sizes in its header.
    fn page(&mut self, start: u64, header: u64, page: &Page, most: u64) -> Result<(), String> {
        let (Ok(size), Ok(compressed), Ok(values)) =
            (u64::try_from(page.size), u64::try_from(page.compressed), u64::try_from(page.values))
        else {
            return Err("a page has a negative length".to_owned());
        };
        let Some(chunk) = self.chunk(start) else { return Ok(()) };
        let data = start.saturating_add(header);
        if compressed > chunk.end.saturating_sub(data) {
            return Err("a page is longer than its column".to_owned());
        }
        if size > compressed.saturating_mul(MOST_RATIO).saturating_add(ANY_BYTES) {
            return Err(format!("a page of {compressed} bytes claims to have {size} bytes uncompressed"));
        }
        // If a page has no data, the next header begins at that offset.
        chunk.data = (compressed > 0).then_some(data);
        let (column, list_value, is_strings) = (chunk.column, chunk.list_value, chunk.is_strings);
        let is_first = start == chunk.start;
        if let Some(held) = self.held.get_mut(column) {
            // The current rows keep the values decoded from the previous page in memory.
            self.rows = self.rows.saturating_add(std::mem::take(&mut held[2]));
            if is_first {
                *held = [0; 3];
            }
            // The values made from a dictionary take memory in addition to it.
            if page.is_dictionary { *held = [size.saturating_mul(2), 0, 0] } else { held[1] = size }
        }
        if !page.is_dictionary {
            let strings = if is_strings { size } else { 0 };
            let taken = values.saturating_mul(list_value.unwrap_or(0)).saturating_add(strings);
            self.rows = self.rows.saturating_add(taken);
        }
        self.compare(most)
    }

    /// Checks the memory for all pages against `most` bytes.
    fn compare(&mut self, most: u64) -> Result<(), String> {
        let held = self.held.iter().flatten().fold(self.rows, |sum, bytes| sum.saturating_add(*bytes));
        if held > most {
            self.too_large = Some(held);
            return Err("the pages of the next rows are too large".to_owned());
        }
        Ok(())
    }
}

impl Length for Chunks {
    fn len(&self) -> u64 {
        Length::len(&self.file)
    }
}

impl ChunkReader for Chunks {
    type T = BufReader<File>;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        let mut reader = self.file.get_read(start)?;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(end) = state.chunk(start).map(|chunk| chunk.end) else { return Ok(reader) };
        let mut page = Page::default();
        let header = thrift::walk(&mut reader, end.saturating_sub(start), |path, seen| match (path, seen) {
            ([1], ThriftEvent::Number(kind)) => page.is_dictionary = kind == 2,
            ([2], ThriftEvent::Number(size)) => page.size = size,
            ([3], ThriftEvent::Number(size)) => page.compressed = size,
            // The number of values in a data page of version 1 or 2.
            ([5 | 8, 1], ThriftEvent::Number(values)) => page.values = values,
            _ => {}
        });
        let header = header.map_err(|error| ParquetError::General(format!("the header of a page: {error}")))?;
        state.page(start, header, &page, self.most_bytes).map_err(ParquetError::General)?;
        reader.seek_relative(0_i64.saturating_sub_unsigned(header))?;
        Ok(reader)
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<bytes::Bytes, ParquetError> {
        self.file.get_bytes(start, length)
    }
}

/// The nesting of the columns in a footer. Columns are listed in sequence, each with the number of its children.
#[derive(Default)]
struct Depth {
    /// For each group (a schema element with children) whose children are not all read yet, the number of children
    /// still to come.
    open: Vec<u64>,
    /// The number of children of the column that is being read.
    children: i64,
    columns: u64,
    wrong: Option<&'static str>,
}

impl Depth {
    fn see(&mut self, path: &[i16], seen: ThriftEvent) {
        match (path, seen) {
            ([2, 5], ThriftEvent::Number(children)) => self.children = children,
            ([2], ThriftEvent::End) => self.column(),
            ([], ThriftEvent::End) if !self.open.is_empty() => {
                self.wrong = self.wrong.or(Some("the schema has fewer columns than it declares"));
            }
            _ => {}
        }
    }

    fn column(&mut self) {
        let children = u64::try_from(std::mem::take(&mut self.children)).unwrap_or(0);
        self.columns = self.columns.saturating_add(1);
        match self.open.last_mut() {
            Some(left) => *left = left.saturating_sub(1),
            None if self.columns > 1 => {
                self.wrong = self.wrong.or(Some("the schema has more columns than it declares"));
            }
            None => {}
        }
        if children > 0 {
            self.open.push(children);
        }
        while self.open.last() == Some(&0) {
            self.open.pop();
        }
        if self.open.len() > SCHEMA_DEPTH {
            // The nesting is not tracked any further.
            self.open.truncate(1);
            self.wrong = self.wrong.or(Some("columns are nested more than 128 deep, which is the limit"));
        }
    }
}
