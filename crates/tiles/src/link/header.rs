//! The header of a message between ranks: 32 bytes, all numbers little-endian. It identifies the message. A message
//! from another version of cembra, or of another plan or step, causes an error, and its contents are never used as a
//! tile.
//!
//! | bytes | |
//! |---|---|
//! | 4 | `cemt` |
//! | 1 | the version of the format, 1 |
//! | 1 | the contents |
//! | 6 | the length of the contents in bytes |
//! | 8 | the hash of the plan |
//! | 8 | the number of the tile |
//! | 4 | the step |

#![deny(clippy::arithmetic_side_effects)]

use crate::error::{bad_message, limit};
use cembra_value::Error;
use std::fmt;

/// The number of bytes in a message's header.
pub const HEADER_BYTES: usize = 32;

const MAGIC: [u8; 4] = *b"cemt";
const VERSION: u8 = 1;

/// The most bytes of contents that a message may have: the most that 6 bytes can count.
pub const MOST_CONTENT_BYTES: u64 = (1 << 48) - 1;

/// The identity of a message, which its receiver checks. Two messages of one run have different identities.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct MessageId {
    /// The hash of the plan according to which ranks send this message.
    pub plan: u64,
    /// The number of the plan's step in which the message is sent.
    pub step: u32,
    /// The number of the tile that the message contains. In a message of a collective, the number of the message within
    /// the collective.
    pub tile: u64,
}

/// The `plan` in the identity of messages that belong to no plan, because they are messages of collectives. In such an identity, `step` is the number
/// of the collective.
pub(super) const EXCHANGES: u64 = u64::MAX;

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.plan == EXCHANGES {
            return write!(f, "part {} of exchange {}", self.tile, self.step);
        }
        write!(f, "tile {} of step {}", self.tile, self.step)
    }
}

/// The kind of a message's contents.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum Content {
    /// The message contains bytes with no particular meaning, such as those of collectives.
    Bytes = 0,
    /// The message contains a tile with elements of FLOAT32.
    Float32 = 1,
    /// The message contains a tile with elements of FLOAT64.
    Float64 = 2,
    /// The message contains nothing: the sender could not compute the tile that was expected.
    Poison = 255,
}

impl Content {
    const ALL: [Content; 4] = [Content::Bytes, Content::Float32, Content::Float64, Content::Poison];
}

impl fmt::Display for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Content::Bytes => "bytes",
            Content::Float32 => "a tile of f32",
            Content::Float64 => "a tile of f64",
            Content::Poison => "poison",
        })
    }
}

/// The header of a message between ranks.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Header {
    id: MessageId,
    content: Content,
    length: u64,
}

impl Header {
    /// Makes the header of a message with `length` bytes of contents.
    ///
    /// # Errors
    /// If `length` is more than [`MOST_CONTENT_BYTES`].
    pub fn new(id: MessageId, content: Content, length: u64) -> Result<Header, Error> {
        if length > MOST_CONTENT_BYTES {
            return Err(limit("bytes of a message", length, MOST_CONTENT_BYTES));
        }
        Ok(Header { id, content, length })
    }

    /// The identity of the message.
    #[must_use]
    pub const fn id(&self) -> MessageId {
        self.id
    }

    /// The kind of the message's contents.
    #[must_use]
    pub const fn content(&self) -> Content {
        self.content
    }

    /// The length of the message's contents in bytes. A poison message has the length of the tile that it replaces, but no contents.
    #[must_use]
    pub const fn length(&self) -> u64 {
        self.length
    }

    /// Encodes the header as bytes.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        let [length @ .., _, _] = self.length.to_le_bytes();
        let parts: [&[u8]; 6] = [
            &MAGIC,
            &[VERSION, self.content as u8],
            &length,
            &self.id.plan.to_le_bytes(),
            &self.id.tile.to_le_bytes(),
            &self.id.step.to_le_bytes(),
        ];
        for (byte, part) in bytes.iter_mut().zip(parts.into_iter().flatten()) {
            *byte = *part;
        }
        bytes
    }

    /// Decodes a header from bytes.
    ///
    /// # Errors
    /// If the bytes are not a header, or its version or kind of contents is unknown.
    pub fn parse(bytes: &[u8]) -> Result<Header, Error> {
        let found = bytes.len();
        let [m0, m1, m2, m3, version, content, rest @ ..] = bytes else { return Err(no_header(found)) };
        let Ok([l0, l1, l2, l3, l4, l5, rest @ ..]) = <&[u8; HEADER_BYTES - 6]>::try_from(rest) else {
            return Err(no_header(found));
        };
        if [*m0, *m1, *m2, *m3] != MAGIC {
            return Err(bad_message("a message between ranks does not begin like a message of cembra"));
        }
        if *version != VERSION {
            let message =
                format!("a message between ranks has version {version}, but this cembra reads version {VERSION}");
            return Err(bad_message(message).hint("run the same build of cembra on every machine"));
        }
        let Some(content) = Content::ALL.into_iter().find(|known| *known as u8 == *content) else {
            return Err(bad_message(format!("a message between ranks has contents of unknown kind {content}")));
        };
        let number = |at: usize| {
            let bytes = rest.get(at..).and_then(|rest| rest.first_chunk::<8>());
            u64::from_le_bytes(*bytes.unwrap_or(&[0; 8]))
        };
        let step = u32::from_le_bytes(*rest.last_chunk::<4>().unwrap_or(&[0; 4]));
        let length = u64::from_le_bytes([*l0, *l1, *l2, *l3, *l4, *l5, 0, 0]);
        Ok(Header { id: MessageId { plan: number(0), step, tile: number(8) }, content, length })
    }

    /// Checks that this header is equal to `awaited`, or is the header of a poison message in place of the awaited
    /// message.
    ///
    /// # Errors
    /// If the message belongs to another plan, step or tile, or has another length or kind of contents.
    pub fn check(&self, awaited: &Header) -> Result<(), Error> {
        let (found, wanted) = (self.id, awaited.id);
        if found.plan != wanted.plan {
            let message = format!("expected {wanted}, but a message for another plan arrived");
            return Err(bad_message(message).hint("give every rank the same program, files and options"));
        }
        if found != wanted {
            return Err(bad_message(format!("expected {wanted}, but {found} arrived")));
        }
        if self.content != Content::Poison && self.content != awaited.content {
            let message = format!("{wanted} has the contents {}, expected {}", self.content, awaited.content);
            return Err(bad_message(message));
        }
        if self.length != awaited.length {
            let message = format!("{wanted} has {} bytes, expected {}", self.length, awaited.length);
            return Err(bad_message(message));
        }
        Ok(())
    }
}

