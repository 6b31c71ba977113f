//! Records of CSV: a row split into the texts of its fields. Records are used for rows that the fast decoding in the module `rows` cannot handle.

use std::borrow::Cow;

/// A record (row) of CSV, split into fields.
#[derive(Debug)]
pub(crate) struct Record<'b> {
    /// The fields of the CSV record.
    pub(crate) fields: Vec<RecordField<'b>>,
    /// The line in the file that the record starts on, counted from 1.
    pub(crate) line: u64,
    /// The number of bytes that the record has in the file.
    pub(crate) bytes: usize,
    /// The index of the first field with characters after its closing quote, which is an error; `None` if there is no such field.
    pub(crate) goes_on: Option<usize>,
}

/// A field of a CSV record.
#[derive(Debug)]
pub(crate) struct RecordField<'b> {
    /// The value of the CSV field, without its quotes.
    pub(crate) value: Cow<'b, [u8]>,
    /// True if the CSV field was in quotes.
    pub(crate) quoted: bool,
}
