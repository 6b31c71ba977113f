//! The messages of a stream of Arrow, each as metadata and the bytes behind them. Nothing of them is believed before it was looked at:
//! lengths are read as far as there are bytes, buffers lie within the bytes of their message, and what they say to become is compared
//! with what a file may take. Schemas are looked at too, those in Parquet's metadata included.

#![deny(clippy::arithmetic_side_effects)]

use super::chunks::{METADATA_SHARE, MOST_RATIO, too_large};
use crate::error::DataError;
use arrow_buffer::Buffer;
use arrow_ipc::{CompressionType, Endianness, RecordBatch, Schema};
use std::io::{self, Read};

/// What the length of a message's metadata is behind, except in files of before 2020.
pub(crate) const CONTINUES: [u8; 4] = [0xff; 4];

/// The bytes in front of each compressed buffer: how many it becomes.
const PREFIX_BYTES: usize = 8;

/// What stands there in front of bytes that are as they were.
const AS_IT_WAS: i64 = -1;

/// The most fields inside of each other.
const SCHEMA_DEPTH: usize = 64;

/// How often the same bytes may be named as the name of a field.
const SHARED: usize = 16;

/// Reads messages.
pub(crate) struct Messages<R> {
    reader: R,
    most_bytes: u64,
}

impl<R: Read> Messages<R> {
    /// The messages of a stream, each of which may become so many bytes.
    pub(crate) fn new(reader: R, most_bytes: u64) -> Self {
        Messages { reader, most_bytes }
    }

    /// The most bytes that a message may become.
    pub(crate) const fn most_bytes(&self) -> u64 {
        self.most_bytes
    }

    /// The metadata of the next message; none behind the last.
    ///
    /// # Errors
    /// They end in the middle, or are more than metadata may be.
    pub(crate) fn metadata(&mut self) -> Result<Option<Vec<u8>>, DataError> {
        let mut word = [0; 4];
        match self.reader.read_exact(&mut word) {
            Ok(()) => {}
            // A stream may end without saying so.
            Err(cause) if cause.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            Err(cause) => return Err(DataError::unread(cause)),
        }
        let is_marked = word == CONTINUES;
        if is_marked {
            self.reader.read_exact(&mut word).map_err(DataError::unread)?;
        }
        let len = u64::try_from(i32::from_le_bytes(word)).map_err(|_| wrong("the length of a message is negative"))?;
        if len == 0 {
            return Ok(None);
        }
        if len > self.most_bytes / METADATA_SHARE {
            // Without the mark, four bytes of anything are a length.
            if !is_marked {
                return Err(wrong("a message should begin here"));
            }
            let message =
                format!("the metadata have {len} bytes, more than a {METADATA_SHARE}th of {}", self.most_bytes);
            return Err(too_large(message));
        }
        self.bytes(len).map(Some)
    }

    /// The bytes of a message.
    ///
    /// # Errors
    /// There are not so many, or more than there may be.
    pub(crate) fn body(&mut self, len: i64) -> Result<Buffer, DataError> {
        let len = u64::try_from(len).map_err(|_| wrong("the length of a message is negative"))?;
        if len > self.most_bytes {
            return Err(too_large(format!("a message has {len} bytes, more than {}", self.most_bytes)));
        }
        self.bytes(len).map(Buffer::from_vec)
    }

    /// So many bytes. Memory is taken for those that are there.
    fn bytes(&mut self, len: u64) -> Result<Vec<u8>, DataError> {
        let mut bytes = Vec::new();
        let read = self.reader.by_ref().take(len).read_to_end(&mut bytes).map_err(DataError::unread)?;
        if read as u64 == len { Ok(bytes) } else { Err(wrong("it ends in the middle of a message")) }
    }
}

fn wrong(what: &str) -> DataError {
    DataError::unreadable(format!("not Arrow: {what}"))
}

/// Looks at the fields of a schema in metadata of so many bytes.
///
/// # Errors
/// It is that of another machine, nests too deep, or has more fields than there are bytes for.
pub(crate) fn check_schema(schema: Schema<'_>, metadata: usize) -> Result<(), DataError> {
    if schema.endianness() != Endianness::Little {
        return Err(wrong("its numbers have their highest byte first"));
    }
    let mut left = metadata.saturating_mul(SHARED);
    let mut take = |bytes: usize| -> Result<(), DataError> {
        left = left.checked_sub(bytes).ok_or_else(|| wrong("its schema has more fields than bytes"))?;
        Ok(())
    };
    let mut level: Vec<_> = schema.fields().into_iter().flatten().collect();
    for pair in schema.custom_metadata().into_iter().flatten() {
        take(pair.key().map_or(0, str::len))?;
        take(pair.value().map_or(0, str::len))?;
    }
    for _ in 0..=SCHEMA_DEPTH {
        let mut next = Vec::new();
        for field in level {
            // A table of four bytes at least, and four that point to it.
            take(8)?;
            take(field.name().map_or(0, str::len))?;
            for pair in field.custom_metadata().into_iter().flatten() {
                take(pair.key().map_or(0, str::len))?;
                take(pair.value().map_or(0, str::len))?;
            }
            let children = field.children().into_iter().flatten();
            for child in children {
                take(1)?;
                next.push(child);
            }
        }
        if next.is_empty() {
            return Ok(());
        }
        level = next;
    }
    Err(wrong("its fields nest more than 64 deep"))
}

