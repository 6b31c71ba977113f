//! Builds strings in the arena of an evaluation: memory of the greatest possible length is allocated first, and then
//! written from left to right. Also a buffer on the stack for short texts.

use super::{Chars, invalid, text_fault};
use cembra_runtime::{Bytes, Context, Fault, FaultKind, Text};
use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;

/// A string that is being written into the arena. Only texts, and strings of the type `S`, can be appended, so that a text is always valid UTF-8.
pub(super) struct ArenaString<'a, S> {
    room: &'a mut [u8],
    len: usize,
    of: PhantomData<S>,
}

/// A text that is being written into the arena.
pub(super) type ArenaText<'a> = ArenaString<'a, Text<'static>>;
/// A string of type BYTES that is being written into the arena.
pub(super) type ArenaBytes<'a> = ArenaString<'a, Bytes<'static>>;

impl<'a, S: Chars> ArenaString<'a, S> {
    /// Allocates memory for a string of up to `len` bytes.
    ///
    /// # Errors
    /// If the arena is full.
    pub(super) fn new(context: &'a mut Context, len: usize) -> Result<Self, Fault> {
        Ok(ArenaString { room: context.arena().allocate(len)?, len: 0, of: PhantomData })
    }

    /// Appends a string. If the string does not fit, nothing is appended.
    pub(super) fn push(&mut self, part: S) {
        self.add(part.bytes());
    }

    /// Appends a text, which is possible for both types of strings.
    pub(super) fn push_str(&mut self, part: &str) {
        self.add(part.as_bytes());
    }

    fn add(&mut self, part: &[u8]) {
        let end = self.len + part.len();
        debug_assert!(end <= self.room.len(), "the buffer is too small for the added bytes");
        if let Some(room) = self.room.get_mut(self.len..end) {
            room.copy_from_slice(part);
            self.len = end;
        }
    }

    /// Appends a character, encoded in UTF-8, to the string.
    pub(super) fn push_char(&mut self, char: char) {
        self.push_str(char.encode_utf8(&mut [0; 4]));
    }

    /// Returns the string that was written into the arena.
    pub(super) fn finish(self) -> S {
        // SAFETY: STRING-VIEW: the arena keeps the piece until the next call, and whole strings of the type were added.
        unsafe { S::view(&self.room[..self.len]) }
    }
}

impl ArenaBytes<'_> {
    /// Appends bytes. If they do not fit, nothing is appended.
    pub(super) fn push_bytes(&mut self, part: &[u8]) {
        self.add(part);
    }

    /// The bytes that were appended so far.
    pub(super) fn written(&mut self) -> &mut [u8] {
        &mut self.room[..self.len]
    }
}

impl<S: Chars> fmt::Write for ArenaString<'_, S> {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        self.push_str(part);
        Ok(())
    }
}

/// Concatenates strings into a new string in the arena.
///
/// # Errors
/// If the arena is full.
pub(super) fn concatenate<S: Chars>(context: &mut Context, parts: &[S]) -> Result<S, Fault> {
    let len = parts.iter().fold(0_usize, |len, part| len.saturating_add(part.bytes().len()));
    let mut made = ArenaString::new(context, len)?;
    parts.iter().for_each(|part| made.push(*part));
    Ok(made.finish())
}

/// Copies a text into the arena.
///
/// # Errors
/// If the arena is full.
pub(crate) fn copied(context: &mut Context, text: &str) -> Result<Text<'static>, Fault> {
    let mut made = ArenaText::new(context, text.len())?;
    made.push_str(text);
    Ok(made.finish())
}

/// The fault for an argument outside an operator's domain. `reason` is copied into the arena; if the arena is full, the fault
/// has the reason `short`.
pub(crate) fn invalid_for(context: &mut Context, reason: &str, short: &'static str) -> Fault {
    copied(context, reason).map_or_else(|_full| invalid(short), |text| text_fault(FaultKind::Invalid, text))
}

/// Copies bytes into the arena.
///
/// # Errors
/// If the arena is full.
pub(crate) fn copied_bytes(context: &mut Context, bytes: &[u8]) -> Result<Bytes<'static>, Fault> {
    let mut made = ArenaBytes::new(context, bytes.len())?;
    made.push_bytes(bytes);
    Ok(made.finish())
}

/// A buffer on the stack for a short text, such as a number. Writing a text that does not fit is an error.
pub(crate) struct StackText<const N: usize> {
    room: [u8; N],
    len: usize,
}

impl<const N: usize> StackText<N> {
    pub(crate) const fn new() -> Self {
        StackText { room: [0; N], len: 0 }
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.room[..self.len]
    }

    pub(crate) fn as_str(&self) -> &str {
        // Only whole texts are written, so this never fails.
        str::from_utf8(self.as_bytes()).unwrap_or_default()
    }

    /// Appends a byte, which need not be valid UTF-8 by itself.
    pub(super) fn push_byte(&mut self, byte: u8) {
        if let Some(room) = self.room.get_mut(self.len) {
            *room = byte;
            self.len += 1;
        }
    }

    /// Removes the bytes of the text in the range `part`.
    pub(super) fn remove(&mut self, part: Range<usize>) {
        self.room[..self.len].copy_within(part.end.., part.start);
        self.len -= part.len();
    }
}

impl<const N: usize> fmt::Write for StackText<N> {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        let end = self.len + part.len();
        self.room.get_mut(self.len..end).ok_or(fmt::Error)?.copy_from_slice(part.as_bytes());
        self.len = end;
        Ok(())
    }
}
