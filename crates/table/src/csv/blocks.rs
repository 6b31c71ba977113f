//! Cuts CSV into blocks of whole records, with the line that each of them starts on. Fields and types are not known here:
//! all that is looked for is which quotes are open, because a line may end within a field.
//!
//! A line ends with LF, CRLF or a lone CR; within quotes only a LF counts as one. Where a block is cut never matters to what
//! is read, only to how much of it is in memory.

use crate::error::{DataCode, DataError};
use crate::input::{Bytes, Text, read_some};
use crate::schema::RECORD_BYTES;
use cembra_expr::closing_quote;
use memchr::{memchr, memchr_iter, memchr2, memrchr};

/// Whole records, and the line that the first of them starts on, counted from 1.
#[derive(Debug, Default)]
pub(crate) struct Block {
    /// The bytes.
    pub(crate) bytes: Vec<u8>,
    /// The line of the first byte.
    pub(crate) line: u64,
}

/// Reads blocks one after the other.
pub(crate) struct Blocks {
    reader: Bytes,
    /// True if a block may wait until it is full.
    file: bool,
    delimiter: u8,
    /// The bytes that a block is filled up to.
    size: usize,
    /// What was read behind the last block.
    rest: Vec<u8>,
    /// The line of the next byte.
    line: u64,
    ended: bool,
}

impl Blocks {
    /// Blocks of a text, each of about `size` bytes.
    pub(crate) fn new(text: Text, delimiter: u8, size: usize) -> Self {
        let size = size.max(1);
        Blocks { reader: text.reader, file: text.file, delimiter, size, rest: Vec::new(), line: 1, ended: false }
    }

    /// Reads until there is a line that is not blank, and does not consume it.
    ///
    /// # Errors
    /// The input cannot be read.
    pub(crate) fn peek_line(&mut self) -> Result<&[u8], DataError> {
        let (mut looked_at, mut has_text, mut is_whole) = (0, false, false);
        loop {
            // What comes of a pipe comes in small pieces: what was looked at is not looked at again.
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

    /// Says what separates fields.
    pub(crate) fn set_delimiter(&mut self, delimiter: u8) {
        self.delimiter = delimiter;
    }

    /// What separates fields.
    pub(crate) fn delimiter(&self) -> u8 {
        self.delimiter
    }

    /// The next block; none at the end of the data.
    ///
    /// # Errors
    /// The input cannot be read, or a record is too long.
    pub(crate) fn next(&mut self) -> Result<Option<Block>, DataError> {
        let mut wanted = self.size;
        let has_end = |bytes: &[u8]| memchr2(b'\n', b'\r', bytes).is_some();
        let mut may_have_record = has_end(&self.rest);
        loop {
            // A pipe is not waited for longer than until there is a record.
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

    /// Where what was read can be cut, behind the last line end outside of quotes, and how many lines end before that; `None` if there is no whole
    /// record.
    fn cut(&self) -> Option<(usize, u64)> {
        let bytes = &self.rest[..];
        // Most texts have no CR: they are not looked through for one again at each quote.
        let may_return = memchr(b'\r', bytes).is_some();
        let lone_returns = |gap: &[u8]| if may_return { lone_returns(gap) } else { 0 };
        let mut end = None;
        // Lone CRs before that end, and behind it.
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
        // Within quotes a LF ends a line, and a CR does not.
        end.map(|end| (end, line_feeds(&bytes[..end]) + returns))
    }
}

/// The end of a block and its number of lines without the blank lines at its end, which matter to the record behind them.
fn before_blank_lines(block: &[u8], lines: u64) -> Option<(usize, u64)> {
    let last = block.iter().rposition(|byte| !matches!(byte, b'\n' | b'\r'))?;
    let end = last + if block[last + 1..].starts_with(b"\r\n") { 3 } else { 2 };
    Some((end, lines - line_feeds(&block[end..]) - lone_returns(&block[end..])))
}

/// Where the last line of a stretch outside of quotes ends.
fn last_end(gap: &[u8], to_the_end: bool) -> Option<usize> {
    match memrchr(b'\n', gap) {
        Some(end) => Some(end + 1),
        // A lone CR, unless a LF may follow it.
        None => match memrchr(b'\r', gap)? {
            end if end + 1 < gap.len() || !to_the_end => Some(end + 1),
            end => memrchr(b'\r', &gap[..end]).map(|end| end + 1),
        },
    }
}

fn line_feeds(bytes: &[u8]) -> u64 {
    memchr_iter(b'\n', bytes).count() as u64
}

/// How many CRs end a line by themselves, in a stretch outside of quotes that does not end within a CRLF.
fn lone_returns(bytes: &[u8]) -> u64 {
    let lone = |at: &usize| bytes.get(at + 1) != Some(&b'\n');
    memchr_iter(b'\r', bytes).filter(lone).count() as u64
}

/// A record that is no record.
pub(crate) fn too_long() -> DataError {
    let message = format!("a row of more than {} MiB", RECORD_BYTES >> 20);
    DataError::new(DataCode::Unreadable, message).hint("is a quote never closed?")
}
