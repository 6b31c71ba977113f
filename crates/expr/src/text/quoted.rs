//! Texts in quotes and their escapes: `\n \t \r \\ \" \' \0 \u{1F332}`.

use cembra_value::{Code, Diagnostic, Span};
use std::borrow::Cow;
use std::fmt;

/// The kind of a fault inside of quotes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum EscapeFault {
    /// An unknown escape in a quoted text.
    Escape,
    /// An escape `\u{..}` with a number that is not a character.
    Unicode,
    /// A non-ASCII character in quoted bytes.
    Character,
}

/// An error in a quoted text: an invalid escape or character, and its span.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct BadEscape {
    span: Span,
    wrong: EscapeFault,
}

impl BadEscape {
    /// Returns the error message for this escape or character.
    pub(super) fn diagnostic(self) -> Diagnostic {
        let (message, hint) = match self.wrong {
            EscapeFault::Unicode => {
                ("this is not the number of a character", "write the character's number in hexadecimal: `\\u{1F332}`")
            }
            EscapeFault::Escape => (
                "this escape does not exist",
                "write one of `\\n`, `\\t`, `\\r`, `\\\\`, `\\\"`, `\\'`, `\\0` and `\\u{..}`",
            ),
            EscapeFault::Character => {
                ("a literal of bytes must have only ASCII characters", "write any other byte in hexadecimal: `\\xff`")
            }
        };
        Diagnostic::new(Code::Literal, message).at(self.span).hint(hint)
    }
}

/// Returns the text of a quoted token. `span` is the token's span.
pub(super) fn decode(token: &str, span: Span) -> Result<Cow<'_, str>, BadEscape> {
    let inside = token.get(1..token.len().saturating_sub(1)).unwrap_or_default();
    if !inside.contains('\\') {
        return Ok(inside.into());
    }
    let mut text = String::with_capacity(inside.len());
    let mut rest = inside;
    while let Some(at) = rest.find('\\') {
        text.push_str(&rest[..at]);
        let escape = &rest[at..];
        let start = span.start + 1 + (inside.len() - escape.len()) as u32;
        let fault = |len: usize, wrong| BadEscape { span: Span::new(start, start + len as u32), wrong };
        let letter = escape[1..].chars().next();
        let mut len = 1 + letter.map_or(0, char::len_utf8);
        text.push(match letter {
            Some('n') => '\n',
            Some('t') => '\t',
            Some('r') => '\r',
            Some('0') => '\0',
            Some(same @ ('\\' | '"' | '\'')) => same,
            Some('u') => {
                let end = escape.find('}').filter(|_| escape[2..].starts_with('{'));
                let Some(end) = end else { return Err(fault(2, EscapeFault::Unicode)) };
                len = end + 1;
                let digits = &escape[3..end];
                let hexadecimal = (1..=6).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_hexdigit());
                let number = hexadecimal.then(|| u32::from_str_radix(digits, 16).ok()).flatten();
                number.and_then(char::from_u32).ok_or(fault(len, EscapeFault::Unicode))?
            }
            _ => return Err(fault(len, EscapeFault::Escape)),
        });
        rest = &escape[len..];
    }
    text.push_str(rest);
    Ok(text.into())
}

/// Returns the bytes of a quoted token: its content may have ASCII characters, the escapes of texts, and `\xff` for any byte.
pub(super) fn decode_bytes(token: &str, span: Span) -> Result<Vec<u8>, BadEscape> {
    let inside = token.get(2..token.len().saturating_sub(1)).unwrap_or_default();
    let mut bytes = Vec::with_capacity(inside.len());
    let mut rest = inside;
    while let Some(c) = rest.chars().next() {
        let start = span.start + 2 + (inside.len() - rest.len()) as u32;
        let fault = |len: usize, wrong| BadEscape { span: Span::new(start, start + len as u32), wrong };
        let mut len = c.len_utf8();
        match c {
            '\\' => {
                let letter = rest[1..].chars().next();
                len += letter.map_or(0, char::len_utf8);
                bytes.push(match letter {
                    Some('n') => b'\n',
                    Some('t') => b'\t',
                    Some('r') => b'\r',
                    Some('0') => 0,
                    Some(same @ ('\\' | '"' | '\'')) => same as u8,
                    Some('x') => {
                        let digits = rest.get(2..4).filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()));
                        len = 4;
                        digits
                            .and_then(|digits| u8::from_str_radix(digits, 16).ok())
                            .ok_or(fault(2, EscapeFault::Escape))?
                    }
                    _ => return Err(fault(len, EscapeFault::Escape)),
                });
            }
            _ if c.is_ascii() => bytes.push(c as u8),
            _ => return Err(fault(len, EscapeFault::Character)),
        }
        rest = &rest[len..];
    }
    Ok(bytes)
}

/// Writes a text in double quotes. Control and non-ASCII characters become escapes.
pub(super) fn write(out: &mut dyn fmt::Write, text: &str) -> fmt::Result {
    out.write_char('"')?;
    // Runs of characters without escapes are written at once.
    let mut plain = 0;
    for (at, c) in text.char_indices() {
        let is_plain = matches!(c, ' '..='~') && !matches!(c, '"' | '\\');
        if !is_plain {
            out.write_str(&text[plain..at])?;
            write!(out, "{}", c.escape_debug())?;
            plain = at + c.len_utf8();
        }
    }
    out.write_str(&text[plain..])?;
    out.write_char('"')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(token: &str) -> Result<String, BadEscape> {
        decode(token, Span::new(10, 10 + token.len() as u32)).map(Cow::into_owned)
    }

    #[test]
    fn escapes_mean_characters() {
        assert_eq!(decoded(r#""a\n\t\r\\\"\'\0\u{1F332}é""#).unwrap(), "a\n\t\r\\\"'\0🌲é");
        assert_eq!(decoded("''").unwrap(), "");
    }

    #[test]
    fn bad_escapes_are_pointed_at() {
        let fault = |token, start, end, wrong| {
            assert_eq!(decoded(token), Err(BadEscape { span: Span::new(start, end), wrong }), "{token}");
        };
        fault(r#""ab\qc""#, 13, 15, EscapeFault::Escape);
        fault(r#""\é""#, 11, 14, EscapeFault::Escape);
        fault(r#""\n\u{110000}""#, 13, 23, EscapeFault::Unicode);
        fault(r#""\u{d800}""#, 11, 19, EscapeFault::Unicode);
        fault(r#""\u41""#, 11, 13, EscapeFault::Unicode);
        fault(r#""\u{}""#, 11, 15, EscapeFault::Unicode);
        fault(r#""\u{+1}""#, 11, 17, EscapeFault::Unicode);
    }

    #[test]
    fn what_is_written_reads_back() {
        let text = "it's \"quoted\" \\ \n \u{202E} \u{FEFF} \0 \u{301} 🌲";
        let mut out = String::new();
        write(&mut out, text).unwrap();
        assert!(!out.contains('\u{202E}'));
        assert_eq!(decoded(&out).unwrap(), text);
    }
}
