//! The bytes of a Parquet file on their way to Parquet's library: lengths are looked at before it believes them. Of the footer that is
//! the length, how deep columns nest, and how many elements lists have; of each page how many bytes it is to become, and how many values
//! it says to have.

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

/// The bytes behind a footer: its length, and the mark.
const TAIL_BYTES: u64 = 8;

/// Metadata take at most this share of what a file may take: what is made of them takes that much more memory.
pub(crate) const METADATA_SHARE: u64 = 64;

/// The most columns inside of each other, the groups of Parquet's lists and maps included.
const SCHEMA_DEPTH: usize = 128;

/// Rows that are read at once take at most this share of what a file may take.
const ROWS_SHARE: u64 = 8;

/// The bytes of memory that a value takes at least, with its levels.
const VALUE_BYTES: u64 = 16;

/// No codec makes more bytes of one: zstd repeats a byte up to 131,072 times in a block of four.
pub(crate) const MOST_RATIO: u64 = 1 << 15;

/// A codec may make so many bytes of any.
const ANY_BYTES: u64 = 1 << 17;

/// A file whose footer was looked at.
pub(crate) struct Chunks {
    file: File,
    state: Arc<Mutex<State>>,
    most_bytes: u64,
}

/// What is known of the columns that are read.
#[derive(Default)]
struct State {
    /// In the order in which they lie in the file.
    chunks: Vec<Chunk>,
    /// For each column of the file the bytes of its dictionary, of its page, and of what is made of that.
    held: Vec<[u64; 3]>,
    /// The bytes of the values of lists, and of the pages of strings, that were begun for the rows that are read now, and what was made of
    /// pages that end among them.
    rows: u64,
    /// Why no more is read: the bytes that pages have together.
    too_large: Option<u64>,
}

/// The values of a column in a group of rows.
struct Chunk {
    start: u64,
    end: u64,
    column: usize,
    /// Where the data of the page lie whose header was read last, if there are any.
    data: Option<u64>,
    /// The bytes of a value in a column of lists; none in others, of which only so many rows are read at once.
    list_value: Option<u64>,
    /// True for strings: the rows that are read hold on to the pages.
    is_strings: bool,
}

/// What the header of a page says.
#[derive(Default)]
struct Page {
    is_dictionary: bool,
    size: i64,
    compressed: i64,
    values: i64,
}

impl Chunks {
    /// Looks at the footer of a file.
    ///
    /// # Errors
    /// It is none, or the columns that it names nest too deep.
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
            let message = format!("the footer has {len} bytes, more than a {METADATA_SHARE}th of {most_bytes}");
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

    /// Takes note of where columns lie, and says how many rows may be read at once.
    ///
    /// # Errors
    /// Columns lie upon each other, or have values that are larger than everything may be.
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
                let end = start.checked_add(len).ok_or_else(|| wrong("a column lies behind the end of the file"))?;
                let is_list = columns.get(column).is_some_and(|of| of.max_rep_level() > 0);
                let list_value = is_list.then(|| width(column));
                let is_strings = chunk.column_type() == Type::BYTE_ARRAY;
                chunks.push(Chunk { start, end, column, data: None, list_value, is_strings });
            }
        }
        chunks.sort_by_key(|chunk| chunk.start);
        if chunks.windows(2).any(|pair| pair[1].start < pair[0].end) {
            return Err(wrong("two columns lie upon each other"));
        }
        let row = (0..columns.len())
            .filter(|column| is_read(*column))
            .fold(0_u64, |sum, column| sum.saturating_add(width(column)));
        if row > self.most_bytes {
            return Err(too_large(format!("a row has {row} bytes, more than {}", self.most_bytes)));
        }
        // The rows under way are several times as many, and become columns of other types.
        let rows = (self.most_bytes / ROWS_SHARE).checked_div(row).unwrap_or(u64::MAX).max(1);
        let rows = usize::try_from(rows).unwrap_or(usize::MAX).min(batch_rows);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        *state = State { chunks, held: vec![[0; 3]; columns.len()], rows: 0, too_large: None };
        Ok((rows, Rows { state: self.state.clone(), most_bytes: self.most_bytes }))
    }
}

