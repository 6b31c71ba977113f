//! Decoding of CSV records into column arrays: the fields of a block are parsed in place, record by record. Frequent spellings are parsed here; for
//! any other spelling, and for every error, the field's text is extracted first and passed to the slower functions.
//!
//! A field that begins with a quote ends with its closing quote. Between them, two quotes stand for one. Any character after the closing quote is
//! an error. In a field that does not begin with a quote, quotes are ordinary characters.

use super::blocks::{Block, too_long};
use super::layout::{Layout, Target};
use super::number::decimal;
use super::record::{Record, RecordField};
use crate::cells::ScalarBuilder;
use crate::error::{DataCode, DataError};
use crate::place::Places;
use crate::schema::{RECORD_BYTES, RECORD_VALUES, quoted};
use crate::{DecodeLimit, Decoded, MOST_FAILURES, Piece};
use arrow_array::ArrayRef;
use arrow_array::builder::StringViewBuilder;
use arrow_buffer::Buffer;
use cembra_expr::{QuoteFault, closing_quote};
use memchr::{memchr, memchr_iter};
use std::borrow::Cow;
use std::sync::Arc;

/// The kind of end after a field: of the field only, or of the record too.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ended {
    Field,
    Record,
}

/// The position of a field in a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Field {
    /// The indices of the field's first byte, after an opening quote, and of the byte after its last.
    start: usize,
    end: usize,
    /// True if the field is in quotes.
    quoted: bool,
    /// True if quotes in the field are doubled, so that its value differs from its bytes.
    escaped: bool,
    /// The fault in the field's quotes; `None` if the quotes are valid.
    fault: Option<QuoteFault>,
}

/// A cursor over the bytes of a CSV block.
#[derive(Clone, Debug)]
pub(crate) struct Scanner<'b> {
    bytes: &'b [u8],
    delimiter: u8,
    at: usize,
    /// The line of the next byte.
    line: u64,
}

impl<'b> Scanner<'b> {
    /// A scanner at the start of `block`, whose first line has the number `line` in the file.
    pub(crate) fn new(block: &'b [u8], line: u64, delimiter: u8) -> Self {
        Scanner { bytes: block, delimiter, at: 0, line }
    }

    /// Skips blank lines and counts them; returns false at the end of the block.
    fn skip_blank_lines(&mut self) -> bool {
        loop {
            match self.bytes.get(self.at) {
                Some(b'\n' | b'\r') => self.end_line(),
                other => return other.is_some(),
            }
        }
    }

    /// Skips the line end at the current position.
    #[inline(always)]
    fn end_line(&mut self) {
        let crlf = self.bytes[self.at] == b'\r' && self.bytes.get(self.at + 1) == Some(&b'\n');
        self.at += 1 + usize::from(crlf);
        self.line += 1;
    }

    /// Skips the delimiter or line end at the current position, if any, and returns its kind. The end of the bytes ends the record.
    #[inline(always)]
    fn end_field(&mut self) -> Ended {
        match self.bytes.get(self.at) {
            Some(byte) if *byte == self.delimiter => {
                self.at += 1;
                Ended::Field
            }
            Some(_) => {
                self.end_line();
                Ended::Record
            }
            None => Ended::Record,
        }
    }

    /// Skips to the end of a field without quotes.
    #[inline(always)]
    fn skip_plain(&mut self) {
        while let Some(byte) = self.bytes.get(self.at) {
            if *byte == self.delimiter || *byte == b'\n' || *byte == b'\r' {
                return;
            }
            self.at += 1;
        }
    }

    /// Finds the field at the current position, and skips to its end.
    #[inline(always)]
    fn field(&mut self) -> Field {
        let start = self.at;
        if self.bytes.get(start) != Some(&b'"') {
            self.skip_plain();
            return Field { start, end: self.at, quoted: false, escaped: false, fault: None };
        }
        self.quoted()
    }

