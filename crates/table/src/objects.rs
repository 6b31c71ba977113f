//! Splits a JSON stream into its objects, each with the line that it starts on. The stream is an array of objects or a sequence of objects (JSON
//! lines). This module only finds where objects end; the crate `cembra` parses the objects, perhaps later and on another thread.
//!
//! If unreadable rows are skipped, a line in a sequence of objects counts as an unreadable row if it does not begin a complete object.

use super::error::{DataCode, DataError};
use super::schema::{RECORD_BYTES, RECORD_VALUES};
use cembra::json::JsonRow;
use memchr::memchr;
use std::io::{self, BufRead, BufReader, Cursor, Read};

/// A parsed JSON object, and the line that it starts on, counted from 1.
#[derive(Debug)]
pub(crate) struct Object {
    /// The members of the JSON object, in order, with distinct keys.
    pub(crate) row: JsonRow,
    /// The line that the JSON object starts on, counted from 1.
    pub(crate) line: u64,
}

impl Object {
    /// The number of bytes of the JSON object's text.
    pub(crate) fn size(&self) -> usize {
        self.row.text().as_str().len()
    }
}

/// The position of a JSON object in the bytes of a piece of the stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cut {
    /// The index of the byte after the object. The object begins where the one before it ends.
    pub(crate) end: usize,
    /// The line that the object starts on, counted from 1.
    pub(crate) line: u64,
    /// An upper bound for the number of JSON values in the object.
    pub(crate) values: usize,
    /// True if the bytes are not an object but a line that does not begin a complete object.
    pub(crate) is_broken: bool,
}

impl Cut {
    /// Parses the bytes of the JSON object.
    ///
    /// # Errors
    /// If the bytes are not JSON.
    pub(crate) fn parse(self, bytes: &[u8]) -> Result<Object, DataError> {
        let Cut { line, is_broken, .. } = self;
        let text = str::from_utf8(bytes).map_err(|error| {
            if bytes.contains(&0) {
                return DataError::zero_byte("an object").on_line(line);
            }
            let before = &bytes[..error.valid_up_to()];
            let line = line + before.iter().filter(|byte| **byte == b'\n').count() as u64;
            DataError::new(DataCode::Unreadable, "not JSON: invalid unicode code point").on_line(line)
        })?;
        match JsonRow::parse(text) {
            // The line is valid JSON, so it was cut because the object has more values than a row may have.
            Ok(_) if is_broken => Err(DataError::unreadable("an object is too large for a row").on_line(line)),
            Ok(row) => Ok(Object { row, line }),
            Err(_) if bytes.contains(&0) => Err(DataError::zero_byte("an object").on_line(line)),
            // The line in the message is counted from the start of the file.
            Err(error) => {
                let before = error.line().unwrap_or(1).saturating_sub(1) as u64;
                Err(DataError::new(DataCode::Unreadable, error.message()).on_line(line + before))
            }
        }
    }
}

/// The position in the stream's syntax, which decides what may come next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nothing was read yet: an array, or the first object of a sequence, may come next.
    Start,
    /// In a sequence: an object, or the end of the data, may come next.
    Sequence,
    /// After the `[` of an array: the first object, or `]`, may come next.
    ArrayStart,
    /// After an object of an array: a comma, or `]`, may come next.
    ArrayRest,
    /// After the `]` of an array: only the end of the data may come next.
    End,
}

/// The set of bytes at which a scan stops.
struct Stops([bool; 256]);

impl Stops {
    const IN_TEXT: &Stops = &Stops::at(b"\"\\\n");
    const OUTSIDE: &Stops = &Stops::at(b"\"{}[],\n");

    const fn at(bytes: &[u8]) -> Stops {
        let mut stops = [false; 256];
        let mut next = 0;
        while next < bytes.len() {
            stops[bytes[next] as usize] = true;
            next += 1;
        }
        Stops(stops)
    }
}

/// The deepest nesting of objects and arrays. It is limited because finding their types uses the stack.
const DEEPEST: u32 = 127;

/// A reader to which bytes can be put back, to be read again.
struct Rereader<R> {
    again: Cursor<Vec<u8>>,
    input: R,
}

