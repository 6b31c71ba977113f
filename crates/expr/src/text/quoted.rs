//! Texts in quotes and their escapes: `\n \t \r \\ \" \' \0 \u{1F332}`.

use crate::{Code, Diagnostic, Span};
use std::borrow::Cow;

/// An escape that is none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct BadEscape {
    span: Span,
    unicode: bool,
}

impl BadEscape {
    /// What is wrong.
    pub(super) fn diagnostic(self) -> Diagnostic {
        if self.unicode {
            Diagnostic::new(Code::Literal, "this is not a character")
                .at(self.span)
                .hint("write its number in hexadecimal: `\\u{1F332}`")
        } else {
            Diagnostic::new(Code::Literal, "there is no such escape")
                .at(self.span)
                .hint("the escapes are `\\n`, `\\t`, `\\r`, `\\\\`, `\\\"`, `\\'`, `\\0` and `\\u{..}`")
        }
    }
}

/// What a token in quotes says. `span` is where the token stands.
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
        let fault = |len: usize, unicode| BadEscape { span: Span::new(start, start + len as u32), unicode };
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
                let Some(end) = end else { return Err(fault(2, true)) };
                len = end + 1;
                let digits = &escape[3..end];
                let hexadecimal = (1..=6).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_hexdigit());
                let number = hexadecimal.then(|| u32::from_str_radix(digits, 16).ok()).flatten();
                number.and_then(char::from_u32).ok_or(fault(len, true))?
            }
            _ => return Err(fault(len, false)),
        });
        rest = &escape[len..];
    }
    text.push_str(rest);
    Ok(text.into())
}

/// Writes a text in double quotes; control and invisible characters become escapes.
pub(super) fn write(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '\'' => out.push(c),
            _ => out.extend(c.escape_debug()),
        }
    }
    out.push('"');
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
        let fault = |token, start, end, unicode| {
            assert_eq!(decoded(token), Err(BadEscape { span: Span::new(start, end), unicode }), "{token}");
        };
        fault(r#""ab\qc""#, 13, 15, false);
        fault(r#""\é""#, 11, 14, false);
        fault(r#""\n\u{110000}""#, 13, 23, true);
        fault(r#""\u{d800}""#, 11, 19, true);
        fault(r#""\u41""#, 11, 13, true);
        fault(r#""\u{}""#, 11, 15, true);
        fault(r#""\u{+1}""#, 11, 17, true);
    }

    #[test]
    fn what_is_written_reads_back() {
        let text = "it's \"quoted\" \\ \n \u{202E} \u{FEFF} \0 \u{301} 🌲";
        let mut out = String::new();
        write(&mut out, text);
        assert!(!out.contains('\u{202E}'));
        assert_eq!(decoded(&out).unwrap(), text);
    }
}
