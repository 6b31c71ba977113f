//! The lexer: converts bytes to tokens, one at a time, on demand. It allocates no memory and cannot fail; invalid text becomes a token that the
//! parser reports.

use super::token::{Token, TokenKind};
use super::{number, types};
use cembra_value::Span;
use std::ops::Range;

/// Returns true for bytes that can continue a word: letters, digits and the underscore.
pub(super) const fn continues_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Returns true for letters and the underscore.
const fn begins_word(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_'
}

/// Returns true if the text is a name that needs no quotes: letters, digits and underscores, not reserved.
#[must_use]
pub fn is_plain_name(text: &str) -> bool {
    is_word(text) && TokenKind::keyword(text).is_none() && !types::is_reserved(text)
}

/// Returns true if the text is a word, reserved or not.
pub(crate) fn is_word(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.first().is_some_and(|b| begins_word(*b)) && bytes.iter().all(|b| continues_word(*b))
}

/// A text of a model, and the offset at which its spans begin. Spans count from the start of the model's first text, as if all texts were
/// concatenated.
#[derive(Clone, Copy)]
pub(super) struct PlacedText<'s> {
    pub(super) text: &'s str,
    pub(super) start: usize,
}

impl<'s> PlacedText<'s> {
    /// Returns the part of this text at `span`; `None` if the span is in another text.
    pub(super) fn get(self, span: Span) -> Option<&'s str> {
        let place = |at: u32| (at as usize).checked_sub(self.start);
        self.text.get(place(span.start)?..place(span.end)?)
    }
}

impl<'s> From<&'s str> for PlacedText<'s> {
    fn from(text: &'s str) -> Self {
        PlacedText { text, start: 0 }
    }
}

/// Reads a source text token by token. A copy of the lexer is cheap, and saves the position in the text.
#[derive(Clone)]
pub(super) struct Lexer<'s> {
    source: &'s str,
    /// The offset at which the spans of this text begin among the texts of a model.
    base: usize,
    /// The byte index in the text where reading began.
    start: usize,
    position: usize,
    /// True after a dot. Then digits are an index: `x.0.1` is two fields, not a field 0.1.
    after_dot: bool,
}

impl<'s> Lexer<'s> {
    /// Returns a lexer at the start of a text, after its byte order mark if it has one. The texts of a model together must have at most 4 GiB.
    pub(super) fn of(placed: PlacedText<'s>) -> Self {
        Lexer { base: placed.start, ..Lexer::within(placed.text, 0..placed.text.len()) }
    }

    /// Returns a lexer for the byte range `part` of the text `source`. Reading begins at the first byte of the range, or after a byte order mark if
    /// the range begins with one.
    pub(super) fn within(source: &'s str, part: Range<usize>) -> Self {
        let (start, source) = (part.start, &source[..part.end]);
        let position = if source[start..].starts_with('\u{FEFF}') { start + 3 } else { start };
        Lexer { source, base: 0, start, position, after_dot: false }
    }

    fn at(&self, position: usize) -> u8 {
        self.source.as_bytes().get(position).copied().unwrap_or(0)
    }

    /// Skips white space and comments. Returns true if a line ended.
    fn skip_blank(&mut self) -> bool {
        let bytes = self.source.as_bytes();
        let mut line_ended = self.position == self.start;
        while let Some(byte) = bytes.get(self.position) {
            match byte {
                b' ' | b'\t' => {}
                b'\n' | b'\r' => line_ended = true,
                b'#' => {
                    let rest = &bytes[self.position..];
                    self.position += rest.iter().position(|b| matches!(b, b'\n' | b'\r')).unwrap_or(rest.len());
                    continue;
                }
                _ => break,
            }
            self.position += 1;
        }
        line_ended
    }

    /// Returns the next token; at the end of the text always `End`.
    pub(super) fn next(&mut self) -> Token {
        let first_on_line = self.skip_blank();
        let start = self.position;
        let kind = if start == self.source.len() { TokenKind::End } else { self.scan(start) };
        self.after_dot = kind == TokenKind::Dot;
        let place = |position: usize| (self.base + position) as u32;
        Token { kind, first_on_line, span: Span::new(place(start), place(self.position)) }
    }

    /// Scans the token at `start`, which must not be the end, and moves after it.
    fn scan(&mut self, start: usize) -> TokenKind {
        let byte = self.at(start);
        let next = self.at(start + 1);
        let (kind, len) = match byte {
            b'b' if matches!(next, b'"' | b'\'') => {
                return match self.text(start + 1, next) {
                    TokenKind::Text => TokenKind::Bytes,
                    unfinished => unfinished,
                };
            }
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => return self.word(start),
            b'0'..=b'9' => {
                self.position = number::scan(self.source.as_bytes(), start, self.after_dot).end;
                return TokenKind::Number;
            }
            b'"' | b'\'' => return self.text(start, byte),
            b'(' => (TokenKind::OpenRound, 1),
            b')' => (TokenKind::CloseRound, 1),
            b'[' => (TokenKind::OpenSquare, 1),
            b']' => (TokenKind::CloseSquare, 1),
            b'{' => (TokenKind::OpenCurly, 1),
            b'}' => (TokenKind::CloseCurly, 1),
            b',' => (TokenKind::Comma, 1),
            b'.' if next == b'.' => (TokenKind::DotDot, 2),
            b'.' => (TokenKind::Dot, 1),
            b':' => (TokenKind::Colon, 1),
            b';' => (TokenKind::Semicolon, 1),
            b'+' => (TokenKind::Plus, 1),
            b'-' => (TokenKind::Minus, 1),
            b'%' => (TokenKind::Percent, 1),
            b'&' => (TokenKind::Ampersand, 1),
            b'|' => (TokenKind::Bar, 1),
            b'*' if next == b'*' => (TokenKind::StarStar, 2),
            b'*' => (TokenKind::Star, 1),
            b'/' if next == b'/' => (TokenKind::SlashSlash, 2),
            b'/' => (TokenKind::Slash, 1),
            b'?' if next == b'?' => (TokenKind::QuestionQuestion, 2),
            b'?' => (TokenKind::Question, 1),
            b'<' if next == b'=' => (TokenKind::LessEqual, 2),
            b'<' => (TokenKind::Less, 1),
            b'>' if next == b'=' => (TokenKind::GreaterEqual, 2),
            b'>' => (TokenKind::Greater, 1),
            b'=' if next == b'=' => (TokenKind::EqualEqual, 2),
            b'=' => (TokenKind::Equals, 1),
            b'!' if next == b'=' => (TokenKind::BangEqual, 2),
            _ => (TokenKind::Invalid, self.source[start..].chars().next().map_or(1, char::len_utf8)),
        };
        self.position = start + len;
        kind
    }

