//! Formatting a whole text.

/// True if there is a formatter.
pub(crate) const IS_THERE: bool = false;

/// The text as it should be laid out; nothing if it cannot be read, or if there is no formatter.
pub(crate) fn formatted(_text: &str) -> Option<String> {
    None
}
