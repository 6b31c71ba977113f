//! Splits the text of a CSV into blocks of whole records, with the line that each block starts on. Only quotes are
//! tracked, because a line may end within a quoted field. Other syntax of fields, and their types, are handled in
//! `rows.rs`.
//!
//! A line ends with LF, CRLF or a lone CR; within quotes only an LF ends a line. The positions at which the text is cut into blocks do not change
//! the result, only the memory needed.

use crate::error::{DataCode, DataError};
use crate::input::{Bytes, Text, read_some};
use crate::schema::RECORD_BYTES;
use cembra_expr::closing_quote;
use memchr::{memchr, memchr_iter, memchr2, memrchr};

/// A block of a CSV's text: whole records, and the line that the first of them starts on.
#[derive(Debug, Default)]
pub(crate) struct Block {
    /// The bytes of the block's records.
    pub(crate) bytes: Vec<u8>,
    /// The line of the block's first byte, counted from 1.
    pub(crate) line: u64,
}

/// Splits the text of a CSV into blocks of whole records.
pub(crate) struct Blocks {
    reader: Bytes,
    /// True if the text is a file. Then a block can be filled without waiting, as reading from a pipe may.
    file: bool,
    delimiter: u8,
    /// The number of bytes that a block is filled up to.
    size: usize,
    /// The bytes read after the last block.
    rest: Vec<u8>,
    /// The line of the next byte, counted from 1.
    line: u64,
    ended: bool,
}

impl Blocks {
    /// Splits `text` into blocks of about `size` bytes each.
    pub(crate) fn new(text: Text, delimiter: u8, size: usize) -> Self {
        let size = size.max(1);
        Blocks { reader: text.reader, file: text.file, delimiter, size, rest: Vec::new(), line: 1, ended: false }
    }

    /// Reads ahead until there is a complete line that is not blank. Returns all bytes read so far; they stay in the input of the next block.
    ///
    /// # Errors
    /// If the input cannot be read.
    pub(crate) fn peek_line(&mut self) -> Result<&[u8], DataError> {
        let (mut looked_at, mut has_text, mut is_whole) = (0, false, false);
        loop {
            // A pipe gives small pieces, so bytes that were checked are not checked again.
            for byte in &self.rest[looked_at..] {
                let is_end = matches!(byte, b'\n' | b'\r');
                is_whole |= is_end && has_text;
                has_text |= !is_end;
            }
            looked_at = self.rest.len();
            if self.ended || is_whole || looked_at >= RECORD_BYTES {
                break;
            }
            self.fill(self.size.max(1 << 12))?;
        }
        Ok(&self.rest)
    }

    /// Sets the character that separates the CSV's fields.
    pub(crate) fn set_delimiter(&mut self, delimiter: u8) {
        self.delimiter = delimiter;
    }

    /// The character that separates fields.
    pub(crate) fn delimiter(&self) -> u8 {
        self.delimiter
    }

    /// Reads the next block of records; `None` at the end of the data.
    ///
    /// # Errors
    /// If the input cannot be read, or a record has more than `RECORD_BYTES` bytes.
    pub(crate) fn next(&mut self) -> Result<Option<Block>, DataError> {
        let mut wanted = self.size;
        let has_end = |bytes: &[u8]| memchr2(b'\n', b'\r', bytes).is_some();
        let mut may_have_record = has_end(&self.rest);
        loop {
            // A pipe is waited for only until there is a record.
            while !self.ended && self.rest.len() < wanted {
                let before = self.rest.len();
                self.fill(wanted - before)?;
                may_have_record = may_have_record || has_end(&self.rest[before..]);
                if !self.file && may_have_record {
                    break;
                }
            }
            if self.ended {
                if self.rest.is_empty() {
                    return Ok(None);
                }
                let line = self.line;
                return Ok(Some(Block { bytes: std::mem::take(&mut self.rest), line }));
            }
            let cut = self.cut();
            if let Some((end, lines)) = cut.and_then(|(end, lines)| before_blank_lines(&self.rest[..end], lines)) {
                let rest = self.rest.split_off(end);
                let bytes = std::mem::replace(&mut self.rest, rest);
                let line = self.line;
                self.line += lines;
                return Ok(Some(Block { bytes, line }));
            }
            if self.rest.len() >= RECORD_BYTES {
                return Err(too_long().on_line(self.line));
            }
            wanted = (2 * self.rest.len()).clamp(wanted, RECORD_BYTES);
        }
    }

