//! Reader for Arrow IPC streams and files. A file is a stream between a magic number and a footer, so it is read like a stream. The footer is used
//! only if a file has no schema at its beginning, as Polars writes files. Columns that are not requested are not decoded.

use super::chunks::METADATA_SHARE;
use super::conversion::{Conversion, ConversionPlan};
use super::guard::guarded;
use super::input::{Bytes, Input};
use super::messages::{CONTINUES, Messages, check_batch, check_schema};
use super::parquet::ArrowPiece;
use super::unread::{UnreadableColumns, of_same_bytes, schema_of};
use super::{HeldBlock, Piece, ReadOptions, Request, Source, Spelling, Table};
use crate::error::DataError;
use crate::schema::Inferred;
use arrow_array::{ArrayRef, RecordBatch};
use arrow_ipc::reader::{RecordBatchDecoder, read_dictionary};
use arrow_ipc::{Message, MessageHeader, root_as_footer, root_as_message};
use arrow_schema::{ArrowError, Schema, SchemaRef};
use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::io::{self, BufReader, Read as _, Seek as _, SeekFrom};
use std::sync::Arc;

/// The magic number at the beginning of a file, padded. A stream does not have it.
const MARK: &[u8] = b"ARROW1\0\0";

/// The largest alignment of messages, in multiples of eight bytes, the length of the magic number.
const ALIGNED_WORDS: usize = 8;

/// The read buffer in bytes.
const BUFFER_BYTES: usize = 1 << 16;

/// The bytes after the footer of a file: its length, and the magic number.
const TAIL_BYTES: usize = 10;

/// The messages of a stream or file.
type Stream = Messages<BufReader<Bytes>>;

/// An Arrow file or stream whose schema has been read.
pub(crate) struct ArrowData {
    stream: Stream,
    schema: SchemaRef,
    unread: UnreadableColumns,
    batch_rows: usize,
    tolerant: bool,
    spelling: Spelling,
}

impl ArrowData {
    /// Opens Arrow data and reads their schema.
    ///
    /// # Errors
    /// If the data are not Arrow IPC.
    pub(crate) fn open(input: Input, options: &ReadOptions) -> Result<Self, DataError> {
        let (input, start) = input.with_start(MARK.len() * (1 + ALIGNED_WORDS))?;
        let (stream, (schema, unread)) = match start.strip_prefix(MARK) {
            None => ArrowData::in_front(input.into_bytes()?, options)?,
            Some(behind) => {
                // After the magic number there may be zeros, up to the alignment of messages.
                let empty = behind.chunks(MARK.len()).take_while(|word| word.iter().all(|byte| *byte == 0)).count();
                if empty >= ALIGNED_WORDS {
                    return Err(DataError::unreadable("not Arrow: there is no schema"));
                }
                let before = MARK.len() * (1 + empty);
                if start.get(before..).is_some_and(|message| message.starts_with(&CONTINUES)) {
                    let mut bytes = input.into_bytes()?;
                    bytes.read_exact(&mut vec![0; before]).map_err(DataError::unread)?;
                    ArrowData::in_front(bytes, options)?
                } else {
                    ArrowData::in_footer(input.into_file(options.most_bytes)?, options)?
                }
            }
        };
        let (batch_rows, spelling) = (options.batch_rows.max(1), options.spelling.clone());
        let schema = Arc::new(schema);
        Ok(ArrowData { stream, schema, unread, batch_rows, tolerant: options.tolerant, spelling })
    }

    /// Opens a stream that begins with its schema.
    fn in_front(bytes: Bytes, options: &ReadOptions) -> Result<(Stream, (Schema, UnreadableColumns)), DataError> {
        let mut stream = Messages::new(BufReader::with_capacity(BUFFER_BYTES, bytes), options.most_bytes);
        let schema = guarded("Arrow", || {
            let metadata = stream.metadata()?.ok_or_else(|| DataError::unreadable("not Arrow: there is no schema"))?;
            let message = parse(&metadata)?;
            let none = || DataError::unreadable("not Arrow: it does not begin with a schema");
            let schema = message.header_as_schema().ok_or_else(none)?;
            check_schema(schema, metadata.len())?;
            stream.body(message.bodyLength())?;
            schema_of(schema, |_, field| of_same_bytes(field))
        })?;
        Ok((stream, schema))
    }