    /// Finds the field in quotes at the current position, and skips to its end.
    fn quoted(&mut self) -> Field {
        let start = self.at + 1;
        let closing = closing_quote(self.bytes, start);
        let inside = &self.bytes[start..closing.unwrap_or(self.bytes.len())];
        self.line += memchr_iter(b'\n', inside).count() as u64;
        let escaped = memchr(b'"', inside).is_some();
        let Some(closing) = closing else {
            self.at = self.bytes.len();
            return Field { start, end: self.at, quoted: true, escaped, fault: Some(QuoteFault::NeverClosed) };
        };
        self.at = closing + 1;
        self.skip_plain();
        if self.at > closing + 1 {
            // The value is unknown, so messages and results show the field as it is written.
            let fault = Some(QuoteFault::GoesOn);
            return Field { start: start - 1, end: self.at, quoted: true, escaped: false, fault };
        }
        Field { start, end: closing, quoted: true, escaped, fault: None }
    }

    /// The value of a field.
    fn value(&self, field: Field) -> Cow<'b, [u8]> {
        let bytes = &self.bytes[field.start..field.end];
        if !field.escaped {
            return Cow::Borrowed(bytes);
        }
        let mut value = Vec::with_capacity(bytes.len());
        let mut rest = bytes;
        while let Some(quote) = memchr(b'"', rest) {
            // The second of two quotes is left out.
            value.extend_from_slice(&rest[..=quote]);
            rest = rest.get(quote + 2..).unwrap_or_default();
        }
        value.extend_from_slice(rest);
        Cow::Owned(value)
    }

    /// The line number of the byte that the scanner reads next.
    pub(crate) fn line(&self) -> u64 {
        self.line
    }

    /// The line number of the next byte, and the number of bytes scanned so far.
    pub(crate) fn position(&self) -> (u64, usize) {
        (self.line, self.at)
    }

    /// Reads the next record of the block; `None` at its end.
    ///
    /// # Errors
    /// If the record is too long, has too many fields, or has a quote that is never closed.
    pub(crate) fn record(&mut self) -> Result<Option<Record<'b>>, DataError> {
        if !self.skip_blank_lines() {
            return Ok(None);
        }
        let start = self.at;
        let mut record = Record { fields: Vec::new(), line: self.line, bytes: 0, goes_on: None };
        let mut is_open = false;
        loop {
            let field = self.field();
            match field.fault {
                Some(QuoteFault::NeverClosed) => is_open = true,
                Some(QuoteFault::GoesOn) if record.goes_on.is_none() => record.goes_on = Some(record.fields.len()),
                _ => {}
            }
            record.fields.push(RecordField { value: self.value(field), quoted: field.quoted });
            if record.fields.len() > RECORD_VALUES {
                let message = format!("a row exceeds the limit of {RECORD_VALUES} fields");
                return Err(DataError::new(DataCode::Unreadable, message).on_line(record.line));
            }
            if self.end_field() == Ended::Record {
                break;
            }
        }
        record.bytes = self.at - start;
        if record.bytes > RECORD_BYTES {
            return Err(too_long().on_line(record.line));
        }
        if is_open {
            // The rest of the file was taken for one field, so no rows follow.
            let error = DataError::new(DataCode::Unreadable, QuoteFault::NeverClosed.message());
            return Err(error.on_line(record.line).hint(QuoteFault::HINT));
        }
        Ok(Some(record))
    }

    /// Checks that `record` has `expected` fields and no fault in its quotes. `first` is the line on which the search for the record began.
    ///
    /// # Errors
    /// If the record has another number of fields, if a field continues after its closing quote, or if a blank line precedes the record in a CSV with
    /// one column.
    pub(crate) fn check(record: &Record<'_>, first: u64, expected: usize) -> Result<(), DataError> {
        if let Some(field) = record.goes_on.and_then(|at| record.fields.get(at)) {
            // The fields after this one may be cut at wrong places, so this is checked before the number of fields.
            let found = quoted(&String::from_utf8_lossy(&field.value));
            let message = format!("{}: {found}", QuoteFault::GoesOn.message());
            return Err(DataError::new(DataCode::Unreadable, message).on_line(record.line).hint(QuoteFault::HINT));
        }
        let found = record.fields.len();
        if expected != found {
            let message = format!("expected {expected} fields, one for each column, found {found}");
            return Err(DataError::new(DataCode::Unreadable, message).on_line(record.line));
        }
        if expected == 1 && first != record.line {
            // With one column a blank line may be a row with a missing value: dropping it would shift the results.
            return Err(DataError::new(DataCode::Unreadable, "a blank line in a file of one column")
                .on_line(record.line.saturating_sub(1))
                .hint("write `\"\"` for an empty field"));
        }
        Ok(())
    }
}