impl<R: BufRead> Rereader<R> {
    /// The bytes that were put back and not read again.
    fn again(&self) -> &[u8] {
        let from = usize::try_from(self.again.position()).unwrap_or(usize::MAX);
        self.again.get_ref().get(from..).unwrap_or_default()
    }

    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.again().is_empty() { self.input.fill_buf() } else { self.again.fill_buf() }
    }

    fn consume(&mut self, count: usize) {
        if self.again().is_empty() {
            self.input.consume(count);
            return;
        }
        self.again.consume(count);
        if self.again().is_empty() {
            self.again = Cursor::default();
        }
    }

    /// Puts back `bytes`, which must be the last bytes that were read.
    fn put_back(&mut self, mut bytes: Vec<u8>) {
        bytes.extend_from_slice(self.again());
        self.again = Cursor::new(bytes);
    }
}

/// Splits a JSON stream into its objects.
pub(crate) struct Objects<R> {
    input: Rereader<R>,
    /// True if a line that does not begin a complete object is returned as an object that cannot be read; false if it is an error.
    tolerant: bool,
    state: State,
    /// The line of the next byte.
    line: u64,
}

impl<R: Read> Objects<BufReader<R>> {
    /// Returns true if no byte of the next object is available yet, so that reading the object may wait.
    pub(crate) fn would_wait(&self) -> bool {
        self.input.again().iter().chain(self.input.input.buffer()).all(u8::is_ascii_whitespace)
    }
}

impl<R: BufRead> Objects<R> {
    /// Makes a reader of the objects of `input`. With `tolerant`, a line that does not begin a complete object is returned too, with `is_broken`
    /// set.
    pub(crate) fn new(input: R, tolerant: bool) -> Self {
        let input = Rereader { again: Cursor::default(), input };
        Objects { input, tolerant, state: State::Start, line: 1 }
    }

    /// Appends the bytes of the next object to `bytes`, and returns the object's position; `None` at the end of the data. The text between
    /// the braces is not checked.
    ///
    /// # Errors
    /// If the input cannot be read, or is neither an array of objects nor a sequence of objects.
    pub(crate) fn cut(&mut self, bytes: &mut Vec<u8>) -> Result<Option<Cut>, DataError> {
        let next = self.next_byte()?;
        if self.state == State::Start {
            self.state = State::Sequence;
            if next == Some(b'[') {
                self.input.consume(1);
                self.state = State::ArrayStart;
                return self.cut_in_array(bytes);
            }
        }
        match self.state {
            State::ArrayStart | State::ArrayRest => self.cut_in_array(bytes),
            State::Start | State::Sequence => match next {
                Some(byte) => self.cut_next(byte, bytes).map(Some),
                None => Ok(None),
            },
            State::End => match next {
                Some(byte) => Err(self.unexpected("nothing after the array", byte)),
                None => Ok(None),
            },
        }
    }

    /// Appends the bytes of the next object of an array to `bytes`; `None` after the array.
    fn cut_in_array(&mut self, bytes: &mut Vec<u8>) -> Result<Option<Cut>, DataError> {
        let unclosed = |line| DataError::new(DataCode::Unreadable, "the array is never closed").on_line(line);
        let mut next = self.next_byte()?.ok_or_else(|| unclosed(self.line))?;
        if next == b']' {
            self.input.consume(1);
            self.state = State::End;
            return self.cut(bytes);
        }
        if self.state == State::ArrayRest {
            if next != b',' {
                return Err(self.unexpected("`,` or `]`", next));
            }
            self.input.consume(1);
            next = self.next_byte()?.ok_or_else(|| unclosed(self.line))?;
        }
        self.state = State::ArrayRest;
        self.cut_next(next, bytes).map(Some)
    }

    /// Skips white space, and returns the byte after it without consuming it.
    #[inline]
    fn next_byte(&mut self) -> Result<Option<u8>, DataError> {
        loop {
            let input = self.input.fill_buf().map_err(|cause| DataError::io("cannot read", cause))?;
            let Some(byte) = input.first().copied() else { return Ok(None) };
            if !matches!(byte, b' ' | b'\t' | b'\r' | b'\n') {
                return Ok(Some(byte));
            }
            self.line += u64::from(byte == b'\n');
            self.input.consume(1);
        }
    }

