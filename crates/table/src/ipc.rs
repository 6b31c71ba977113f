//! Reads Arrow's own form, as a stream: a file of it is a stream between a mark and a table of contents, which is not needed
//! to read from the beginning to the end.

use super::conversion::{Conversion, Planned};
use super::input::Bytes;
use super::parquet::Read;
use super::{Piece, ReadOptions, Request, Source, Table};
use crate::error::DataError;
use arrow_array::RecordBatch;
use arrow_ipc::reader::StreamReader;
use std::io::{BufReader, Cursor, Read as _};
use std::sync::Arc;

/// What a file begins with, and a stream does not.
const MARK: &[u8] = b"ARROW1\0\0";

/// The read buffer in bytes.
const BUFFER_BYTES: usize = 1 << 16;

/// A stream whose schema is read.
pub(crate) struct ArrowData {
    reader: StreamReader<BufReader<Bytes>>,
    batch_rows: usize,
    tolerant: bool,
}

impl ArrowData {
    /// Reads the schema.
    ///
    /// # Errors
    /// The data are not Arrow's.
    pub(crate) fn open(mut bytes: Bytes, options: &ReadOptions) -> Result<Self, DataError> {
        let mut word = || -> Result<Vec<u8>, DataError> {
            let mut word = Vec::new();
            bytes.by_ref().take(MARK.len() as u64).read_to_end(&mut word).map_err(DataError::unread)?;
            Ok(word)
        };
        let mut start = word()?;
        if start == MARK {
            // Behind it there is room for nothing, up to where messages are aligned.
            while start == MARK || start.len() == MARK.len() && start.iter().all(|byte| *byte == 0) {
                start = word()?;
            }
        }
        let bytes: Bytes = Box::new(Cursor::new(start).chain(bytes));
        let reader = StreamReader::try_new(BufReader::with_capacity(BUFFER_BYTES, bytes), None)
            .map_err(|error| DataError::unreadable(format!("not Arrow: {error}")))?;
        Ok(ArrowData { reader, batch_rows: options.batch_rows.max(1), tolerant: options.tolerant })
    }

    /// True if there is a column of this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.reader.schema().index_of(name).is_ok()
    }

    /// Finds what is wanted among the columns.
    ///
    /// # Errors
    /// A column is not there, or of another type.
    pub(crate) fn bind(self, request: &Request) -> Result<Table, DataError> {
        let Planned { projection, leaves, kept, conversion } =
            Conversion::plan(&self.reader.schema(), request, self.tolerant)?;
        let ArrowData { reader, batch_rows, .. } = self;
        let schema = conversion.schema().clone();
        let source = ArrowSource { reader, batch_rows, projection, conversion, at_hand: None, rows: 0 };
        Ok(Table { name: String::new(), leaves, kept, schema, numbered: true, total: None, source: Box::new(source) })
    }
}

struct ArrowSource {
    reader: StreamReader<BufReader<Bytes>>,
    batch_rows: usize,
    projection: Vec<usize>,
    conversion: Arc<Conversion>,
    /// What is left of the batch read last.
    at_hand: Option<RecordBatch>,
    /// How many were passed on.
    rows: u64,
}

impl Source for ArrowSource {
    fn next(&mut self) -> Result<Option<Box<dyn Piece>>, DataError> {
        let broken = |error| DataError::unreadable(format!("not Arrow: {error}"));
        let whole = loop {
            match self.at_hand.take().filter(|rows| rows.num_rows() > 0) {
                Some(rows) => break rows,
                None => match self.reader.next() {
                    Some(read) => {
                        self.at_hand = Some(read.and_then(|rows| rows.project(&self.projection)).map_err(broken)?);
                    }
                    None => return Ok(None),
                },
            }
        };
        let count = whole.num_rows().min(self.batch_rows);
        let (rows, first) = (whole.slice(0, count), self.rows + 1);
        self.at_hand = Some(whole.slice(count, whole.num_rows() - count));
        self.rows += count as u64;
        Ok(Some(Box::new(Read { rows, first, conversion: self.conversion.clone() })))
    }
}
