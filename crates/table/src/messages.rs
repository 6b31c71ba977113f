//! The messages of an Arrow stream, each with metadata and a body, read with all lengths checked before use. Memory is reserved only for bytes that
//! exist, buffers must lie within their message, and the decompressed sizes must stay within the memory limit. Schemas are checked too, including
//! those in Parquet's metadata.

#![deny(clippy::arithmetic_side_effects)]

use super::chunks::{METADATA_SHARE, MOST_RATIO, too_large};
use crate::error::DataError;
use arrow_buffer::Buffer;
use arrow_ipc::{CompressionType, Endianness, RecordBatch, Schema};
use std::io::{self, Read};

/// The marker before the length of an Arrow message's metadata. Files from before 2020 do not have it.
pub(crate) const CONTINUES: [u8; 4] = [0xff; 4];

/// The bytes in front of each compressed buffer, which hold its decompressed size.
const PREFIX_BYTES: usize = 8;

/// The decompressed size that marks a buffer that is not compressed.
const AS_IT_WAS: i64 = -1;

/// The deepest nesting of fields.
const SCHEMA_DEPTH: usize = 64;

/// The most times that the same bytes may be referenced as the name of a field.
const SHARED: usize = 16;

/// A reader of the messages of an Arrow stream.
pub(crate) struct Messages<R> {
    reader: R,
    most_bytes: u64,
}

impl<R: Read> Messages<R> {
    /// Makes a reader of Arrow messages from `reader`. Each message may have at most `most_bytes` bytes when it is decompressed.
    pub(crate) fn new(reader: R, most_bytes: u64) -> Self {
        Messages { reader, most_bytes }
    }

    /// The most bytes that a message may have when it is decompressed.
    pub(crate) const fn most_bytes(&self) -> u64 {
        self.most_bytes
    }

    /// Reads the metadata of the next message; `None` after the last message.
    ///
    /// # Errors
    /// If the data end within the metadata, or the metadata exceed their share of the memory limit.
    pub(crate) fn metadata(&mut self) -> Result<Option<Vec<u8>>, DataError> {
        let mut word = [0; 4];
        match self.reader.read_exact(&mut word) {
            Ok(()) => {}
            // A stream may end without an end marker.
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
            // Without the marker, any four bytes look like a length.
            if !is_marked {
                return Err(wrong("expected the start of a message"));
            }
            let message =
                format!("the metadata have {len} bytes; the limit is {} / {METADATA_SHARE} bytes", self.most_bytes);
            return Err(too_large(message));
        }
        self.bytes(len).map(Some)
    }

    /// Reads the body of the message whose metadata were read last. The body has `len` bytes.
    ///
    /// # Errors
    /// If the data have fewer than `len` bytes left, or if `len` exceeds the memory limit.
    pub(crate) fn body(&mut self, len: i64) -> Result<Buffer, DataError> {
        let len = u64::try_from(len).map_err(|_| wrong("the length of a message is negative"))?;
        if len > self.most_bytes {
            return Err(too_large(format!("a message has {len} bytes; the limit is {} bytes", self.most_bytes)));
        }
        self.bytes(len).map(Buffer::from_vec)
    }

    /// Reads `len` bytes. Memory is reserved only for bytes that exist.
    fn bytes(&mut self, len: u64) -> Result<Vec<u8>, DataError> {
        let mut bytes = Vec::new();
        let read = self.reader.by_ref().take(len).read_to_end(&mut bytes).map_err(DataError::unread)?;
        if read as u64 == len { Ok(bytes) } else { Err(wrong("the data end in the middle of a message")) }
    }
}

fn wrong(what: &str) -> DataError {
    DataError::unreadable(format!("not Arrow: {what}"))
}

/// Checks the fields of `schema`, which was encoded in `metadata` bytes.
///
/// # Errors
/// If the schema is big-endian, nests too deep, or has more fields than `metadata` bytes can hold.
pub(crate) fn check_schema(schema: Schema<'_>, metadata: usize) -> Result<(), DataError> {
    if schema.endianness() != Endianness::Little {
        return Err(wrong("the numbers are big-endian; only little-endian is supported"));
    }
    let mut left = metadata.saturating_mul(SHARED);
    let mut take = |bytes: usize| -> Result<(), DataError> {
        left = left.checked_sub(bytes).ok_or_else(|| wrong("the schema has more fields than its bytes can hold"))?;
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
            // A table of at least four bytes, and four bytes that point to it.
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
    Err(wrong("fields are nested more than 64 deep, which is the limit"))
}

/// Checks the lengths in the metadata `batch` of a record batch, whose columns are in the bytes `body`. Returns the size of the decompressed columns
/// in bytes.
///
/// # Errors
/// If a buffer lies outside of the body, if the length of a column is invalid, or if the decompressed size exceeds `most` bytes.
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
            return Err(too_large(format!("the buffers of a message exceed the limit of {most} bytes")));
        }
    }
    let length = |length: i64| u64::try_from(length).map_err(|_| wrong("the length of a column is negative"));
    let rows = length(batch.length())?;
    // A column with memory has at least a bit per element. Other columns have at most one element per row.
    let elements = rows.max(total.saturating_mul(8));
    if rows > most.saturating_mul(8) {
        return Err(too_large(format!("a message has {rows} rows")));
    }
    for node in batch.nodes().into_iter().flatten() {
        if length(node.length())? > elements || length(node.null_count())? > length(node.length())? {
            return Err(wrong("a column has more elements than its bytes can hold"));
        }
    }
    Ok(total)
}

/// The size in bytes that a compressed buffer has after decompression: the declared size, or for LZ4 the largest size
/// that its frame allows.
fn becomes(codec: CompressionType, buffer: &[u8]) -> Result<u64, DataError> {
    let (prefix, data) = buffer.split_first_chunk::<PREFIX_BYTES>().ok_or_else(|| wrong("a buffer is cut short"))?;
    let says = i64::from_le_bytes(*prefix);
    if says == AS_IT_WAS {
        return Ok(data.len() as u64);
    }
    let says = u64::try_from(says).map_err(|_| wrong("a buffer declares a negative uncompressed size"))?;
    let most = match codec {
        CompressionType::LZ4_FRAME => unpacked(data).ok_or_else(|| wrong("a buffer is not a frame of LZ4"))?,
        _ => (data.len() as u64).saturating_mul(MOST_RATIO),
    };
    if says > most {
        return Err(wrong(&format!("a buffer of {} bytes claims to have {says} bytes uncompressed", data.len())));
    }
    Ok(if codec == CompressionType::LZ4_FRAME { most } else { says })
}

/// The largest size in bytes of an LZ4 frame after decompression; `None` if the bytes are not a frame. The declared
/// size is no limit, because the library decompresses the frame to its end.
fn unpacked(frame: &[u8]) -> Option<u64> {
    /// A byte of a run length adds at most this many bytes.
    const RUN: u64 = 255;
    const PLAIN: u32 = 1 << 31;
    let (head, rest) = frame.split_first_chunk::<6>()?;
    let [.., flags, sizes] = *head;
    let block = 1_u64.checked_shl(u32::from((sizes >> 4) & 7).checked_mul(2)?.checked_add(8)?)?;
    let has = |flag: u8, bytes: usize| if flags & flag == 0 { 0 } else { bytes };
    let checksum = has(0x10, 4);
    // The size of the content, the id of a dictionary, and the checksum of the header.
    let mut rest = rest.get(has(0x08, 8).checked_add(has(0x01, 4))?.checked_add(1)?..)?;
    let mut total = 0_u64;
    // A truncated frame becomes no more than its existing blocks.
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