/// The rows of a CSV block that are not decoded yet: all rows of the block, or those after the rows that fitted into memory.
pub(crate) struct Rows {
    /// The bytes of the block. Text values are views of them.
    buffer: Buffer,
    /// The line of the first byte of the block, counted from 1.
    line: u64,
    layout: Arc<Layout>,
}

impl Rows {
    /// Makes the undecoded rows of `block`.
    pub(crate) fn new(block: Block, layout: Arc<Layout>) -> Rows {
        Rows { buffer: Buffer::from_vec(block.bytes), line: block.line, layout }
    }
}

/// The approximate memory in bytes for the error of a row.
const FAILURE_BYTES: u64 = 512;

impl Piece for Rows {
    fn decode_within(self: Box<Self>, limit: DecodeLimit) -> (Decoded, Option<Box<dyn Piece>>) {
        let Rows { buffer, line, layout } = *self;
        let mut reader = Reader::new(&layout, &buffer, line, limit);
        let mut error = reader.read().err();
        let rest = reader.is_full.then(|| reader.scanner.position());
        let Reader { mut rows, places, mut failures, mut columns, .. } = reader;
        // If a row failed, some columns already have its value.
        let arrays: Vec<ArrayRef> = columns.iter_mut().map(|column| column.values.finish().slice(0, rows)).collect();
        let mut arrays = layout.assemble(&arrays, rows);
        let mut lacking = layout.lacking(&arrays, &places);
        if layout.tolerant() {
            lacking.retain(|(row, _)| failures.binary_search_by_key(row, |(failed, _)| *failed).is_err());
            failures.extend(lacking);
            failures.sort_by_key(|(row, _)| *row);
        } else if let Some((row, wrong)) = lacking.into_iter().next() {
            (rows, error) = (row, Some(wrong));
            arrays = arrays.iter().map(|array| array.slice(0, rows)).collect();
        }
        let decoded = Decoded::new(layout.schema(), arrays, rows, places, failures, error);
        let rest = rest.filter(|_| decoded.error.is_none());
        let rest =
            rest.map(|(line, at)| -> Box<dyn Piece> { Box::new(Rows { buffer: buffer.slice(at), line, layout }) });
        (decoded, rest)
    }
}

/// A column under construction.
struct ColumnBuilder<'l> {
    target: &'l Target,
    values: ScalarBuilder,
}

/// The state of decoding a block.
struct Reader<'l, 'b> {
    layout: &'l Layout,
    scanner: Scanner<'b>,
    columns: Vec<ColumnBuilder<'l>>,
    rows: usize,
    places: Places,
    /// The errors of rows that failed, by index, if such rows are skipped.
    failures: Vec<(usize, DataError)>,
    limit: DecodeLimit,
    /// True if decoding stopped because the next row did not fit into the memory limit.
    is_full: bool,
}

/// The signal that a row cannot be decoded by the fast functions, and is decoded again field by field from its texts.
struct NeedsSlowPath;

impl<'l, 'b> Reader<'l, 'b> {
    fn new(layout: &'l Layout, buffer: &'b Buffer, line: u64, limit: DecodeLimit) -> Self {
        // An estimate; arrays grow if it is too small.
        let rows = buffer.len() / (2 * layout.columns().max(1)) / 2;
        let rows = rows.min(usize::try_from(limit.bytes / layout.row_bytes().max(1)).unwrap_or(usize::MAX));
        let columns = layout.targets().iter().map(|target| {
            let mut values = ScalarBuilder::new(target.scalar, rows);
            if let ScalarBuilder::Text(texts) = &mut values {
                texts.append_block(buffer.clone());
            }
            ColumnBuilder { target, values }
        });
        Reader {
            layout,
            scanner: Scanner::new(buffer.as_slice(), line, layout.delimiter()),
            columns: columns.collect(),
            rows: 0,
            places: Places::default(),
            failures: Vec::new(),
            limit,
            is_full: false,
        }
    }

