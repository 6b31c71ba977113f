//! Records of CSV: the fields of one row as texts. They are used where the fast way of reading fails.

use std::borrow::Cow;

/// A row of CSV, split into fields.
#[derive(Debug)]
pub(crate) struct Record<'b> {
    /// The fields.
    pub(crate) fields: Vec<RecordField<'b>>,
    /// The line of the record's first byte.
    pub(crate) line: u64,
    /// The number of bytes of the record in the file.
    pub(crate) bytes: usize,
    /// The index of the first field that goes on after its closing quote, which is an error; `None` if no field does.
    pub(crate) goes_on: Option<usize>,
}

/// A field of a record.
#[derive(Debug)]
pub(crate) struct RecordField<'b> {
    /// The value of the field, without its quotes.
    pub(crate) value: Cow<'b, [u8]>,
    /// True if the field was in quotes.
    pub(crate) quoted: bool,
}