    fn fill(&mut self, most: usize) -> Result<(), DataError> {
        let read = read_some(&mut self.reader, &mut self.rest, most.max(1)).map_err(DataError::unread)?;
        self.ended = read == 0;
        Ok(())
    }

    /// The position after the last line end outside of quotes, where the bytes read so far can be cut, and the number of lines before it;
    /// `None` if there is no whole record.
    fn cut(&self) -> Option<(usize, u64)> {
        let bytes = &self.rest[..];
        // Most texts have no CR, so it is searched only once, not at each quote.
        let may_return = memchr(b'\r', bytes).is_some();
        let lone_returns = |gap: &[u8]| if may_return { lone_returns(gap) } else { 0 };
        let mut end = None;
        // The lone CRs before and after `end`.
        let (mut returns, mut behind) = (0, 0);
        let mut at = 0;
        loop {
            let quote = memchr(b'"', &bytes[at..]).map_or(bytes.len(), |found| at + found);
            let gap = &bytes[at..quote];
            if let Some(last) = last_end(gap, quote == bytes.len()) {
                returns += behind + lone_returns(&gap[..last]);
                behind = 0;
                at += last;
                end = Some(at);
            }
            if quote == bytes.len() {
                break;
            }
            behind += lone_returns(&bytes[at..quote]);
            let opens = quote
                .checked_sub(1)
                .is_none_or(|before| matches!(bytes[before], b'\n' | b'\r') || bytes[before] == self.delimiter);
            at = quote + 1;
            if opens {
                match closing_quote(bytes, at) {
                    Some(closing) => at = closing + 1,
                    None => break,
                }
            }
        }
        // Within quotes an LF ends a line, a CR does not.
        end.map(|end| (end, line_feeds(&bytes[..end]) + returns))
    }
}

/// Moves the end of a block, and its number of lines, to before its trailing blank lines, which belong to the next record. `None` if all
/// lines are blank.
fn before_blank_lines(block: &[u8], lines: u64) -> Option<(usize, u64)> {
    let last = block.iter().rposition(|byte| !matches!(byte, b'\n' | b'\r'))?;
    let end = last + if block[last + 1..].starts_with(b"\r\n") { 3 } else { 2 };
    Some((end, lines - line_feeds(&block[end..]) - lone_returns(&block[end..])))
}

/// The position after the last line end in `gap`, which is text outside of quotes; `None` if it has no line end. If
/// `to_the_end` is true, the next bytes are not read yet, so a CR at the end of `gap` may be half of a CRLF.
fn last_end(gap: &[u8], to_the_end: bool) -> Option<usize> {
    match memrchr(b'\n', gap) {
        Some(end) => Some(end + 1),
        // A lone CR, unless an LF may follow it.
        None => match memrchr(b'\r', gap)? {
            end if end + 1 < gap.len() || !to_the_end => Some(end + 1),
            end => memrchr(b'\r', &gap[..end]).map(|end| end + 1),
        },
    }
}

fn line_feeds(bytes: &[u8]) -> u64 {
    memchr_iter(b'\n', bytes).count() as u64
}

/// The number of CRs that end a line by themselves. The bytes are outside of quotes and do not end within a CRLF.
fn lone_returns(bytes: &[u8]) -> u64 {
    let lone = |at: &usize| bytes.get(at + 1) != Some(&b'\n');
    memchr_iter(b'\r', bytes).filter(lone).count() as u64
}

/// The error that a record has more bytes than allowed.
pub(crate) fn too_long() -> DataError {
    let message = format!("a row exceeds the limit of {} MiB", RECORD_BYTES >> 20);
    DataError::new(DataCode::Unreadable, message).hint("close all quotes: a quote may be open")
}