/// Looks at the lengths in the metadata of columns, whose bytes these are. The bytes that they become come back.
///
/// # Errors
/// A buffer lies outside of the bytes; lengths are those of no column; or they become more bytes than they may.
pub(crate) fn check_batch(batch: RecordBatch<'_>, body: &[u8], most: u64) -> Result<u64, DataError> {
    let codec = batch.compression().map(|compression| compression.codec());
    let mut total = 0_u64;
    for buffer in batch.buffers().into_iter().flatten() {
        let range = usize::try_from(buffer.offset()).ok().zip(usize::try_from(buffer.length()).ok());
        let bytes = range.and_then(|(from, len)| body.get(from..from.checked_add(len)?));
        let bytes = bytes.ok_or_else(|| wrong("a buffer lies outside of its message"))?;
        let becomes = match codec {
            Some(codec) if !bytes.is_empty() => becomes(codec, bytes)?,
            _ => bytes.len() as u64,
        };
        total = total.saturating_add(becomes);
        if total > most {
            return Err(too_large(format!("the buffers of a message become more than {most} bytes")));
        }
    }
    let length = |length: i64| u64::try_from(length).map_err(|_| wrong("the length of a column is negative"));
    let rows = length(batch.length())?;
    // What has memory has at least a bit for each element; nothing else has more elements than there are rows.
    let elements = rows.max(total.saturating_mul(8));
    if rows > most.saturating_mul(8) {
        return Err(too_large(format!("a message has {rows} rows")));
    }
    for node in batch.nodes().into_iter().flatten() {
        if length(node.length())? > elements || length(node.null_count())? > length(node.length())? {
            return Err(wrong("a column has more elements than there are bytes for"));
        }
    }
    Ok(total)
}

/// How many bytes a compressed buffer becomes: as many as it says, or as many as the codec makes of it whatever it says.
fn becomes(codec: CompressionType, buffer: &[u8]) -> Result<u64, DataError> {
    let (prefix, data) = buffer.split_first_chunk::<PREFIX_BYTES>().ok_or_else(|| wrong("a buffer is cut short"))?;
    let says = i64::from_le_bytes(*prefix);
    if says == AS_IT_WAS {
        return Ok(data.len() as u64);
    }
    let says = u64::try_from(says).map_err(|_| wrong("a buffer says to become less than nothing"))?;
    let most = match codec {
        CompressionType::LZ4_FRAME => unpacked(data).ok_or_else(|| wrong("a buffer is no frame of LZ4"))?,
        _ => (data.len() as u64).saturating_mul(MOST_RATIO),
    };
    if says > most {
        return Err(wrong(&format!("a buffer of {} bytes says to become {says}", data.len())));
    }
    Ok(if codec == CompressionType::LZ4_FRAME { most } else { says })
}

/// The most bytes that a frame of LZ4 becomes: its library reads on to its end, whatever it was to become.
fn unpacked(frame: &[u8]) -> Option<u64> {
    /// A byte says of so many how long a run goes on.
    const RUN: u64 = 255;
    const PLAIN: u32 = 1 << 31;
    let (head, rest) = frame.split_first_chunk::<6>()?;
    let [.., flags, sizes] = *head;
    let block = 1_u64.checked_shl(u32::from((sizes >> 4) & 7).checked_mul(2)?.checked_add(8)?)?;
    let has = |flag: u8, bytes: usize| if flags & flag == 0 { 0 } else { bytes };
    let checksum = has(0x10, 4);
    // The length of what was packed, the number of a dictionary, and the header's own checksum.
    let mut rest = rest.get(has(0x08, 8).checked_add(has(0x01, 4))?.checked_add(1)?..)?;
    let mut total = 0_u64;
    // What is cut short becomes no more than what is there.
    while let Some((size, behind)) = rest.split_first_chunk::<4>() {
        let size = u32::from_le_bytes(*size);
        if size == 0 {
            break;
        }
        let (packed, is_plain) = (u64::from(size & !PLAIN), size & PLAIN != 0);
        let most = if is_plain { packed } else { packed.saturating_mul(RUN).saturating_add(RUN) };
        total = total.checked_add(most.min(block.max(packed)))?;
        let behind_block = usize::try_from(packed).ok()?.checked_add(checksum)?;
        rest = behind.get(behind_block..).unwrap_or_default();
    }
    Some(total)
}