    /// Opens a file by its footer, which has the schema and the positions of messages.
    fn in_footer(mut file: File, options: &ReadOptions) -> Result<(Stream, (Schema, UnreadableColumns)), DataError> {
        let footer = footer(&mut file, options.most_bytes)?;
        let (schema, messages) = guarded("Arrow", || {
            let contents =
                root_as_footer(&footer).map_err(|error| DataError::unreadable(format!("not Arrow: {error}")))?;
            let none = || DataError::unreadable("not Arrow: there is no schema");
            let schema = contents.schema().ok_or_else(none)?;
            check_schema(schema, footer.len())?;
            // Rows refer to values of dictionaries, so dictionaries come first.
            let blocks =
                contents.dictionaries().into_iter().flatten().chain(contents.recordBatches().into_iter().flatten());
            let messages = blocks.map(|block| {
                let start = u64::try_from(block.offset()).ok()?;
                let len = u64::try_from(block.bodyLength()).ok()?;
                Some((start, len.checked_add(u64::try_from(block.metaDataLength()).ok()?)?))
            });
            let wrong =
                || DataError::unreadable("not Arrow: the footer refers to a message before the start of the file");
            let messages = messages.collect::<Option<VecDeque<_>>>().ok_or_else(wrong)?;
            Ok((schema_of(schema, |_, field| of_same_bytes(field))?, messages))
        })?;
        let bytes: Bytes = Box::new(Parts { file, left: 0, parts: messages });
        Ok((Messages::new(BufReader::with_capacity(BUFFER_BYTES, bytes), options.most_bytes), schema))
    }

    /// Returns true if the data have a column `name`.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.schema.index_of(name).is_ok()
    }

    /// The names of the data's columns.
    pub(crate) fn names(&self) -> Vec<&str> {
        self.schema.fields().iter().map(|field| field.name().as_str()).collect()
    }

    /// Finds the requested columns among the data's columns.
    ///
    /// # Errors
    /// If a requested column is absent, or its type does not fit.
    pub(crate) fn bind(self, request: &Request) -> Result<Table, DataError> {
        self.unread.check(request)?;
        let ConversionPlan { projection, leaves, kept, counted, conversion } =
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
            held: HeldBlock::default(),
            rows: 0,
        };
        let (inferred, counted, source) = (Inferred::of_columns(&leaves), Some(counted), Box::new(source));
        Ok(Table { name: String::new(), leaves, kept, inferred, counted, schema, numbered: true, total: None, source })
    }
}

/// Reads the footer of a file into memory that is aligned, because the footer may begin at any byte.
fn footer(file: &mut File, most_bytes: u64) -> Result<Vec<u8>, DataError> {
    let cut = || DataError::unreadable("not Arrow: the file ends in the middle");
    let size = file.metadata().map_err(DataError::unread)?.len();
    let end = size.checked_sub(TAIL_BYTES as u64).ok_or_else(cut)?;
    file.seek(SeekFrom::Start(end)).map_err(DataError::unread)?;
    let mut tail = [0; TAIL_BYTES];
    file.read_exact(&mut tail).map_err(DataError::unread)?;
    let [a, b, c, d, mark @ ..] = tail;
    let len = u64::try_from(i32::from_le_bytes([a, b, c, d])).map_err(|_| cut())?;
    let start = end.checked_sub(len).filter(|_| MARK.starts_with(&mark)).ok_or_else(cut)?;
    if len > most_bytes / METADATA_SHARE {
        let message = format!("the footer has {len} bytes; the limit is {most_bytes} / {METADATA_SHARE} bytes");
        return Err(super::chunks::too_large(message));
    }
    file.seek(SeekFrom::Start(start)).map_err(DataError::unread)?;
    let mut footer = Vec::new();
    file.take(len).read_to_end(&mut footer).map_err(DataError::unread)?;
    Ok(footer)
}