#[cold]
fn no_header(found: usize) -> Error {
    bad_message(format!("a message between ranks has {found} bytes, but its header must have {HEADER_BYTES}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use cembra_value::tensor::TensorErrorKind as Kind;

    const ID: MessageId = MessageId { plan: 0x0102_0304_0506_0708, step: 0x0a0b_0c0d, tile: 0x1112_1314_1516_1718 };

    fn header(content: Content, length: u64) -> Header {
        Header::new(ID, content, length).expect("a header")
    }

    #[test]
    fn headers_are_these_bytes_on_every_machine() {
        let bytes = header(Content::Float64, 0x2122_2324_2526).to_bytes();
        let expected = b"cemt\x01\x02\x26\x25\x24\x23\x22\x21\
            \x08\x07\x06\x05\x04\x03\x02\x01\x18\x17\x16\x15\x14\x13\x12\x11\x0d\x0c\x0b\x0a";
        assert_eq!(&bytes, expected);
        for content in Content::ALL {
            for length in [0, 1, 1 << 30, MOST_CONTENT_BYTES] {
                let header = header(content, length);
                assert_eq!(Header::parse(&header.to_bytes()).expect("its own bytes"), header);
            }
        }
        let error = Header::new(ID, Content::Bytes, MOST_CONTENT_BYTES + 1).unwrap_err();
        assert_eq!(error.tensor_kind(), Some(Kind::Limit));
    }

    #[test]
    fn bytes_that_are_no_header_are_refused() {
        let bytes = header(Content::Bytes, 7).to_bytes();
        let changed = |at: usize, to: u8| {
            let mut bytes = bytes;
            bytes[at] = to;
            Header::parse(&bytes)
        };
        let mut longer = bytes.to_vec();
        longer.push(0);
        let mut refused: Vec<Error> = (0..HEADER_BYTES).map(|len| Header::parse(&bytes[..len]).unwrap_err()).collect();
        refused
            .extend([Header::parse(&longer), changed(0, b'C'), changed(3, 0), changed(4, 2)].map(Result::unwrap_err));
        refused.extend((3..255).map(|kind| changed(5, kind).unwrap_err()));
        assert!(refused.iter().all(|error| error.tensor_kind() == Some(Kind::Message) && error.code() == "link"));
        assert!(changed(4, 2).unwrap_err().to_string().contains("has version 2, but this cembra reads version 1"));
        assert!(changed(4, 0).is_err() && changed(5, 255).is_ok());
    }

    #[test]
    fn only_the_message_that_was_awaited_is_taken() {
        let awaited = header(Content::Float64, 64);
        let of = |id: MessageId, content, length| Header::new(id, content, length).expect("a header").check(&awaited);
        assert!(of(ID, Content::Float64, 64).is_ok() && of(ID, Content::Poison, 64).is_ok());
        for (other, said) in [
            (of(MessageId { plan: 1, ..ID }, Content::Float64, 64), "another plan"),
            (of(MessageId { step: 1, ..ID }, Content::Poison, 64), "of step 1 arrived"),
            (of(MessageId { tile: 1, ..ID }, Content::Float64, 64), "tile 1 of"),
            (of(ID, Content::Float64, 56), "56 bytes, expected 64"),
            (of(ID, Content::Poison, 72), "72 bytes, expected 64"),
            (of(ID, Content::Float32, 64), "f32, expected a tile of f64"),
            (of(ID, Content::Bytes, 64), "bytes, expected"),
        ] {
            let error = other.unwrap_err();
            assert_eq!(error.tensor_kind(), Some(Kind::Message), "{said}");
            assert!(error.to_string().contains(said), "{error}");
        }
    }
}
