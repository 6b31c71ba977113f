//! A text as the sequence of all its tokens, with the blanks, line ends and comments between them. The sequence is lossless: concatenated, it is
//! the text. The tokens are the same as for the parser; everything else is in the gaps between their spans.

use crate::text::lexer::Lexer;
use crate::text::token::{Token, TokenKind};
use cembra_value::Span;

/// The byte order mark, which some programs write at the beginning of a text.
const MARK: char = '\u{FEFF}';

/// A piece of the gap between two tokens: blanks, a line end or a comment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Piece<'s> {
    /// A byte order mark, at the beginning of the text.
    Mark(&'s str),
    /// A run of spaces and tabs.
    Blank(&'s str),
    /// The end of a line: LF, CR or both.
    LineEnd(&'s str),
    /// A comment up to the end of its line, without the line end.
    Comment(&'s str),
}

/// A text and its tokens. The last token is the end of the text.
pub(super) struct Tokens<'s> {
    source: &'s str,
    all: Vec<Token>,
}

impl<'s> Tokens<'s> {
    /// Reads the tokens of a text, which must have at most 4 GiB.
    pub(super) fn of(source: &'s str) -> Self {
        let mut lexer = Lexer::of(source.into());
        // The typical number of bytes per token in a formula.
        let mut all = Vec::with_capacity(source.len() / 4);
        loop {
            let token = lexer.next();
            all.push(token);
            if token.kind == TokenKind::End {
                return Tokens { source, all };
            }
        }
    }

    /// The number of tokens, including the end of the text.
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// Returns the token at `index`; for larger indices, the end of the text.
    pub(super) fn at(&self, index: usize) -> Token {
        let end = Span::new(self.source.len() as u32, self.source.len() as u32);
        self.all.get(index).copied().unwrap_or(Token { kind: TokenKind::End, first_on_line: false, span: end })
    }

    pub(super) fn kind(&self, index: usize) -> TokenKind {
        self.at(index).kind
    }

    pub(super) fn text(&self, index: usize) -> &'s str {
        self.at(index).span.text(self.source)
    }

    /// Returns the text between the token at `index` and the one before it.
    pub(super) fn gap(&self, index: usize) -> &'s str {
        let start = match index {
            0 => 0,
            _ => self.at(index - 1).span.end,
        };
        Span::new(start, self.at(index).span.start).text(self.source)
    }

    /// Returns true if there is a comment before the token at `index`.
    pub(super) fn has_comment_before(&self, index: usize) -> bool {
        // In a gap, only comments have this character.
        self.gap(index).contains('#')
    }

    /// Returns the number of columns that the token at `index` takes. For a token that is wider than `most`, `most` may be returned instead.
    pub(super) fn width(&self, index: usize, most: usize) -> usize {
        let text = self.text(index);
        // No character has more than 4 bytes.
        if text.len() > 4 * most { most } else { text.chars().count() }
    }

    /// Returns true if the tokens at `left` and `right`, written without a blank between them, are still read as the same two tokens.
    pub(super) fn may_touch(&self, left: usize, right: usize) -> bool {
        if self.at(left).span.end == self.at(right).span.start {
            return true;
        }
        // After a dot, digits are not a fraction.
        let dot = if left > 0 && self.kind(left - 1) == TokenKind::Dot { "." } else { "" };
        let text = [dot, self.text(left), self.text(right)].concat();
        let middle = (text.len() - self.text(right).len()) as u32;
        let mut lexer = Lexer::of((&*text).into());
        if !dot.is_empty() {
            lexer.next();
        }
        let (first, second) = (lexer.next(), lexer.next());
        first.span == Span::new(dot.len() as u32, middle) && second.span == Span::new(middle, text.len() as u32)
    }
}

/// Removes and returns the first piece of a gap between two tokens; `None` if the gap is empty.
pub(super) fn next_piece<'s>(gap: &mut &'s str) -> Option<Piece<'s>> {
    let first = gap.chars().next()?;
    let length = |ends: fn(char) -> bool| gap.find(ends).unwrap_or(gap.len());
    let (length, kind): (_, fn(&'s str) -> Piece<'s>) = match first {
        MARK => (first.len_utf8(), Piece::Mark),
        '#' => (length(|c| matches!(c, '\n' | '\r')), Piece::Comment),
        '\r' if gap.starts_with("\r\n") => (2, Piece::LineEnd),
        '\n' | '\r' => (1, Piece::LineEnd),
        _ => (length(|c| !matches!(c, ' ' | '\t')).max(first.len_utf8()), Piece::Blank),
    };
    let (piece, rest) = gap.split_at(length);
    *gap = rest;
    Some(kind(piece))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the text, joined again from its pieces and tokens.
    fn joined(source: &str) -> String {
        let tokens = Tokens::of(source);
        let mut out = String::new();
        for index in 0..tokens.len() {
            let mut gap = tokens.gap(index);
            while let Some(piece) = next_piece(&mut gap) {
                let (Piece::Mark(text) | Piece::Blank(text) | Piece::LineEnd(text) | Piece::Comment(text)) = piece;
                out.push_str(text);
            }
            out.push_str(tokens.text(index));
        }
        out
    }

    #[test]
    fn nothing_of_a_text_is_lost() {
        let texts = [
            "",
            " \t",
            "\u{FEFF}",
            "\u{FEFF} # a\r\n\tlet x = 1;; # b\r# c\n\n-x ** 2  ",
            "output \"ü\" = L[\"größe\"] ? ! ü \u{FEFF} \u{a0} \"never closed\n'nor this",
            "t.0.1 ?? 1..3 date\"2026-01-01\" b'x' 5. 1e+ #",
        ];
        for text in texts {
            assert_eq!(joined(text), text);
        }
    }

    #[test]
    fn gaps_have_pieces() {
        let mut gap = " \t# a \r\n\r# b";
        let pieces: Vec<_> = std::iter::from_fn(|| next_piece(&mut gap)).collect();
        let expected = [
            Piece::Blank(" \t"),
            Piece::Comment("# a "),
            Piece::LineEnd("\r\n"),
            Piece::LineEnd("\r"),
            Piece::Comment("# b"),
        ];
        assert_eq!(pieces, expected);
    }

    #[test]
    fn what_would_be_another_token_does_not_touch() {
        let touches = |source: &str| Tokens::of(source).may_touch(0, 1);
        assert!(Tokens::of("t.0 .1").may_touch(2, 3));
        for source in ["a b", "1 .", "* *", "b 'x'", "< =", "? ?", ". .", "1 e5"] {
            assert!(!touches(source), "{source}");
        }
        for source in ["a (", "a . b", "- >", "1 ..", "- 1", "f32 ?", "x ["] {
            assert!(touches(source), "{source}");
        }
    }
}