/// A reader of several parts of a file, one after the other: the messages that the file's footer lists.
struct Parts {
    file: File,
    /// The number of bytes of the current part of the file that are still to be read.
    left: u64,
    /// The offset and the length of each part after the current one.
    parts: VecDeque<(u64, u64)>,
}

impl io::Read for Parts {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.left == 0 {
            let Some((start, len)) = self.parts.pop_front() else { return Ok(0) };
            self.file.seek(SeekFrom::Start(start))?;
            self.left = len;
        }
        let read = self.file.by_ref().take(self.left).read(into)?;
        // At the end of the file, the rest of this part is missing.
        self.left = if read == 0 { 0 } else { self.left - read as u64 };
        Ok(read)
    }
}

fn parse(metadata: &[u8]) -> Result<Message<'_>, DataError> {
    root_as_message(metadata).map_err(|error| DataError::unreadable(format!("not Arrow: {error}")))
}

fn broken(error: ArrowError) -> DataError {
    DataError::unreadable(format!("not Arrow: {error}"))
}

/// The values of the dictionaries read so far, by id.
#[derive(Default)]
struct Dictionaries {
    values: HashMap<i64, ArrayRef>,
    /// The size of each dictionary in bytes, by the dictionary's id.
    bytes: HashMap<i64, u64>,
}

/// A source of the rows of Arrow data.
struct ArrowSource {
    stream: Stream,
    /// The schema of the stream.
    stored: SchemaRef,
    dictionaries: Dictionaries,
    batch_rows: usize,
    projection: Vec<usize>,
    conversion: Arc<Conversion>,
    /// The rows of the last batch that are not returned yet; `None` if there are none.
    at_hand: Option<RecordBatch>,
    /// The memory block of the message that holds the rows in `at_hand`.
    held: HeldBlock,
    /// The number of rows returned so far.
    rows: u64,
}

impl ArrowSource {
    /// Reads the needed columns of the next batch; `None` after the last.
    fn read(&mut self) -> Result<Option<RecordBatch>, DataError> {
        let most = self.stream.most_bytes();
        while let Some(metadata) = self.stream.metadata()? {
            let message = parse(&metadata)?;
            let body = self.stream.body(message.bodyLength())?;
            let version = message.version();
            if let Some(batch) = message.header_as_record_batch() {
                let bytes = check_batch(batch, &body, most)?.max(body.len() as u64);
                self.held = HeldBlock { block: self.held.block + 1, bytes };
                let (stored, values) = (self.stored.clone(), &self.dictionaries.values);
                let decoder = RecordBatchDecoder::try_new(&body, batch, stored, values, &version).map_err(broken)?;
                return decoder.with_projection(Some(&self.projection)).read_record_batch().map(Some).map_err(broken);
            }
            let Some(dictionary) = message.header_as_dictionary_batch() else {
                let found = message.header_type();
                // An empty message.
                if found == MessageHeader::NONE {
                    continue;
                }
                return Err(DataError::unreadable(format!("not Arrow: expected a message with rows, found {found:?}")));
            };
            let Some(data) = dictionary.data() else {
                return Err(DataError::unreadable("not Arrow: a dictionary without values"));
            };
            let of = self.dictionaries.bytes.entry(dictionary.id()).or_default();
            let before = if dictionary.isDelta() { *of } else { 0 };
            *of = check_batch(data, &body, most)?.saturating_add(before);
            if self.dictionaries.bytes.values().fold(0, |sum: u64, bytes| sum.saturating_add(*bytes)) > most {
                return Err(super::chunks::too_large(format!("the dictionaries exceed the limit of {most} bytes")));
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
        Ok(Some(Box::new(ArrowPiece { rows, first, format: "Arrow", conversion, held })))
    }

    fn is_at_hand(&self) -> bool {
        self.at_hand.as_ref().is_some_and(|rows| rows.num_rows() > 0)
    }
}
