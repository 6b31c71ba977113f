//! Messages between ranks, and the memory that a message is received in. Between threads, the receiver of a tile shares
//! the sender's memory. Between processes, a tile is received directly into its final memory. So elements are not
//! copied. A message has the header separate from the tile, so several steps may send the same tile with different
//! headers.

#![deny(clippy::arithmetic_side_effects)]

use super::header::{Content, HEADER_BYTES, Header, MessageId};
use crate::error::{bad_message, limit};
use crate::tiled::pool::Pool;
use crate::tiled::tile::{Float, Tile, TileMemory, with_float};
use cembra_runtime::Scalar;
use cembra_value::Error;
use cembra_value::tensor::{check_room, index_count};
use std::sync::Arc;

/// A message to send, or one that has arrived: its header, and its contents. Cloning a message copies no contents.
#[derive(Clone, Debug)]
pub struct Payload {
    header: Header,
    data: Data,
}

/// The contents of a message: a tile, bytes, or nothing if it is poison (the sender could not compute the tile).
#[derive(Clone, Debug)]
enum Data {
    Poison,
    Bytes(Arc<Vec<u8>>),
    Tile(Tile),
}

impl Payload {
    /// Makes a message from a tile, whose memory is shared.
    ///
    /// # Errors
    /// If the tile is longer than a message may be.
    pub fn of_tile(id: MessageId, tile: Tile) -> Result<Payload, Error> {
        let scalar = tile.tensor().scalar_type();
        let header = tile_header(id, scalar, tile.tensor().layout().len())?;
        Ok(Payload { header, data: Data::Tile(tile) })
    }

    /// Makes a message from bytes.
    ///
    /// # Errors
    /// If there are more bytes than a message may have.
    pub fn of_bytes(id: MessageId, bytes: impl Into<Arc<Vec<u8>>>) -> Result<Payload, Error> {
        let bytes = bytes.into();
        let header = Header::new(id, Content::Bytes, bytes.len() as u64)?;
        Ok(Payload { header, data: Data::Bytes(bytes) })
    }

    /// Makes a poison message, which replaces a message that its sender could not compute. It has the identity and the length that the receiver
    /// expects.
    #[must_use]
    pub fn poison(room: &ExpectedMessage) -> Payload {
        let header = Header::new(room.awaited.id(), Content::Poison, room.awaited.length());
        // The length was accepted for a header before.
        Payload { header: header.unwrap_or(room.awaited), data: Data::Poison }
    }

    /// The header of this message.
    #[must_use]
    pub const fn header(&self) -> &Header {
        &self.header
    }

    /// The tile that the message contains; `None` if the message does not contain a tile.
    #[must_use]
    pub const fn tile(&self) -> Option<&Tile> {
        match &self.data {
            Data::Tile(tile) => Some(tile),
            _ => None,
        }
    }

    /// The bytes that the message contains; empty if it contains a tile or poison.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        match &self.data {
            Data::Bytes(bytes) => bytes,
            _ => &[],
        }
    }

    /// Returns the bytes that the message contains, shared; empty if it contains a tile or poison.
    pub(super) fn into_bytes(self) -> Arc<Vec<u8>> {
        match self.data {
            Data::Bytes(bytes) => bytes,
            _ => Arc::default(),
        }
    }

    /// The address of the message's contents, and their length in bytes, for links that send bytes. The contents stay there, unchanged, while the
    /// payload or a clone of it exists.
    #[must_use]
    pub fn place(&self) -> (*const u8, usize) {
        match &self.data {
            Data::Poison => (std::ptr::null(), 0),
            Data::Bytes(bytes) => (bytes.as_ptr(), bytes.len()),
            Data::Tile(tile) => {
                let place = with_float!(tile.tensor().scalar_type(), T => {
                    let elements = tile.elements::<T>();
                    Ok::<_, Error>((elements.as_ptr().cast::<u8>(), size_of_val(elements)))
                });
                place.unwrap_or((std::ptr::null(), 0))
            }
        }
    }
}

/// The header of a message with a tile of `elements` elements.
fn tile_header(id: MessageId, scalar: Scalar, elements: usize) -> Result<Header, Error> {
    let (content, bytes) = with_float!(scalar, T => {
        let content = if scalar == Scalar::Float32 { Content::Float32 } else { Content::Float64 };
        Ok::<_, Error>((content, elements.checked_mul(size_of::<T>())))
    })?;
    let bytes = bytes.ok_or_else(|| limit("elements of a message", elements, isize::MAX))?;
    Header::new(id, content, bytes as u64)
}

/// The description of a message that a receiver expects. Memory for the message is allocated only when the link needs
/// it: never if the contents are already in memory of this process.
#[derive(Clone, Debug)]
pub struct ExpectedMessage {
    awaited: Header,
    /// The extents of the expected tile; `None` if bytes are expected.
    extents: Option<Vec<usize>>,
    /// The pool (memory of dropped tiles) that the expected tile's memory is taken from; `None` to allocate new memory.
    pool: Option<Arc<Pool>>,
}

impl ExpectedMessage {
    /// Describes an expected tile with elements of type `scalar` and the extents `extents`.
    ///
    /// # Errors
    /// If tiles cannot have elements of this type, or the tile is longer than a message may be.
    pub fn for_tile(id: MessageId, scalar: Scalar, extents: &[usize]) -> Result<ExpectedMessage, Error> {
        let awaited = tile_header(id, scalar, index_count(extents)?)?;
        Ok(ExpectedMessage { awaited, extents: Some(extents.to_vec()), pool: None })
    }

