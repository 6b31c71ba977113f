//! Reads the text of a model, or of a file that the model uses, from a reader, up to a limit. If the bytes are not
//! UTF-8, the error has the line of the first wrong byte. The module `folder` finds files by name.

use crate::Error;
use cembra_value::guarded;
use std::io::{self, ErrorKind, Read};

/// Returns the text that `reader` has, including a byte order mark. If the text has more than `most_bytes` bytes, only `most_bytes + 1` bytes are
/// returned, so that the parser rejects the text as too long.
///
/// ```
/// use cembra::program::read_text;
///
/// assert_eq!(read_text("let vat = 0.5".as_bytes(), 1_000)?, "let vat = 0.5");
/// let found = read_text(&b"# Vat\n# Jos\xe9\n"[..], 1_000);
/// assert_eq!(found.unwrap_err().to_string(), "not UTF-8 text: it has the byte 0xe9; save the file as UTF-8, line 2");
/// let found = read_text(&b"\xff\xfe1\0"[..], 1_000);
/// assert_eq!(found.unwrap_err().to_string(), "UTF-16 text, not UTF-8; save the file as UTF-8, line 1");
/// // A text that is too long is cut, perhaps within a character.
/// assert_eq!(read_text("1234 é".as_bytes(), 5)?.len(), "1234 \u{fffd}".len());
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// If the reader fails or panics, or the bytes are not UTF-8. If they are not, the error has the kind `InvalidData` and contains an [`Error`] with
/// the line.
pub fn read_text(reader: impl Read, most_bytes: usize) -> io::Result<String> {
    let mut bytes = Vec::new();
    let mut reader = reader.take((most_bytes as u64).saturating_add(1));
    guarded(|| reader.read_to_end(&mut bytes), |words| Err(io::Error::other(format!("the reader panicked: {words}"))))?;
    if bytes.len() > most_bytes {
        return Ok(String::from_utf8_lossy(&bytes).into_owned());
    }
    // A byte order mark shows UTF-16. Without one, every second byte of English text in UTF-16 is zero, which is valid UTF-8.
    let is_utf16 = match bytes[..] {
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => true,
        [first, second, ..] => (first == 0) != (second == 0),
        _ => false,
    };
    if is_utf16 {
        let error = Error::values("UTF-16 text, not UTF-8; save the file as UTF-8".to_owned());
        return Err(io::Error::new(ErrorKind::InvalidData, error.on_line(1)));
    }
    String::from_utf8(bytes).map_err(|error| {
        let (bytes, valid) = (error.as_bytes(), error.utf8_error().valid_up_to());
        let line = 1 + bytes.iter().take(valid).filter(|byte| **byte == b'\n').count();
        let byte = bytes.get(valid).copied().unwrap_or_default();
        let message = format!("not UTF-8 text: it has the byte 0x{byte:02x}; save the file as UTF-8");
        io::Error::new(ErrorKind::InvalidData, Error::values(message).on_line(line))
    })
}

/// Returns `text` without its byte order mark, if it begins with one.
///
/// ```
/// assert_eq!(["\u{feff}1", "1"].map(cembra::program::without_mark), ["1", "1"]);
/// ```
#[must_use]
pub fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}
