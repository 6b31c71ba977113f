//! Counts the inputs, outputs, names, literals, nodes and operands in a binary file before it is read. Each of them takes tens of bytes in memory
//! but perhaps only one or two bytes in the file. Without the count, a file within the limit on its length could take twenty times its size in
//! memory.

use cembra_value::{Diagnostic, Limit, Limits};
use prost::bytes::Buf;
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};

/// The parts of a file that are counted, by their field numbers in `messages::Program`: messages up to the literals, then columns of numbers.
const INPUTS: u32 = 3;
const LITERALS: u32 = 6;
const KINDS: u32 = 7;
const OPERANDS: u32 = 10;
const SPAN_STARTS: u32 = 12;
const SPAN_LENGTHS: u32 = 13;
const EXTERNS: u32 = 14;
const TILES: u32 = 15;

/// The part of a literal that contains names, by its field number in `messages::PartKind`.
const NAMED_TUPLE: u32 = 7;

/// Returns an error if a file has more nodes, inputs, outputs, names or literals than the limit on nodes, more operands or spans than the limit on
/// operands, or more literal parts or field names than the limit on literal bytes.
pub(super) fn check(file: &[u8], limits: &Limits) -> Result<(), Diagnostic> {
    let mut counts = [0_usize; TILES as usize + 1];
    let mut parts = 0;
    let mut rest = file;
    // A damaged file is rejected when it is read.
    while let Ok((number, wire)) = decode_key(&mut rest) {
        let counted = (INPUTS..=TILES).contains(&number);
        let found = match wire {
            WireType::LengthDelimited if counted => {
                let Some(bytes) = delimited(&mut rest) else { break };
                if number == LITERALS {
                    parts += parts_of(bytes);
                }
                // Each number in a column ends with a byte without its high bit; its other bytes have it set.
                if !(KINDS..EXTERNS).contains(&number) { 1 } else { bytes.iter().filter(|byte| **byte < 0x80).count() }
            }
            wire => {
                if skip_field(wire, number, &mut rest, DecodeContext::default()).is_err() {
                    break;
                }
                // A column may also be encoded as separate numbers.
                usize::from(counted)
            }
        };
        let Some(count) = counts.get_mut(number as usize).filter(|_| counted) else { continue };
        *count += found;
        let (most, limit) = match number {
            OPERANDS | SPAN_STARTS | SPAN_LENGTHS => (limits.operands, Limit::Operands),
            _ => (limits.nodes, Limit::Nodes),
        };
        if *count > most {
            return Err(limits.exceeded(limit));
        }
        if parts > limits.literal_bytes {
            return Err(limits.exceeded(Limit::LiteralBytes));
        }
    }
    Ok(())
}

/// Returns the bytes of a length-delimited field; `None` if it is damaged.
fn delimited<'f>(rest: &mut &'f [u8]) -> Option<&'f [u8]> {
    let length = usize::try_from(decode_varint(rest).ok()?).ok()?;
    let bytes = rest.get(..length)?;
    rest.advance(length);
    Some(bytes)
}

/// Iterates over the fields of a message, with their numbers. Fields that are not length-delimited have no bytes here.
fn fields(mut message: &[u8]) -> impl Iterator<Item = (u32, &[u8])> {
    std::iter::from_fn(move || {
        let (number, wire) = decode_key(&mut message).ok()?;
        if wire == WireType::LengthDelimited {
            return Some((number, delimited(&mut message)?));
        }
        skip_field(wire, number, &mut message, DecodeContext::default()).ok()?;
        Some((number, &[]))
    })
}

/// Returns the number of parts of a literal, plus the number of names in them.
fn parts_of(literal: &[u8]) -> usize {
    let names =
        |part| fields(part).filter(|(number, _)| *number == NAMED_TUPLE).map(|(_, named)| fields(named).count());
    fields(literal).map(|(_, part)| 1 + names(part).sum::<usize>()).sum()
}
