//! The text of a model, or of a file that it uses, from the bytes of a reader: no more of it than a limit, and where it is no text
//! the line that is none. Where files lie and what they are called is not known here.

use std::fmt;
use std::io::{self, Read};

/// Why bytes are no text.
#[derive(Debug)]
pub enum UnreadText {
    /// They cannot be read.
    Io(io::Error),
    /// They are not UTF-8.
    NotUtf8 {
        /// The first line that is not, counted from 1.
        line: u64,
        /// The byte on it that begins no character.
        byte: u8,
    },
}

impl fmt::Display for UnreadText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UnreadText::Io(cause) => cause.fmt(f),
            UnreadText::NotUtf8 { line, byte } => {
                write!(f, "line {line} is not UTF-8 text: it has the byte 0x{byte:02x}; save the file as UTF-8")
            }
        }
    }
}

impl std::error::Error for UnreadText {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            UnreadText::Io(cause) => cause.source(),
            UnreadText::NotUtf8 { .. } => None,
        }
    }
}

impl From<io::Error> for UnreadText {
    fn from(cause: io::Error) -> Self {
        UnreadText::Io(cause)
    }
}

impl From<UnreadText> for io::Error {
    fn from(unread: UnreadText) -> Self {
        match unread {
            UnreadText::Io(cause) => cause,
            unread @ UnreadText::NotUtf8 { .. } => io::Error::new(io::ErrorKind::InvalidData, unread),
        }
    }
}

/// The text of a reader, with the byte order mark that it may begin with; of one that is too long a byte more than there may be, for the
/// parser to refuse.
///
/// ```
/// use cembra::{UnreadText, read_text};
///
/// assert_eq!(read_text("let vat = 0.5".as_bytes(), 1_000)?, "let vat = 0.5");
/// let found = read_text(&b"# Vat\n# Jos\xe9\n"[..], 1_000);
/// assert!(matches!(found, Err(UnreadText::NotUtf8 { line: 2, byte: 0xe9 })));
/// // A text that is too long is cut, perhaps within a character.
/// assert_eq!(read_text("1234 é".as_bytes(), 5)?.len(), "1234 \u{fffd}".len());
/// # Ok::<(), UnreadText>(())
/// ```
///
/// # Errors
/// The reader fails, or what it has is not UTF-8.
pub fn read_text(reader: impl Read, most_bytes: usize) -> Result<String, UnreadText> {
    let mut bytes = Vec::new();
    reader.take((most_bytes as u64).saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() > most_bytes {
        return Ok(String::from_utf8_lossy(&bytes).into_owned());
    }
    String::from_utf8(bytes).map_err(|error| {
        let (bytes, valid) = (error.as_bytes(), error.utf8_error().valid_up_to());
        let line = 1 + bytes.iter().take(valid).filter(|byte| **byte == b'\n').count() as u64;
        UnreadText::NotUtf8 { line, byte: bytes.get(valid).copied().unwrap_or_default() }
    })
}

/// A text without the byte order mark that it may begin with.
///
/// ```
/// assert_eq!(["\u{feff}1", "1"].map(cembra::without_mark), ["1", "1"]);
/// ```
#[must_use]
pub fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}
