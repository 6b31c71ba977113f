//! Checks data in Thrift's compact protocol, in which Parquet stores its metadata, before Parquet's library reads them.
//! A walk over the bytes finds out whether the encoding ends, whether a list has more elements than there are bytes,
//! and whether the nesting is too deep. It reports the integers to its caller, who must check a few of them, such as
//! the sizes of pages. No values are built.

#![deny(clippy::arithmetic_side_effects)]

use std::io::{self, Read};

/// The most structures and lists inside of each other. Parquet's own nest eight deep.
const DEPTH: usize = 24;

/// An event that the walk over Thrift data reports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ThriftEvent {
    /// The walk met this integer, which may have any width.
    Number(i64),
    /// The walk reached the end of a structure.
    End,
}

/// An open structure, list or map.
enum Level {
    /// The walk is in a structure whose last field read has this number.
    Struct(i16),
    /// The walk is in a list or set. The payload is the type of its elements, and the number of elements still to come.
    List(u8, u64),
    /// The walk is in a map. The payload is the type of the keys, the type of the values, and the number of keys and values still to come, counted
    /// together.
    Map(u8, u8, u64),
}

/// The type codes of fields and elements.
const STOP: u8 = 0;
const TRUE: u8 = 1;
const FALSE: u8 = 2;
const BYTE: u8 = 3;
const I16: u8 = 4;
const I64: u8 = 6;
const DOUBLE: u8 = 7;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const SET: u8 = 10;
const MAP: u8 = 11;
const STRUCT: u8 = 12;
const UUID: u8 = 13;

/// A reader that stops after `left` bytes.
struct Bytes<R> {
    reader: R,
    left: u64,
}

/// Walks over a Thrift structure of at most `most` bytes, and returns the number of bytes it takes. `see` is called for each integer and for the
/// end of each structure, with the field numbers on the path from the outermost structure. The path of a list's element is the path of the list.
///
/// # Errors
/// If the bytes are not a Thrift structure of at most `most` bytes, or cannot be read.
pub(crate) fn walk(reader: impl Read, most: u64, mut see: impl FnMut(&[i16], ThriftEvent)) -> io::Result<u64> {
    let mut bytes = Bytes { reader, left: most };
    let mut levels = vec![Level::Struct(0)];
    let mut path: Vec<i16> = Vec::new();
    while let Some(level) = levels.last_mut() {
        // The next value: its type, and whether it is a field of a structure.
        let (kind, is_field) = match level {
            Level::Struct(last) => {
                let mark = bytes.byte()?;
                let kind = mark & 0x0f;
                if kind == STOP {
                    see(&path, ThriftEvent::End);
                    levels.pop();
                    leave(&levels, &mut path);
                    continue;
                }
                let number = match mark >> 4 {
                    0 => i16::try_from(bytes.signed()?).ok(),
                    step => last.checked_add(i16::from(step)),
                };
                *last = number.ok_or_else(|| wrong("a field's number"))?;
                path.push(*last);
                (kind, true)
            }
            Level::List(_, 0) | Level::Map(_, _, 0) => {
                levels.pop();
                leave(&levels, &mut path);
                continue;
            }
            Level::List(kind, left) => {
                *left = left.saturating_sub(1);
                (*kind, false)
            }
            Level::Map(keys, values, left) => {
                let kind = if left.is_multiple_of(2) { *keys } else { *values };
                *left = left.saturating_sub(1);
                (kind, false)
            }
        };
        let opened = match kind {
            // A boolean field has its value in its type.
            TRUE | FALSE if is_field => None,
            TRUE | FALSE | BYTE => {
                bytes.skip(1)?;
                None
            }
            I16..=I64 => {
                let number = bytes.signed()?;
                see(&path, ThriftEvent::Number(number));
                None
            }
            DOUBLE => {
                bytes.skip(8)?;
                None
            }
            UUID => {
                bytes.skip(16)?;
                None
            }
            BINARY => {
                let len = bytes.unsigned()?;
                bytes.skip(len)?;
                None
            }
            LIST | SET => {
                let mark = bytes.byte()?;
                let count = if mark >> 4 == 15 { bytes.unsigned()? } else { u64::from(mark >> 4) };
                Some(Level::List(mark & 0x0f, bytes.room_for(count)?))
            }
            MAP => {
                let count = bytes.unsigned()?;
                let count = bytes.room_for(count)?;
                let kinds = if count == 0 { 0 } else { bytes.byte()? };
                Some(Level::Map(kinds >> 4, kinds & 0x0f, count.saturating_mul(2)))
            }
            STRUCT => Some(Level::Struct(0)),
            _ => return Err(wrong("a type")),
        };
        match opened {
            Some(_) if levels.len() >= DEPTH => return Err(wrong("the depth of nested structs")),
            Some(level) => levels.push(level),
            None if is_field => {
                path.pop();
            }
            None => {}
        }
    }
    Ok(most.saturating_sub(bytes.left))
}

