//! CSV records with the line each of them truly starts on. It drives `csv-core`, the parser inside the `csv` crate,
//! because that crate counts from the end of the record before: after CRLF, or a blank line, its lines are wrong.
//!
//! A line ends with LF, CRLF or a lone CR. Blank lines are skipped and counted. Nothing is known of types here.

use super::error::{DataCode, DataError};
use std::io::{self, BufRead};

/// The longest record in bytes. What is longer is a quote that is never closed, not a row.
pub(crate) const RECORD_BYTES: usize = 64 << 20;

/// The most fields of a record, or values of a row: each takes far more memory than the byte or two that it may be written in.
pub(crate) const RECORD_VALUES: usize = 1 << 20;

/// One record: its fields, unquoted, and where it was.
#[derive(Clone, Default, Debug)]
pub(crate) struct Record {
    /// The fields one behind the other, then room from longer records before.
    bytes: Vec<u8>,
    /// Where each field ends in `bytes`, then likewise room.
    ends: Vec<usize>,
    fields: usize,
    /// The line of its first byte, counted from 1.
    pub(crate) line: u64,
    /// True if blank lines lie between the record before and this one.
    pub(crate) after_blank: bool,
}

impl Record {
    /// The number of fields.
    pub(crate) fn len(&self) -> usize {
        self.fields
    }

    /// The bytes of all fields.
    pub(crate) fn size(&self) -> usize {
        self.fields.checked_sub(1).map_or(0, |last| self.ends[last])
    }

    /// The bytes of a field; empty if there is no such field.
    pub(crate) fn field(&self, index: usize) -> &[u8] {
        if index >= self.fields {
            return &[];
        }
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start..self.ends[index]]
    }
}

/// Reads records one after the other.
pub(crate) struct Records<R> {
    input: R,
    parser: Box<csv_core::Reader>,
    /// The line of the next byte.
    line: u64,
    /// True if the byte before was a CR that ended a line, so that a LF now belongs to it.
    after_cr: bool,
}

impl<R: BufRead> Records<R> {
    /// Records of `input`, whose fields are separated by `delimiter`.
    pub(crate) fn new(input: R, delimiter: u8) -> Self {
        let parser = Box::new(csv_core::ReaderBuilder::new().delimiter(delimiter).build());
        Records { input, parser, line: 1, after_cr: false }
    }

    /// Reads the next record into `record`, reusing its memory; false at the end of the data.
    ///
    /// # Errors
    /// The input cannot be read, a record is too long, or a quote is still open at the end.
    pub(crate) fn read(&mut self, record: &mut Record) -> Result<bool, DataError> {
        record.after_blank = self.skip_blank_lines().map_err(|cause| DataError::io("cannot read", cause))?;
        record.line = self.line;
        let (mut filled, mut fields) = (0, 0);
        let (mut newlines, mut quotes) = (0_u64, 0_usize);
        loop {
            let input = self.input.fill_buf().map_err(|cause| DataError::io("cannot read", cause))?;
            let at_end = input.is_empty();
            let (result, used, written, ended) =
                self.parser.read_record(input, &mut record.bytes[filled..], &mut record.ends[fields..]);
            let used_bytes = &input[..used];
            newlines += used_bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
            quotes += used_bytes.iter().filter(|byte| **byte == b'"').count();
            let last = used_bytes.last().copied();
            self.input.consume(used);
            filled += written;
            fields += ended;
            match result {
                csv_core::ReadRecordResult::InputEmpty => {}
                csv_core::ReadRecordResult::OutputFull if filled >= RECORD_BYTES => {
                    let message = format!("a row of more than {} MiB", RECORD_BYTES >> 20);
                    return Err(DataError::new(DataCode::Unreadable, message)
                        .on_line(record.line)
                        .hint("is a quote never closed?"));
                }
                csv_core::ReadRecordResult::OutputFull => {
                    record.bytes.resize((2 * record.bytes.len()).clamp(256, RECORD_BYTES), 0);
                }
                csv_core::ReadRecordResult::OutputEndsFull if fields >= RECORD_VALUES => {
                    let message = format!("a row of more than {RECORD_VALUES} fields");
                    return Err(DataError::new(DataCode::Unreadable, message).on_line(record.line));
                }
                csv_core::ReadRecordResult::OutputEndsFull => record.ends.resize((2 * record.ends.len()).max(16), 0),
                csv_core::ReadRecordResult::Record => {
                    record.fields = fields;
                    if at_end && quotes % 2 == 1 && newlines > 0 {
                        // The parser takes the rest of the file for one field. A lone quote within a line may be
                        // somebody's inches, so only a field that swallowed lines is refused.
                        return Err(DataError::new(DataCode::Unreadable, "a quote is opened and never closed")
                            .on_line(record.line));
                    }
                    self.after_cr = last == Some(b'\r') && !at_end;
                    self.line += newlines + u64::from(self.after_cr);
                    return Ok(true);
                }
                csv_core::ReadRecordResult::End => return Ok(false),
            }
        }
    }