    fn word(&mut self, start: usize) -> TokenKind {
        let rest = &self.source.as_bytes()[start..];
        self.position = start + rest.iter().position(|b| !continues_word(*b)).unwrap_or(rest.len());
        let word = &self.source[start..self.position];
        match TokenKind::keyword(word) {
            Some(keyword) => keyword,
            None if types::is_reserved(word) => TokenKind::Type,
            None => TokenKind::Word,
        }
    }

    fn text(&mut self, start: usize, quote: u8) -> TokenKind {
        let bytes = self.source.as_bytes();
        self.position = start + 1;
        while let Some(byte) = bytes.get(self.position) {
            match byte {
                b'\n' | b'\r' => break,
                // The character after a backslash does not close the text. A line end after it still ends the text.
                b'\\' if !matches!(self.at(self.position + 1), b'\n' | b'\r' | 0) => self.position += 1,
                byte if *byte == quote => {
                    self.position += 1;
                    return TokenKind::Text;
                }
                _ => {}
            }
            self.position += 1;
        }
        TokenKind::UnfinishedText
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(source: &str) -> Vec<(TokenKind, &str)> {
        let mut lexer = Lexer::of(source.into());
        let mut found = Vec::new();
        loop {
            let token = lexer.next();
            if token.kind == TokenKind::End {
                return found;
            }
            found.push((token.kind, token.span.text(source)));
        }
    }

    #[test]
    fn fields_are_not_fractions() {
        let found = kinds("x.0.1 + 0.1.5");
        let texts: Vec<_> = found.iter().map(|(_, text)| *text).collect();
        assert_eq!(texts, ["x", ".", "0", ".", "1", "+", "0.1", ".", "5"]);
    }

    #[test]
    fn longest_tokens_win() {
        let texts: Vec<_> = kinds("a**b//c<=d??e!=f==g=h?*").into_iter().map(|(_, text)| text).collect();
        assert_eq!(texts, ["a", "**", "b", "//", "c", "<=", "d", "??", "e", "!=", "f", "==", "g", "=", "h", "?", "*"]);
    }

    #[test]
    fn numbers_take_what_hangs_on_them() {
        for number in ["7", "7i64", "1.5f32", "1e-3", "1_000", "1E+5f64", "0x1F", "5.", "5.x", "1.5e", "7abc_1"] {
            assert_eq!(kinds(number), [(TokenKind::Number, number)], "{number}");
        }
        assert_eq!(kinds("1e+").len(), 2);
    }

    #[test]
    fn texts_end_at_their_quote_or_line() {
        assert_eq!(kinds(r#""a\"b" 'c"d'"#), [(TokenKind::Text, r#""a\"b""#), (TokenKind::Text, "'c\"d'")]);
        assert_eq!(kinds("\"ab\ncd"), [(TokenKind::UnfinishedText, "\"ab"), (TokenKind::Word, "cd")]);
        assert_eq!(kinds("\"ab\\\ncd"), [(TokenKind::UnfinishedText, "\"ab\\"), (TokenKind::Word, "cd")]);
        assert_eq!(kinds("\"ab\\"), [(TokenKind::UnfinishedText, "\"ab\\")]);
        assert_eq!(kinds("\"é\\é\""), [(TokenKind::Text, "\"é\\é\"")]);
    }

    #[test]
    fn lines_are_noticed_through_comments_and_carriage_returns() {
        let text = "\u{FEFF}a # c\r\nb c\rd";
        let mut lexer = Lexer::of(text.into());
        let lines: Vec<_> = (0..5).map(|_| lexer.next()).map(|t| (t.kind, t.first_on_line)).collect();
        assert_eq!(
            lines,
            [
                (TokenKind::Word, false),
                (TokenKind::Word, true),
                (TokenKind::Word, false),
                (TokenKind::Word, true),
                (TokenKind::End, false)
            ]
        );
    }

    #[test]
    fn strange_characters_are_whole_tokens() {
        assert_eq!(kinds("ä!"), [(TokenKind::Invalid, "ä"), (TokenKind::Invalid, "!")]);
    }

    #[test]
    fn reserved_words_and_plain_names() {
        assert!(is_plain_name("x_1") && is_plain_name("L") && is_plain_name("float64"));
        for reserved in ["if", "f32", "OPTIONAL_TEXT", "bytes", "1x", "", "a b", "ä"] {
            assert!(!is_plain_name(reserved), "{reserved}");
        }
    }
}