/// Removes the number of a closed field from the path.
fn leave(levels: &[Level], path: &mut Vec<i16>) {
    if matches!(levels.last(), Some(Level::Struct(_))) {
        path.pop();
    }
}

fn wrong(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{what} is not valid in Thrift"))
}

impl<R: Read> Bytes<R> {
    fn byte(&mut self) -> io::Result<u8> {
        self.left = self.left.checked_sub(1).ok_or(io::ErrorKind::UnexpectedEof)?;
        let mut byte = [0];
        self.reader.read_exact(&mut byte)?;
        Ok(byte[0])
    }

    fn skip(&mut self, count: u64) -> io::Result<()> {
        self.left = self.left.checked_sub(count).ok_or(io::ErrorKind::UnexpectedEof)?;
        let skipped = io::copy(&mut self.reader.by_ref().take(count), &mut io::sink())?;
        if skipped == count { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }

    /// Reads a number stored in groups of seven bits, the lowest first.
    fn unsigned(&mut self) -> io::Result<u64> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f).wrapping_shl(shift);
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(wrong("a number"))
    }

    /// Reads a zigzag number: its sign is its lowest bit.
    fn signed(&mut self) -> io::Result<i64> {
        let number = self.unsigned()?;
        let magnitude = (number >> 1).cast_signed();
        Ok(if number & 1 == 0 { magnitude } else { !magnitude })
    }

    /// Checks a count of elements, each of which takes at least one byte.
    fn room_for(&self, count: u64) -> io::Result<u64> {
        if count <= self.left { Ok(count) } else { Err(wrong("the length of a list")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The events of a walk, each with its path.
    type Met = Vec<(Vec<i16>, ThriftEvent)>;

    fn seen(bytes: &[u8]) -> Result<(u64, Met), String> {
        let mut all = Vec::new();
        let taken = walk(bytes, bytes.len() as u64, |path, seen| all.push((path.to_vec(), seen)));
        taken.map(|taken| (taken, all)).map_err(|error| error.to_string())
    }

    #[test]
    fn numbers_have_the_way_to_them() {
        // 1: -3; 2: [{1: 5}, {}]; 20: true; 21: {"a": 4}; behind it a byte that is not of it.
        let bytes = [0x15, 5, 0x19, 0x2c, 0x15, 10, 0, 0, 0x01, 40, 0x1b, 1, 0x85, 1, b'a', 8, 0, 99];
        let (taken, all) = seen(&bytes).expect("a structure");
        assert_eq!(taken, 17);
        let number = |path: &[i16], number| (path.to_vec(), ThriftEvent::Number(number));
        let end = |path: &[i16]| (path.to_vec(), ThriftEvent::End);
        assert_eq!(all, [number(&[1], -3), number(&[2, 1], 5), end(&[2]), end(&[2]), number(&[21], 4), end(&[])]);
    }

    #[test]
    fn what_does_not_end_or_fit_is_refused() {
        assert_eq!(seen(&[0x15]), Err("unexpected end of file".to_owned()));
        assert_eq!(seen(&[0x18, 0xff, 0xff, 0xff, 0x7f, 1]), Err("unexpected end of file".to_owned()));
        assert_eq!(
            seen(&[0x19, 0xfc, 0xff, 0xff, 0xff, 0x7f, 0]),
            Err("the length of a list is not valid in Thrift".into())
        );
        assert_eq!(seen(&[0x1f]), Err("a type is not valid in Thrift".into()));
        assert_eq!(seen(&[0x1c; 100]), Err("the depth of nested structs is not valid in Thrift".into()));
        assert_eq!(seen(&[0x19; 100]), Err("the depth of nested structs is not valid in Thrift".into()));
        assert_eq!(seen(&[[0x15].as_slice(), &[0xff; 11]].concat()), Err("a number is not valid in Thrift".into()));
    }
}