    fn read(&mut self) -> Result<(), DataError> {
        loop {
            let before = self.scanner.clone();
            if !self.scanner.skip_blank_lines() {
                return Ok(());
            }
            let (rows, failed) = (self.rows as u64 + 1, self.failures.len() as u64);
            let bytes =
                self.layout.row_bytes().saturating_mul(rows).saturating_add(failed.saturating_mul(FAILURE_BYTES));
            if !self.limit.takes(self.rows, bytes) || self.failures.len() >= MOST_FAILURES {
                (self.scanner, self.is_full) = (before, true);
                return Ok(());
            }
            let blank = self.scanner.line != before.line;
            self.places.set(self.rows, self.scanner.line);
            if blank && self.layout.columns() == 1 || self.row().is_err() {
                self.scanner = before;
                self.slow_row()?;
            }
            self.rows += 1;
        }
    }

    /// Reads a row, and parses each field straight into its columns. If this fails, `slow_row` must read the row again,
    /// from its start.
    #[inline(always)]
    fn row(&mut self) -> Result<(), NeedsSlowPath> {
        let fields = self.layout.fields();
        let last = fields.len() - 1;
        for (index, targets) in fields.iter().enumerate() {
            match targets.as_slice() {
                [] => {
                    let field = self.scanner.field();
                    if field.fault.is_some() {
                        return Err(NeedsSlowPath);
                    }
                }
                [one] => self.read_field(*one)?,
                several => {
                    let start = self.scanner.clone();
                    for target in several {
                        self.scanner = start.clone();
                        self.read_field(*target)?;
                    }
                }
            }
            let ended = self.scanner.end_field();
            if (ended == Ended::Record) != (index == last) {
                return Err(NeedsSlowPath);
            }
        }
        Ok(())
    }

    /// Parses the field at the current position into a column, and skips to its end.
    #[inline(always)]
    fn read_field(&mut self, target: usize) -> Result<(), NeedsSlowPath> {
        let column = &mut self.columns[target];
        let scanner = &mut self.scanner;
        macro_rules! number {
            ($builder:ident, $to:ident) => {
                if let Some(found) = decimal(scanner.bytes, scanner.at, scanner.delimiter)
                    && let Some(value) = found.$to()
                    && column.target.plain
                    && (!column.target.inferred
                        || column.target.takes_digits(found, &scanner.bytes[scanner.at..found.end()]))
                {
                    $builder.append_value(value);
                    scanner.at = found.end();
                    return Ok(());
                }
            };
        }
        match &mut column.values {
            ScalarBuilder::Float64(builder) => number!(builder, to_f64),
            ScalarBuilder::Float32(builder) => number!(builder, to_f32),
            ScalarBuilder::Int64(builder) => number!(builder, to_i64),
            ScalarBuilder::Int32(builder) => number!(builder, to_i32),
            ScalarBuilder::UInt64(builder) => number!(builder, to_u64),
            ScalarBuilder::Text(builder) => return text(scanner, column.target, self.layout, builder),
            _ => {}
        }
        self.read_other(target)
    }

    /// Parses the field at the current position from its text, for types and spellings that are not parsed from the
    /// bytes of the block, and skips to its end.
    fn read_other(&mut self, target: usize) -> Result<(), NeedsSlowPath> {
        let field = self.scanner.field();
        if field.fault.is_some() {
            return Err(NeedsSlowPath);
        }
        let value = self.scanner.value(field);
        let column = &mut self.columns[target];
        if self.layout.is_missing(&value, field.quoted, column.target) {
            if !column.target.optional {
                return Err(NeedsSlowPath);
            }
            column.values.push_missing();
            return Ok(());
        }
        let text = std::str::from_utf8(&value).map_err(|_| NeedsSlowPath)?;
        let parsed = self.layout.spelling().parse(column.target.scalar, text);
        let parsed = parsed.filter(|_| column.target.takes(&value, self.layout.spelling())).ok_or(NeedsSlowPath)?;
        column.values.push(Some(&parsed));
        Ok(())
    }

