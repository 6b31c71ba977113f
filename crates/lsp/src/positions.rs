//! Conversion between the protocol's positions, which are a line and an offset in it, and byte indices of a text.

use cembra::errors::Span;
use cembra_value::Lines;
use lsp_types::{Position, PositionEncodingKind, Range};

/// The unit in which the protocol counts positions within a line: bytes, UTF-16 units or characters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Encoding {
    /// Positions count the bytes from the start of the line.
    Utf8,
    /// Positions count UTF-16 units from the start of the line; a character may take two. Every editor supports this unit.
    Utf16,
    /// Positions count the characters from the start of the line.
    Utf32,
}

impl Encoding {
    /// Chooses the encoding to use among `offered`, the encodings that the editor supports: bytes if possible, because bytes need no conversion.
    pub(crate) fn of(offered: &[PositionEncodingKind]) -> Encoding {
        let all = [Encoding::Utf8, Encoding::Utf32];
        all.into_iter().find(|one| offered.contains(&one.kind())).unwrap_or(Encoding::Utf16)
    }

    /// The protocol's name for this encoding.
    pub(crate) fn kind(self) -> PositionEncodingKind {
        match self {
            Encoding::Utf8 => PositionEncodingKind::UTF8,
            Encoding::Utf16 => PositionEncodingKind::UTF16,
            Encoding::Utf32 => PositionEncodingKind::UTF32,
        }
    }

    fn length(self, c: char) -> usize {
        match self {
            Encoding::Utf8 => c.len_utf8(),
            Encoding::Utf16 => c.len_utf16(),
            Encoding::Utf32 => 1,
        }
    }
}

/// The number of bytes between entries of `units`. They are needed because a line may be the whole text.
const STEP: usize = 1 << 10;

/// The line index of a text, for converting between the protocol's positions and byte indices.
#[derive(Debug)]
pub(crate) struct Positions {
    lines: Lines,
    encoding: Encoding,
    /// For each multiple of `STEP` bytes in the text, the number of units before the character at that byte.
    units: Vec<usize>,
}

impl Positions {
    /// Makes the line index of `text`. The same text must be passed to all other functions of the index.
    pub(crate) fn of(text: &str, encoding: Encoding) -> Positions {
        let (mut units, mut before) = (Vec::new(), 0);
        for (byte, c) in text.char_indices() {
            while units.len() * STEP < byte + c.len_utf8() {
                units.push(before);
            }
            before += encoding.length(c);
        }
        Positions { lines: Lines::of(text), encoding, units }
    }

    /// Converts the byte index `byte` to a position. A byte in the middle of a character has the position of the character's
    /// start. A byte of a line end has the position of the line's end.
    pub(crate) fn position(&self, text: &str, byte: usize) -> Position {
        let byte = text.floor_char_boundary(byte.min(text.len()));
        let line = self.lines.line_of(byte);
        let range = self.lines.range(text, line);
        let character = self.units_before(text, byte.min(range.end)) - self.units_before(text, range.start);
        Position::new(number(line), number(character))
    }

    /// Converts `position` to a byte index. A position after the end of a line becomes the end of the line. A position after the end of the text
    /// becomes the end of the text. A position in the middle of a character becomes the character's start.
    pub(crate) fn byte(&self, text: &str, position: Position) -> usize {
        let range = self.lines.range(text, position.line as usize);
        let wanted = self.units_before(text, range.start) + position.character as usize;
        let at = self.units.partition_point(|before| *before <= wanted).saturating_sub(1);
        let byte = text.floor_char_boundary(at * STEP).max(range.start);
        let mut before = self.units_before(text, byte);
        let mut byte = byte.min(range.end);
        for c in text.get(byte..range.end).unwrap_or_default().chars() {
            before += self.encoding.length(c);
            if before > wanted {
                break;
            }
            byte += c.len_utf8();
        }
        byte
    }

    /// The number of units before a byte, which must be the start of a character.
    fn units_before(&self, text: &str, byte: usize) -> usize {
        let at = (byte / STEP).min(self.units.len().saturating_sub(1));
        let known = text.floor_char_boundary(at * STEP);
        let rest = text.get(known..byte).unwrap_or_default().chars().map(|c| self.encoding.length(c));
        self.units.get(at).copied().unwrap_or_default() + rest.sum::<usize>()
    }

    /// Converts the byte span `span` of `text` to a range of positions.
    pub(crate) fn range(&self, text: &str, span: Span) -> Range {
        Range::new(self.position(text, span.start as usize), self.position(text, span.end as usize))
    }
}

fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_what_was_agreed_on() {
        let text = "a\r\n\u{1d4cd}é = x\n";
        for (encoding, x) in [(Encoding::Utf8, 9), (Encoding::Utf16, 6), (Encoding::Utf32, 5)] {
            let positions = Positions::of(text, encoding);
            assert_eq!(positions.position(text, 12), Position::new(1, x));
            assert_eq!(positions.byte(text, Position::new(1, x)), 12);
            // Between the two bytes of the line end, and after the text.
            assert_eq!(positions.position(text, 2), Position::new(0, 1));
            assert_eq!(positions.byte(text, Position::new(0, 99)), 1);
            assert_eq!(positions.position(text, 99), Position::new(2, 0));
            assert_eq!(positions.byte(text, Position::new(7, 3)), text.len());
        }
        let positions = Positions::of(text, Encoding::Utf16);
        // In the middle of a surrogate pair.
        assert_eq!(positions.byte(text, Position::new(1, 1)), 3);
        assert_eq!(positions.byte(text, Position::new(1, 2)), 7);
    }

    #[test]
    fn long_lines_are_counted_from_places_in_them() {
        let mut random = fastrand::Rng::with_seed(7);
        let line = |random: &mut fastrand::Rng| {
            let c = |random: &mut fastrand::Rng| *random.choice(&['a', 'é', '€', '\u{1d4cd}']).unwrap();
            (0..random.usize(..3_000)).map(|_| c(random)).collect::<String>()
        };
        let text: String = (0..6).map(|_| line(&mut random) + random.choice(["\n", "\r\n", "\r"]).unwrap()).collect();
        for encoding in [Encoding::Utf8, Encoding::Utf16, Encoding::Utf32] {
            let positions = Positions::of(&text, encoding);
            let (mut line, mut character) = (0, 0);
            for (byte, c) in text.char_indices() {
                assert_eq!(positions.position(&text, byte), Position::new(line, number(character)), "{byte}");
                if text[..byte].ends_with('\r') && c == '\n' {
                    // The two bytes are one line end.
                } else {
                    assert_eq!(positions.byte(&text, Position::new(line, number(character))), byte);
                }
                match c {
                    '\r' if text[byte + 1..].starts_with('\n') => {}
                    '\r' | '\n' => (line, character) = (line + 1, 0),
                    c => character += encoding.length(c),
                }
            }
        }
    }

    #[test]
    fn the_encoding_is_one_that_is_offered() {
        let kinds = |names: &[&str]| names.iter().map(|name| (*name).to_owned().into()).collect::<Vec<_>>();
        assert_eq!(Encoding::of(&[]), Encoding::Utf16);
        assert_eq!(Encoding::of(&kinds(&["utf-16", "utf-8"])), Encoding::Utf8);
        assert_eq!(Encoding::of(&kinds(&["utf-16", "utf-32"])), Encoding::Utf32);
        assert_eq!(Encoding::of(&kinds(&["utf-7"])), Encoding::Utf16);
    }
}
