//! Records of CSV: the values of one row, as texts. They are read where a field is not spelled as most files spell it.

use std::borrow::Cow;

/// A record whose fields are looked at one by one.
#[derive(Debug)]
pub(crate) struct Record<'b> {
    /// The fields.
    pub(crate) fields: Vec<RecordField<'b>>,
    /// The line of its first byte.
    pub(crate) line: u64,
    /// The bytes that it is written in.
    pub(crate) bytes: usize,
    /// The index of the first field that goes on after its closing quote, which is an error; `None` if no field does.
    pub(crate) goes_on: Option<usize>,
}

/// A field of a record.
#[derive(Debug)]
pub(crate) struct RecordField<'b> {
    /// Its value.
    pub(crate) value: Cow<'b, [u8]>,
    /// True if it was in quotes.
    pub(crate) quoted: bool,
}
