//! Reads Arrow's own form, as a stream: a file of it is a stream between a mark and a table of contents, which is not needed
//! to read from the beginning to the end. Of the columns only those that are needed are made.

use super::conversion::{Conversion, Planned};
use super::guard::guarded;
use super::input::Bytes;
use super::messages::{Messages, check_batch, check_schema};
use super::parquet::Read;
use super::{Held, Piece, ReadOptions, Request, Source, Spelling, Table};
use crate::error::DataError;
use arrow_array::{ArrayRef, RecordBatch};
use arrow_ipc::convert::fb_to_schema;
use arrow_ipc::reader::{RecordBatchDecoder, read_dictionary};
use arrow_ipc::{Message, MessageHeader, root_as_message};
use arrow_schema::{ArrowError, SchemaRef};
use std::collections::HashMap;
use std::io::{BufReader, Chain, Cursor, Read as _};
use std::sync::Arc;

/// What a file begins with, and a stream does not.
const MARK: &[u8] = b"ARROW1\0\0";

/// Messages are aligned to so many times the length of that, which is eight bytes.
const ALIGNED_WORDS: usize = 8;

/// The read buffer in bytes.
const BUFFER_BYTES: usize = 1 << 16;

/// The bytes of a stream, the first of which were looked at.
type Stream = Messages<BufReader<Chain<Cursor<Vec<u8>>, Bytes>>>;

/// A stream whose schema is read.
pub(crate) struct ArrowData {
    stream: Stream,
    schema: SchemaRef,
    batch_rows: usize,
    tolerant: bool,
    spelling: Spelling,
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
            start = word()?;
            for _ in 1..ALIGNED_WORDS {
                if start.len() < MARK.len() || start.iter().any(|byte| *byte != 0) {
                    break;
                }
                start = word()?;
            }
        }
        let bytes = BufReader::with_capacity(BUFFER_BYTES, Cursor::new(start).chain(bytes));
        let mut stream = Messages::new(bytes, options.most_bytes);
        let schema = guarded("Arrow", || {
            let metadata = stream.metadata()?.ok_or_else(|| DataError::unreadable("not Arrow: there is no schema"))?;
            let message = parse(&metadata)?;
            let none = || DataError::unreadable("not Arrow: it does not begin with a schema");
            let schema = message.header_as_schema().ok_or_else(none)?;
            check_schema(schema, metadata.len())?;
            stream.body(message.bodyLength())?;
            Ok(Arc::new(fb_to_schema(schema)))
        })?;
        let (batch_rows, spelling) = (options.batch_rows.max(1), options.spelling.clone());
        Ok(ArrowData { stream, schema, batch_rows, tolerant: options.tolerant, spelling })
    }

    /// True if there is a column of this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.schema.index_of(name).is_ok()
    }

    /// The names of the columns.
    pub(crate) fn names(&self) -> Vec<&str> {
        self.schema.fields().iter().map(|field| field.name().as_str()).collect()
    }

    /// Finds what is wanted among the columns.
    ///
    /// # Errors
    /// A column is not there, or of another type.
    pub(crate) fn bind(self, request: &Request) -> Result<Table, DataError> {
        let Planned { projection, leaves, kept, conversion } =
            Conversion::plan(&self.schema, request, self.tolerant, self.stream.most_bytes(), self.spelling)?;
        let ArrowData { stream, schema: stored, batch_rows, .. } = self;
        let schema = conversion.schema().clone();
        let dictionaries = Dictionaries::default();
        let source = ArrowSource {
            stream,
            stored,
            dictionaries,
            batch_rows,
            projection,
            conversion,
            at_hand: None,
            held: Held::default(),
            rows: 0,
        };
        Ok(Table { name: String::new(), leaves, kept, schema, numbered: true, total: None, source: Box::new(source) })
    }
}

fn parse(metadata: &[u8]) -> Result<Message<'_>, DataError> {
    root_as_message(metadata).map_err(|error| DataError::unreadable(format!("not Arrow: {error}")))
}

fn broken(error: ArrowError) -> DataError {
    DataError::unreadable(format!("not Arrow: {error}"))
}

/// The values of dictionaries so far.
#[derive(Default)]
struct Dictionaries {
    values: HashMap<i64, ArrayRef>,
    /// The bytes of each.
    bytes: HashMap<i64, u64>,
}

struct ArrowSource {
    stream: Stream,
    /// The columns of the stream.
    stored: SchemaRef,
    dictionaries: Dictionaries,
    batch_rows: usize,
    projection: Vec<usize>,
    conversion: Arc<Conversion>,
    /// What is left of the batch read last.
    at_hand: Option<RecordBatch>,
    /// The message that it lies in.
    held: Held,
    /// How many were passed on.
    rows: u64,
}

impl ArrowSource {
    /// The columns that are needed of the next rows; none behind the last.
    fn read(&mut self) -> Result<Option<RecordBatch>, DataError> {
        let most = self.stream.most_bytes();
        while let Some(metadata) = self.stream.metadata()? {
            let message = parse(&metadata)?;
            let body = self.stream.body(message.bodyLength())?;
            let version = message.version();
            if let Some(batch) = message.header_as_record_batch() {
                let bytes = check_batch(batch, &body, most)?.max(body.len() as u64);
                self.held = Held { block: self.held.block + 1, bytes };
                let (stored, values) = (self.stored.clone(), &self.dictionaries.values);
                let decoder = RecordBatchDecoder::try_new(&body, batch, stored, values, &version).map_err(broken)?;
                return decoder.with_projection(Some(&self.projection)).read_record_batch().map(Some).map_err(broken);
            }
            let Some(dictionary) = message.header_as_dictionary_batch() else {
                let found = message.header_type();
                // A message that says nothing.
                if found == MessageHeader::NONE {
                    continue;
                }
                return Err(DataError::unreadable(format!(
                    "not Arrow: a message of rows should be here, not {found:?}"
                )));
            };
            let Some(data) = dictionary.data() else {
                return Err(DataError::unreadable("not Arrow: a dictionary without values"));
            };
            let of = self.dictionaries.bytes.entry(dictionary.id()).or_default();
            let before = if dictionary.isDelta() { *of } else { 0 };
            *of = check_batch(data, &body, most)?.saturating_add(before);
            if self.dictionaries.bytes.values().fold(0, |sum: u64, bytes| sum.saturating_add(*bytes)) > most {
                return Err(super::chunks::too_large(format!("the dictionaries have more than {most} bytes")));
            }
            let values = &mut self.dictionaries.values;
            read_dictionary(&body, dictionary, &self.stored, values, &version).map_err(broken)?;
        }
        Ok(None)
    }
}

impl Source for ArrowSource {
    fn next(&mut self) -> Result<Option<Box<dyn Piece>>, DataError> {
        let whole = loop {
            match self.at_hand.take().filter(|rows| rows.num_rows() > 0) {
                Some(rows) => break rows,
                None => match guarded("Arrow", || self.read())? {
                    Some(read) => self.at_hand = Some(read),
                    None => return Ok(None),
                },
            }
        };
        let count = whole.num_rows().min(self.batch_rows);
        let (rows, first) = (whole.slice(0, count), self.rows + 1);
        self.at_hand = Some(whole.slice(count, whole.num_rows() - count));
        self.rows += count as u64;
        let (conversion, held) = (self.conversion.clone(), self.held);
        Ok(Some(Box::new(Read { rows, first, format: "Arrow", conversion, held })))
    }

    fn is_at_hand(&self) -> bool {
        self.at_hand.as_ref().is_some_and(|rows| rows.num_rows() > 0)
    }
}