    /// Reads a row for which `row` failed or is not used, or finds the row's error. All fields are split off as texts
    /// first: the fields are counted, then values are checked in the order of the targets. Columns that already have a
    /// value for the row keep it.
    fn slow_row(&mut self) -> Result<(), DataError> {
        let first = self.scanner.line;
        let Some(record) = self.scanner.record()? else { return Ok(()) };
        self.places.set(self.rows, record.line);
        let checked = Scanner::check(&record, first, self.layout.columns()).and_then(|()| self.push_values(&record));
        match checked {
            Err(error) if self.layout.tolerant() => {
                self.failures.push((self.rows, error));
                // Values that can be read are stored even in a failed row.
                for column in self.columns.iter_mut().filter(|column| column.values.len() == self.rows) {
                    let value = self.layout.value(column.target, &record).ok().flatten();
                    column.values.push(value.as_ref());
                }
                Ok(())
            }
            other => other,
        }
    }

    fn push_values(&mut self, record: &Record<'_>) -> Result<(), DataError> {
        for column in &mut self.columns {
            let value = self.layout.value(column.target, record)?;
            if column.values.len() == self.rows {
                column.values.push(value.as_ref());
            }
        }
        Ok(())
    }
}

/// Reads a text field as a view of the block, and skips to its end.
#[inline(always)]
fn text(
    scanner: &mut Scanner<'_>,
    target: &Target,
    layout: &Layout,
    builder: &mut StringViewBuilder,
) -> Result<(), NeedsSlowPath> {
    let field = scanner.field();
    if field.fault.is_some() {
        return Err(NeedsSlowPath);
    }
    if field.escaped {
        let value = scanner.value(field);
        let text = std::str::from_utf8(&value).map_err(|_| NeedsSlowPath)?;
        if layout.is_missing(text.as_bytes(), field.quoted, target) {
            return missing_text(target, builder);
        }
        builder.append_value(text);
        return Ok(());
    }
    if layout.is_missing(&scanner.bytes[field.start..field.end], field.quoted, target) {
        return missing_text(target, builder);
    }
    let (start, length) = (u32::try_from(field.start), u32::try_from(field.end - field.start));
    let (Ok(start), Ok(length)) = (start, length) else { return Err(NeedsSlowPath) };
    builder.try_append_view(0, start, length).map_err(|_| NeedsSlowPath)
}

fn missing_text(target: &Target, builder: &mut StringViewBuilder) -> Result<(), NeedsSlowPath> {
    if !target.optional {
        return Err(NeedsSlowPath);
    }
    builder.append_null();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The records of a text; `None` if its quotes are wrong.
    fn records(text: &[u8], delimiter: u8) -> Option<Vec<Vec<Vec<u8>>>> {
        let mut scanner = Scanner::new(text, 1, delimiter);
        let mut found = Vec::new();
        while let Some(record) = scanner.record().ok()? {
            if record.goes_on.is_some() {
                return None;
            }
            found.push(record.fields.into_iter().map(|field| field.value.into_owned()).collect());
        }
        Some(found)
    }

    #[test]
    fn records_are_those_of_the_usual_reader() {
        let mut random = fastrand::Rng::with_seed(3);
        let mut compared = 0;
        for _ in 0..60_000 {
            let text: Vec<u8> =
                (0..random.usize(0..14)).map(|_| *random.choice(b"\"\",;\n\rab").expect("a byte")).collect();
            let delimiter = if random.bool() { b',' } else { b';' };
            let mut reader = csv::ReaderBuilder::new();
            let reader = reader.has_headers(false).flexible(true).delimiter(delimiter);
            let expected = reader.from_reader(&text[..]).into_byte_records();
            let expected: Vec<Vec<Vec<u8>>> =
                expected.map(|record| record.expect("bytes").iter().map(<[u8]>::to_vec).collect()).collect();
            if let Some(found) = records(&text, delimiter) {
                assert_eq!(found, expected, "{}", String::from_utf8_lossy(&text));
                compared += 1;
            }
        }
        assert!(compared > 20_000, "{compared}");
    }
}