    /// Makes the expected tile use memory of `pool`.
    #[must_use]
    pub(crate) fn pooled(self, pool: &Arc<Pool>) -> ExpectedMessage {
        ExpectedMessage { pool: Some(pool.clone()), ..self }
    }

    /// Describes an expected message with `length` bytes.
    ///
    /// # Errors
    /// If `length` is more than a message may have.
    pub fn for_bytes(id: MessageId, length: usize) -> Result<ExpectedMessage, Error> {
        Ok(ExpectedMessage { awaited: Header::new(id, Content::Bytes, length as u64)?, extents: None, pool: None })
    }

    /// The header of the expected message.
    #[must_use]
    pub const fn awaited(&self) -> &Header {
        &self.awaited
    }

    /// Completes a receive with contents that are already in memory of this process, as between threads. The contents
    /// are not copied.
    ///
    /// # Errors
    /// If the message is not the expected one.
    pub fn taken(self, header: &[u8; HEADER_BYTES], payload: Payload) -> Result<Done, Error> {
        let Some(header) = arrived(header, &self.awaited)? else { return Ok(Done::Poisoned) };
        let fits = match (&payload.data, &self.extents) {
            (Data::Bytes(bytes), None) => bytes.len() as u64 == header.length(),
            (Data::Tile(tile), Some(extents)) => {
                tile.extents() == extents && payload.header.content() == header.content()
            }
            _ => false,
        };
        if fits { Ok(Done::Received(payload)) } else { Err(not_as_its_header(&header)) }
    }

    /// Allocates memory for the expected message.
    ///
    /// # Errors
    /// If there is no memory.
    pub fn into_memory(self) -> Result<Memory, Error> {
        let too_long = || limit("bytes of a message", self.awaited.length(), isize::MAX);
        let length = usize::try_from(self.awaited.length()).map_err(|_| too_long())?;
        fn memory<T: Float>(extents: &[usize], pool: Option<&Arc<Pool>>) -> Result<TileMemory<T>, Error> {
            match pool {
                Some(pool) => TileMemory::pooled(index_count(extents)?, pool),
                None => TileMemory::of_extents(extents),
            }
        }
        let pool = self.pool.as_ref();
        let place = match (self.extents, self.awaited.content()) {
            (Some(extents), Content::Float32) => ReceiveBuffer::Float32(memory(&extents, pool)?, extents),
            (Some(extents), _) => ReceiveBuffer::Float64(memory(&extents, pool)?, extents),
            (None, _) => {
                check_room(length)?;
                ReceiveBuffer::Bytes(vec![0; length])
            }
        };
        Ok(Memory { awaited: self.awaited, place })
    }
}

/// Reads the header that arrived, and checks that it is the awaited one; `None` if the message is poison.
fn arrived(header: &[u8; HEADER_BYTES], awaited: &Header) -> Result<Option<Header>, Error> {
    let header = Header::parse(header)?;
    header.check(awaited)?;
    Ok(Some(header).filter(|header| header.content() != Content::Poison))
}

#[cold]
fn not_as_its_header(header: &Header) -> Error {
    bad_message(format!("{} does not match its header", header.id()))
}

/// Memory into which the contents of an expected message are received.
#[derive(Debug)]
pub struct Memory {
    awaited: Header,
    place: ReceiveBuffer,
}

#[derive(Debug)]
enum ReceiveBuffer {
    Bytes(Vec<u8>),
    Float32(TileMemory<f32>, Vec<usize>),
    Float64(TileMemory<f64>, Vec<usize>),
}

impl Memory {
    /// The address to which the contents must be written, and their length in bytes. Any bytes are valid contents. The address does not change
    /// until the memory is dropped or [`filled`](Memory::filled).
    pub fn place(&mut self) -> (*mut u8, usize) {
        fn of<T: Float>(memory: &mut TileMemory<T>) -> (*mut u8, usize) {
            let elements = memory.elements_mut();
            (elements.as_mut_ptr().cast(), size_of_val(elements))
        }
        match &mut self.place {
            ReceiveBuffer::Bytes(bytes) => (bytes.as_mut_ptr(), bytes.len()),
            ReceiveBuffer::Float32(memory, _) => of(memory),
            ReceiveBuffer::Float64(memory, _) => of(memory),
        }
    }

    /// Completes a receive into this memory, with the header that arrived. A tile stays in this memory.
    ///
    /// # Errors
    /// If the message is not the expected one.
    pub fn filled(self, header: &[u8; HEADER_BYTES]) -> Result<Done, Error> {
        let Some(header) = arrived(header, &self.awaited)? else { return Ok(Done::Poisoned) };
        let data = match self.place {
            ReceiveBuffer::Bytes(bytes) => Data::Bytes(Arc::new(bytes)),
            ReceiveBuffer::Float32(memory, extents) => Data::Tile(memory.into_tile(&extents)?),
            ReceiveBuffer::Float64(memory, extents) => Data::Tile(memory.into_tile(&extents)?),
        };
        Ok(Done::Received(Payload { header, data }))
    }
}

/// The outcome of a completed request.
#[derive(Clone, Debug)]
pub enum Done {
    /// The message was sent, and its memory is no longer needed.
    Sent,
    /// The expected message arrived.
    Received(Payload),
    /// A poison message arrived, because the sender could not compute the expected one.
    Poisoned,
}

impl Done {
    /// Returns the message that arrived; `None` if a message was sent, or poison arrived.
    #[must_use]
    pub fn into_payload(self) -> Option<Payload> {
        match self {
            Done::Received(payload) => Some(payload),
            _ => None,
        }
    }
}