    /// Goes to the next byte that ends no line; true if it passed a blank line.
    fn skip_blank_lines(&mut self) -> io::Result<bool> {
        let mut blank = false;
        loop {
            let input = self.input.fill_buf()?;
            let ends = input.iter().take_while(|byte| matches!(byte, b'\n' | b'\r')).count();
            for byte in &input[..ends] {
                if *byte == b'\n' && self.after_cr {
                    self.after_cr = false;
                } else {
                    blank = true;
                    self.line += 1;
                    self.after_cr = *byte == b'\r';
                }
            }
            let more = ends > 0 && ends == input.len();
            self.input.consume(ends);
            if !more {
                self.after_cr = false;
                return Ok(blank);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::BufReader;

    fn read(text: &str, capacity: usize) -> Result<Vec<(u64, bool, Vec<String>)>, DataError> {
        let mut records = Records::new(BufReader::with_capacity(capacity, text.as_bytes()), b',');
        let mut record = Record::default();
        let mut found = Vec::new();
        while records.read(&mut record)? {
            let fields = (0..record.len()).map(|i| String::from_utf8_lossy(record.field(i)).into_owned()).collect();
            found.push((record.line, record.after_blank, fields));
        }
        Ok(found)
    }

    #[test]
    fn lines_are_true_for_every_ending_and_buffer_size() {
        for end in ["\n", "\r\n", "\r"] {
            let text = ["a,b", "1,\"x\ny\"", "", "", "2,\"p\r\n\"\"q\"\"\r\n\"", "3,z", "\"\",", "last,"].join(end);
            let rows: &[(u64, bool, [&str; 2])] = &[
                (1, false, ["a", "b"]),
                (2, false, ["1", "x\ny"]),
                (6, true, ["2", "p\r\n\"q\"\r\n"]),
                (9, false, ["3", "z"]),
                (10, false, ["", ""]),
                (11, false, ["last", ""]),
            ];
            let expected: Vec<_> =
                rows.iter().map(|(line, blank, row)| (*line, *blank, row.map(str::to_owned).to_vec())).collect();
            for capacity in [1, 2, 3, 7, 8192] {
                assert_eq!(read(&text, capacity).expect("it is CSV"), expected, "{end:?} {capacity}");
                assert_eq!(read(&format!("{text}{end}"), capacity).expect("it is CSV"), expected, "{end:?} {capacity}");
            }
        }
    }

    #[test]
    fn an_open_quote_that_swallows_lines_is_an_error_where_it_was_opened() {
        let error = read("a,b\n1,\"x\n2,y\n3,z\n", 8192).expect_err("the quote is open");
        assert_eq!((error.line(), error.message().as_str()), (Some(2), "a quote is opened and never closed"));
        let inches = read("a,b\n1,5\" pipe", 8192).expect("a quote within a field is a character");
        assert_eq!(inches[1].2, ["1", "5\" pipe"]);
    }

    #[test]
    fn records_grow_but_not_without_end() {
        let wide = vec!["0123456789"; 5_000].join(",");
        assert_eq!(read(&wide, 4096).expect("it is CSV")[0].2.len(), 5_000);
        let error = read(&format!("a\n\"{}", "x".repeat(RECORD_BYTES + 1)), 1 << 20).expect_err("too long");
        assert_eq!(error.to_string(), "a row of more than 64 MiB; is a quote never closed?");
        assert_eq!(error.line(), Some(2));
    }

    #[test]
    fn fields_are_counted() {
        let wide = ",".repeat(RECORD_VALUES - 1);
        assert_eq!(read(&wide, 1 << 16).expect("it is CSV")[0].2.len(), RECORD_VALUES);
        let error = read(&format!("a\n{wide},"), 1 << 16).expect_err("one more");
        assert_eq!((error.line(), error.to_string().as_str()), (Some(2), "a row of more than 1048576 fields"));
    }

    #[test]
    fn nothing_but_blank_lines_is_nothing() {
        assert_eq!(read("", 8192).expect("it is CSV"), []);
        assert_eq!(read("\r\n\n\r", 1).expect("it is CSV"), []);
    }
}