impl Chunks {
    /// Counts what is made of the page of a column beside its bytes: strings that share their beginnings.
    ///
    /// # Errors
    /// Pages have more than they may together.
    pub(crate) fn make(&self, column: usize, bytes: u64) -> Result<(), String> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(held) = state.held.get_mut(column) {
            held[2] = bytes;
        }
        state.compare(self.most_bytes)
    }
}

/// Says when the next rows are read, and why they are not.
pub(crate) struct Rows {
    state: Arc<Mutex<State>>,
    most_bytes: u64,
}

impl Rows {
    /// The values of lists and the strings that are read from now on are those of other rows.
    pub(crate) fn begin(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).rows = 0;
    }

    /// The error if rows are not read because they are too large.
    pub(crate) fn refusal(&self) -> Option<DataError> {
        let held = self.state.lock().unwrap_or_else(PoisonError::into_inner).too_large?;
        Some(too_large(format!("the pages of the next rows have {held} bytes, more than {}", self.most_bytes)))
    }
}

fn wrong(what: &str) -> DataError {
    DataError::unreadable(format!("not Parquet: {what}"))
}

/// More than may be read at once.
pub(crate) fn too_large(message: String) -> DataError {
    DataError::new(DataCode::Limit, message).hint("raise the limit: `--set-limit array_bytes=..`")
}

impl State {
    /// Looks at the header of a page. `None` if there is no column, or what is there are the data of a page.
    fn chunk(&mut self, start: u64) -> Option<&mut Chunk> {
        let at = self.chunks.partition_point(|chunk| chunk.start <= start).checked_sub(1)?;
        self.chunks.get_mut(at).filter(|chunk| start < chunk.end && chunk.data != Some(start))
    }

    /// Counts what a page is to become.
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
            return Err(format!("a page of {compressed} bytes says to become {size}"));
        }
        // Where there are no data, what lies at that place is the next header.
        chunk.data = (compressed > 0).then_some(data);
        let (column, list_value, is_strings) = (chunk.column, chunk.list_value, chunk.is_strings);
        let is_first = start == chunk.start;
        if let Some(held) = self.held.get_mut(column) {
            // The rows that are read now hold on to what was made of the page before.
            self.rows = self.rows.saturating_add(std::mem::take(&mut held[2]));
            if is_first {
                *held = [0; 3];
            }
            // Beside a dictionary there are the values that were made of it.
            if page.is_dictionary { *held = [size.saturating_mul(2), 0, 0] } else { held[1] = size }
        }
        if !page.is_dictionary {
            let strings = if is_strings { size } else { 0 };
            let taken = values.saturating_mul(list_value.unwrap_or(0)).saturating_add(strings);
            self.rows = self.rows.saturating_add(taken);
        }
        self.compare(most)
    }

    /// Compares what the pages have together with what they may.
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
            // The values of a page of data of the first and of the second version.
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

/// How deep the columns of a footer nest. They are listed one after the other, each with how many of the next ones are inside.
#[derive(Default)]
struct Depth {
    /// How many columns are still to come in each group that is open.
    open: Vec<u64>,
    /// What the column says that is being read.
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
                self.wrong = self.wrong.or(Some("it has fewer columns than it says"));
            }
            _ => {}
        }
    }

    fn column(&mut self) {
        let children = u64::try_from(std::mem::take(&mut self.children)).unwrap_or(0);
        self.columns = self.columns.saturating_add(1);
        match self.open.last_mut() {
            Some(left) => *left = left.saturating_sub(1),
            None if self.columns > 1 => self.wrong = self.wrong.or(Some("it has more columns than it says")),
            None => {}
        }
        if children > 0 {
            self.open.push(children);
        }
        while self.open.last() == Some(&0) {
            self.open.pop();
        }
        if self.open.len() > SCHEMA_DEPTH {
            // Nothing more is kept of it.
            self.open.truncate(1);
            self.wrong = self.wrong.or(Some("its columns nest more than 128 deep"));
        }
    }
}