    fn unexpected(&self, expected: &str, found: u8) -> DataError {
        if found == 0 {
            return DataError::zero_byte("the text").on_line(self.line);
        }
        let found =
            if found.is_ascii_graphic() { format!("`{}`", char::from(found)) } else { format!("byte {found:#04x}") };
        DataError::new(DataCode::Unreadable, format!("expected {expected}, found {found}")).on_line(self.line)
    }

    /// Appends the bytes of the object that begins with `first` to `bytes`.
    fn cut_next(&mut self, first: u8, bytes: &mut Vec<u8>) -> Result<Cut, DataError> {
        let (start, line) = (bytes.len(), self.line);
        let values = if first == b'{' {
            self.cut_object(bytes)
        } else {
            let hint = "write an array of objects, or one object on each line: each object is a row";
            let error = self.unexpected("an object", first);
            Err(if first == 0 { error } else { error.hint(hint) })
        };
        match values {
            Ok(values) => Ok(Cut { end: bytes.len(), line, values, is_broken: false }),
            Err(error) if error.code() == DataCode::Unreadable && self.tolerant && self.state == State::Sequence => {
                self.cut_line(start, line, bytes, error)
            }
            Err(error) => Err(error),
        }
    }

    /// Appends the rest of the line `line`, on which a broken object begins. The object's bytes so far begin at `start`
    /// in `bytes`; bytes after the line are put back. An object that is never closed seems to contain the objects on
    /// the lines after it, until they nest too deep. So a byte is scanned at most [`DEEPEST`] more times, and the work
    /// is bounded.
    ///
    /// # Errors
    /// If the input cannot be read; or `error`, if the line is longer than a row may be.
    fn cut_line(&mut self, start: usize, line: u64, bytes: &mut Vec<u8>, error: DataError) -> Result<Cut, DataError> {
        match memchr(b'\n', &bytes[start..]) {
            Some(end) => self.input.put_back(bytes.split_off(start + end + 1)),
            None => loop {
                let input = self.input.fill_buf().map_err(DataError::unread)?;
                let end = memchr(b'\n', input);
                let taken = end.map_or(input.len(), |end| end + 1);
                bytes.extend_from_slice(&input[..taken]);
                self.input.consume(taken);
                if bytes.len() - start > RECORD_BYTES {
                    return Err(error);
                }
                if end.is_some() || taken == 0 {
                    break;
                }
            },
        }
        self.line = line + 1;
        Ok(Cut { end: bytes.len(), line, values: 1, is_broken: true })
    }

