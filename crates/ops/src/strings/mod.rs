//! Operators on TEXT and BYTES, grouped by file. Positions and lengths are in code points for TEXT, and in bytes for BYTES. A new string is in the
//! arena of the evaluation; a part of an argument is a view of the argument.
//!
//! All operators are called by their kernels: none has a lowering rule. Operators that make arrays of strings, or aggregate
//! them, are array operators.

use crate::kernel::Repr;
use crate::typing::{Argument, TypeFault};
use cembra_runtime::{Bytes, Fault, FaultKind, Text};
use cembra_value::{Code, ScalarValue};
use std::ops::Range;

pub(crate) mod agg_join;
pub(crate) mod case;
pub(crate) mod convert;
pub(crate) mod findall_regex;
pub(crate) mod format;
pub(crate) mod join;
pub(crate) mod moments;
pub(crate) mod packed;
pub(crate) mod parse;
pub(crate) mod printf;
pub(crate) mod regex;
pub(crate) mod replace;
pub(crate) mod replace_regex;
pub(crate) mod search;
pub(crate) mod slice;
pub(crate) mod split;
pub(crate) mod strip;
pub(crate) mod try_parse;

pub(crate) mod made;

pub mod limits;
mod long_work;

mod fields;
mod number;
mod pattern;
mod re2;
mod rendering;

#[cfg(test)]
mod eager;

/// The types of strings, TEXT and BYTES, with their operations on characters.
pub(crate) trait Chars: Repr {
    /// The bytes of the string.
    fn bytes(self) -> &'static [u8];

    /// The number of characters: code points of a text, bytes of BYTES.
    fn length(self) -> usize;

    /// The part of the string in a range of bytes, whose ends must be between characters.
    fn part(self, range: Range<usize>) -> Self;

    /// Makes a string that is a view of `bytes`, which must live as long as the call.
    ///
    /// # Safety
    /// If the string is a text, `bytes` must be UTF-8 (rule STRING-VIEW in `docs/safety.md`).
    unsafe fn view(bytes: &[u8]) -> Self;

    /// The index of the byte at which the character `index` begins; the length in bytes if `index` is the number of characters. `length` must be the
    /// string's number of characters.
    fn byte_of(self, index: usize, length: usize) -> usize;

    /// Returns true if a character begins at the byte `byte`, or if the string ends there.
    fn begins_at(self, byte: usize) -> bool;
}

impl Chars for Text<'static> {
    fn bytes(self) -> &'static [u8] {
        self.as_bytes().as_slice()
    }

    fn length(self) -> usize {
        self.as_str().chars().count()
    }

    fn part(self, range: Range<usize>) -> Self {
        Text::new(self.as_str().get(range).unwrap_or_default())
    }

    // SAFETY: STRING-VIEW, as the trait says.
    unsafe fn view(bytes: &[u8]) -> Self {
        // SAFETY: STRING-VIEW, promised by the caller.
        unsafe { Text::from_raw(bytes.as_ptr(), bytes.len()) }
    }

    fn byte_of(self, index: usize, length: usize) -> usize {
        let text = self.as_str();
        if text.len() == length {
            return index.min(length);
        }
        text.char_indices().nth(index).map_or(text.len(), |(byte, _)| byte)
    }

    fn begins_at(self, byte: usize) -> bool {
        self.as_str().is_char_boundary(byte)
    }
}

impl Chars for Bytes<'static> {
    fn bytes(self) -> &'static [u8] {
        self.as_slice()
    }

    fn length(self) -> usize {
        self.as_slice().len()
    }

    fn part(self, range: Range<usize>) -> Self {
        Bytes::new(self.as_slice().get(range).unwrap_or_default())
    }

    // SAFETY: STRING-VIEW, as the trait says.
    unsafe fn view(bytes: &[u8]) -> Self {
        // SAFETY: STRING-VIEW, promised by the caller.
        unsafe { Bytes::from_raw(bytes.as_ptr(), bytes.len()) }
    }

    fn byte_of(self, index: usize, length: usize) -> usize {
        index.min(length)
    }

    fn begins_at(self, byte: usize) -> bool {
        byte <= self.as_slice().len()
    }
}

/// The reason why a format or a regular expression is invalid, as an error message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Reason(pub(crate) &'static str);

impl From<Reason> for Fault {
    fn from(Reason(reason): Reason) -> Fault {
        invalid(reason)
    }
}

/// The fault of a call whose argument `operand`, a literal, is refused with this message.
fn refused_literal(operand: usize, message: impl Into<String>) -> TypeFault {
    TypeFault { code: Code::Arguments, message: message.into(), operand: Some(operand), hint: None }
}

/// The bytes of the literal string `args[at]`; `None` if the argument is not a literal, or not a string.
fn literal_string<'a>(args: &[Argument<'a>], at: usize) -> Option<&'a [u8]> {
    match args.get(at)?.literal?.as_scalar()? {
        ScalarValue::Text(text) => Some(text.as_bytes()),
        ScalarValue::Bytes(bytes) => Some(bytes),
        _ => None,
    }
}

/// The fault for an argument outside an operator's domain.
pub(crate) fn invalid(reason: &'static str) -> Fault {
    text_fault(FaultKind::Invalid, Text::new(reason))
}

/// Makes a fault with a text that explains it. The text must be in the arena of the call, or outlive the call.
pub(crate) fn text_fault(kind: FaultKind, text: Text<'static>) -> Fault {
    let text = text.as_str();
    Fault { kind, operands: [text.as_ptr() as u64, text.len() as u64] }
}
