//! Tokens of the text language: their kinds and the reserved words.

use cembra_value::Span;

macro_rules! token_kinds {
    ($($(#[$doc:meta])* $variant:ident),* $(,)?) => {
        /// The kind of a token.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(u8)]
        pub(crate) enum TokenKind { $($(#[$doc])* $variant),* }

        impl TokenKind {
            /// The number of token kinds.
            pub(crate) const COUNT: usize = [$(TokenKind::$variant),*].len();
        }
    };
}

token_kinds! {
    /// The token stands for the end of the text.
    End,
    /// A name.
    Word,
    /// A reserved name of a type. It may be reserved for a future type.
    Type,
    /// A number: digits and the letters directly after them. The module `number` reads them.
    Number,
    /// A text in quotes.
    Text,
    /// Bytes in quotes, after a `b`.
    Bytes,
    /// A text whose closing quote is missing on its line.
    UnfinishedText,
    /// A character that cannot begin a token.
    Invalid,
    OpenRound, CloseRound, OpenSquare, CloseSquare, OpenCurly, CloseCurly,
    Comma, Dot, DotDot, Colon, Semicolon, Equals, Question,
    Plus, Minus, Star, StarStar, Slash, SlashSlash, Percent, Ampersand, Bar, QuestionQuestion,
    Less, LessEqual, Greater, GreaterEqual, EqualEqual, BangEqual,
    Input, Let, Fn, Output, If, Then, Else, And, Or, Not,
    True, False, Present, Missing, Inf, Nan,
}

macro_rules! keywords {
    ($($word:literal $variant:ident),* $(,)?) => {
        /// The reserved words of the language, except for names of types.
        pub const KEYWORDS: &[&str] = &[$($word),*];

        impl TokenKind {
            /// Returns the token kind of a reserved word; `None` if `word` is not reserved. The reserved names of types are in the module `types`.
            pub(super) fn keyword(word: &str) -> Option<TokenKind> {
                Some(match word {
                    $($word => TokenKind::$variant,)*
                    _ => return None,
                })
            }
        }
    };
}

keywords! {
    "input" Input, "let" Let, "fn" Fn, "output" Output, "if" If, "then" Then, "else" Else, "and" And, "or" Or, "not" Not,
    "true" True, "false" False, "present" Present, "missing" Missing, "inf" Inf, "nan" Nan,
}

impl TokenKind {
    /// Returns true for reserved words that begin a statement and occur nowhere else.
    pub(super) fn begins_statement(self) -> bool {
        matches!(self, TokenKind::Input | TokenKind::Let | TokenKind::Fn | TokenKind::Output)
    }

    /// Returns true for names and reserved words, all of which may follow a dot.
    pub(super) fn is_word(self) -> bool {
        matches!(self, TokenKind::Word | TokenKind::Type) || self as u8 >= TokenKind::Input as u8
    }

    /// Returns the number of open brackets after a token of this kind. `depth` is the number of open brackets before the token.
    pub(super) fn depth_behind(self, depth: usize) -> usize {
        match self {
            TokenKind::OpenRound | TokenKind::OpenSquare | TokenKind::OpenCurly => depth + 1,
            TokenKind::CloseRound | TokenKind::CloseSquare | TokenKind::CloseCurly => depth.saturating_sub(1),
            _ => depth,
        }
    }

    /// Returns true for tokens that are numbers, such as `1.5`, `inf` and `nan`: with a minus sign before it, such a token is one number.
    pub(super) fn is_number(self) -> bool {
        matches!(self, TokenKind::Number | TokenKind::Inf | TokenKind::Nan)
    }
}

/// A token of a text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Token {
    /// The kind of the token.
    pub(super) kind: TokenKind,
    /// True if the token is the first on its line.
    pub(super) first_on_line: bool,
    /// The span of the token in the text.
    pub(super) span: Span,
}