    /// Appends the bytes from an opening brace to its closing brace, and returns the number of values.
    fn cut_object(&mut self, bytes: &mut Vec<u8>) -> Result<usize, DataError> {
        let (first, first_line) = (bytes.len(), self.line);
        let mut values = 0;
        let unreadable = |message: &str, line| Err(DataError::new(DataCode::Unreadable, message).on_line(line));
        let (mut depth, mut in_text, mut escaped) = (0_u32, false, false);
        // A bit for each open bracket, set for objects.
        let mut are_objects = 0_u128;
        loop {
            let input = self.input.fill_buf().map_err(|cause| DataError::io("cannot read", cause))?;
            if input.is_empty() {
                return unreadable("an object is never closed", first_line);
            }
            let (mut at, mut done) = (0, false);
            while at < input.len() && !done {
                // Bytes inside strings, and bytes that are neither quotes nor brackets, are skipped together.
                let stops = if in_text { Stops::IN_TEXT } else { Stops::OUTSIDE };
                if !escaped {
                    at += input[at..].iter().position(|byte| stops.0[usize::from(*byte)]).unwrap_or(input.len() - at);
                }
                let Some(byte) = input.get(at) else { break };
                at += 1;
                match byte {
                    b'\n' if in_text => return unreadable("a string is not closed on its line", self.line),
                    b'\n' => self.line += 1,
                    _ if escaped => escaped = false,
                    b'\\' if in_text => escaped = true,
                    b'"' => in_text = !in_text,
                    _ if in_text => {}
                    b'{' | b'[' if depth == DEEPEST => {
                        return unreadable("not JSON: recursion limit exceeded", self.line);
                    }
                    // A line that was cut off continues with the next row.
                    b'{' if self.tolerant && depth > 0 => {
                        let before = input[..at - 1].iter().rev().chain(bytes[first..].iter().rev());
                        let before = before.copied().find(|byte| !byte.is_ascii_whitespace());
                        let is_in_object = are_objects >> (depth - 1) & 1 != 0;
                        if !matches!((before, is_in_object), (Some(b':'), true) | (Some(b',' | b'['), false)) {
                            return unreadable("not JSON: expected `,` or `}`", self.line);
                        }
                        are_objects |= 1 << depth;
                        depth += 1;
                        values += 1;
                    }
                    // A value is the first in its brackets or follows a comma.
                    b',' => values += 1,
                    b'{' | b'[' => {
                        are_objects = are_objects & !(1 << depth) | u128::from(*byte == b'{') << depth;
                        depth += 1;
                        values += 1;
                    }
                    b'}' | b']' => depth -= 1,
                    _ => {}
                }
                done = depth == 0;
            }
            bytes.extend_from_slice(&input[..at]);
            self.input.consume(at);
            if values > RECORD_VALUES {
                return unreadable(&format!("an object exceeds the limit of {RECORD_VALUES} values"), first_line);
            }
            if done {
                return Ok(values);
            }
            if bytes.len() - first > RECORD_BYTES {
                return unreadable(&format!("an object exceeds the limit of {} MiB", RECORD_BYTES >> 20), first_line);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::BufReader;

    fn read(text: &str) -> Result<Vec<(u64, String)>, String> {
        let shown: Vec<_> = [1, 5, 8192]
            .into_iter()
            .map(|capacity| {
                let mut objects = Objects::new(BufReader::with_capacity(capacity, text.as_bytes()), false);
                let mut found = Vec::new();
                let told = |error: DataError| format!("{}: {error}", error.line().unwrap_or(0));
                let mut bytes = Vec::new();
                while let Some(cut) = objects.cut(&mut bytes).map_err(told)? {
                    let object = cut.parse(&std::mem::take(&mut bytes)).map_err(told)?;
                    found.push((object.line, object.row.text().to_string()));
                }
                Ok(found)
            })
            .collect();
        assert!(shown.iter().all(|one| *one == shown[0]), "the size of the buffer matters");
        shown.into_iter().next().expect("three were read")
    }

    fn lines(rows: &[(u64, &str)]) -> Result<Vec<(u64, String)>, String> {
        Ok(rows.iter().map(|(line, text)| (*line, (*text).to_owned())).collect())
    }

    #[test]
    fn an_array_and_a_sequence_give_the_same_rows() {
        let rows = lines(&[(1, r#"{"a":1}"#), (3, r#"{"a":{"b":["]}\"{"]}}"#)]);
        assert_eq!(read("{\"a\": 1}\r\n\r\n{\"a\":\n {\"b\": [\"]}\\\"{\"]}}"), rows);
        assert_eq!(read("[{\"a\": 1},\n\n{\"a\":\n {\"b\": [\"]}\\\"{\"]}}\n]\n"), rows);
        assert_eq!(read(""), lines(&[]));
        assert_eq!(read(" [ ] "), lines(&[]));
    }

    #[test]
    fn numbers_keep_every_digit() {
        let text = r#"{"a":9223372036854775807,"b":0.1000000000000000055511151231257827,"c":1e+5}"#;
        assert_eq!(read(text), lines(&[(1, text)]));
    }

    #[test]
    fn broken_data_is_refused_with_its_line() {
        let cases = [
            ("{\"a\":1}\n{\"a\":}\n", "2: not JSON: expected value"),
            ("{\"a\":1,\n\"a\":2}", "2: not JSON: the object has the key `a` twice"),
            ("{\"a\":1\n{\"a\":2}", "1: an object is never closed"),
            ("{\"a\":1}\n{\"a\":\"x}\n{\"a\":\"y\"}", "2: a string is not closed on its line"),
            ("[{\"a\":1}\n{\"a\":2}]", "2: expected `,` or `]`, found `{`"),
            ("[{\"a\":1},\n", "2: the array is never closed"),
            ("[{\"a\":1}]\n\nx", "3: expected nothing after the array, found `x`"),
            ("{\"a\":[1}}", "1: not JSON: expected `,` or `]`"),
        ];
        for (text, expected) in cases {
            assert_eq!(read(text), Err(expected.to_owned()), "{text}");
        }
        assert_eq!(
            read("[1, 2]"),
            Err("1: expected an object, found `1`; write an array of objects, or one object on each line: each object is a row"
                .to_owned())
        );
    }

    #[test]
    fn a_line_that_is_no_object_is_one_broken_row() {
        let cases: [(&str, &[(u64, bool)]); 11] = [
            ("{\"a\":1}\noops\n{\"a\":2}\n", &[(1, true), (2, false), (3, true)]),
            ("{\"a\":1\n{\"a\":2}\n{\"a\":3}\n", &[(1, false), (2, true), (3, true)]),
            ("{\"a\":\"x}\n{\"a\":2}\n", &[(1, false), (2, true)]),
            ("{\"a\":{\n{\"a\":[\n{\"a\":2}", &[(1, false), (2, false), (3, true)]),
            ("{\"a\":1}\n\n{\"a\":", &[(1, true), (3, false)]),
            ("{\n\"a\":1\n}\n]\n{\"a\":\n2}", &[(1, true), (4, false), (5, true)]),
            ("7\n{\"a\":}\n{\"a\":2}", &[(1, false), (2, false), (3, true)]),
            ("{\"a\":1}x\n{\"a\":2}", &[(1, true), (1, false), (2, true)]),
            ("{\"a\":1\n{\"a\":2}\n{\"a\":3}}\n{\"a\":4}", &[(1, false), (2, true), (3, true), (3, false), (4, true)]),
            ("{\"a\":1,\n{\"a\":2}\n}\n{\"a\":4}", &[(1, false), (2, true), (3, false), (4, true)]),
            ("{\"a\":[{\"b\":{}},\n{\"b\":2}],\n\"c\":\n{\"d\":[[{}]]}}\n{\"a\":4}", &[(1, true), (5, true)]),
        ];
        for (text, expected) in cases {
            for capacity in [1, 5, 8192] {
                let mut objects = Objects::new(BufReader::with_capacity(capacity, text.as_bytes()), true);
                let (mut bytes, mut found) = (Vec::new(), Vec::new());
                while let Some(cut) = objects.cut(&mut bytes).expect("all lines are cut off") {
                    found.push((cut.line, cut.parse(&bytes).is_ok()));
                    bytes.clear();
                }
                assert_eq!(found, expected, "{text}, {capacity} bytes at once");
            }
        }
        // In an array, reading cannot go on after a fault.
        let mut objects = Objects::new("[{\"a\":1},\noops]".as_bytes(), true);
        let mut bytes = Vec::new();
        assert!(objects.cut(&mut bytes).is_ok() && objects.cut(&mut bytes).is_err());
    }

    /// Each line begins an object that is never closed.
    #[test]
    fn many_broken_lines_take_linear_time() {
        let text = "{\"a\":1,\n".repeat(20_000);
        let mut objects = Objects::new(text.as_bytes(), true);
        let (mut bytes, mut count) = (Vec::new(), 0);
        while let Some(cut) = objects.cut(&mut bytes).expect("all lines are cut off") {
            assert!(cut.is_broken);
            count += 1;
            bytes.clear();
        }
        assert_eq!(count, 20_000);
    }

    #[test]
    fn values_are_counted() {
        let text = |values: usize| format!("{{\"a\":[{}0]}}", "0,".repeat(values));
        assert_eq!(read(&text(RECORD_VALUES - 2)).map(|rows| rows.len()), Ok(1));
        let expected = "1: an object exceeds the limit of 1048576 values".to_owned();
        assert_eq!(read(&text(RECORD_VALUES - 1)), Err(expected));
    }

    #[test]
    fn deep_nesting_is_refused() {
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(read(&deep), Err("1: not JSON: recursion limit exceeded".to_owned()));
    }
}
