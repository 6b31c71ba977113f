//! A look at a binary file before it is read: how many inputs, outputs, names, literals and nodes it holds. A reader makes
//! tens of bytes of memory of each, of which the file may spend two, so that a file within the limit of its length could
//! take twenty times that.

use crate::limits::Limit;
use crate::{Diagnostic, Limits};
use prost::bytes::Buf;
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};

/// The parts that are counted, by their numbers in `messages::Program`.
const INPUTS: u32 = 3;
const LITERALS: u32 = 6;
const KINDS: u32 = 7;

/// Refuses a file with more nodes, inputs, outputs, names or literals than a program may have nodes, or with more parts of
/// literals than their bytes may be.
pub(super) fn check(file: &[u8], limits: &Limits) -> Result<(), Diagnostic> {
    let mut counts = [0_usize; KINDS as usize + 1];
    let mut parts = 0;
    let mut rest = file;
    // A file that is damaged is refused when it is read.
    while let Ok((number, wire)) = decode_key(&mut rest) {
        if !(INPUTS..=KINDS).contains(&number) || wire != WireType::LengthDelimited {
            if skip_field(wire, number, &mut rest, DecodeContext::default()).is_err() {
                break;
            }
            continue;
        }
        let Some(bytes) = delimited(&mut rest) else { break };
        // A kind of a node is one byte.
        counts[number as usize] += if number == KINDS { bytes.len() } else { 1 };
        if number == LITERALS {
            parts += fields(bytes);
        }
        if counts[number as usize] > limits.nodes {
            return Err(limits.exceeded(Limit::Nodes));
        }
        if parts > limits.literal_bytes {
            return Err(limits.exceeded(Limit::LiteralBytes));
        }
    }
    Ok(())
}

/// The bytes of a field that says how long it is.
fn delimited<'f>(rest: &mut &'f [u8]) -> Option<&'f [u8]> {
    let length = usize::try_from(decode_varint(rest).ok()?).ok()?;
    let bytes = rest.get(..length)?;
    rest.advance(length);
    Some(bytes)
}

/// How many fields a message has.
fn fields(mut message: &[u8]) -> usize {
    let mut count = 0;
    while let Ok((number, wire)) = decode_key(&mut message) {
        if skip_field(wire, number, &mut message, DecodeContext::default()).is_err() {
            break;
        }
        count += 1;
    }
    count
}
