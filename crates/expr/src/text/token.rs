//! Tokens of the text language: their kinds and the reserved words.

use cembra_value::Span;

macro_rules! token_kinds {
    ($($(#[$doc:meta])* $variant:ident),* $(,)?) => {
        /// The kind of a token.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(u8)]
        pub(crate) enum TokenKind { $($(#[$doc])* $variant),* }

        impl TokenKind {
            /// How many kinds there are.
            pub(crate) const COUNT: usize = [$(TokenKind::$variant),*].len();
        }
    };
}

token_kinds! {
    /// The end of the text.
    End,
    /// A name.
    Word,
    /// A reserved name of a type, known already or not yet.
    Type,
    /// Digits with whatever hangs on them; read by `number`.
    Number,
    /// A text in quotes.
    Text,
    /// Bytes in quotes, behind a `b`.
    Bytes,
    /// A text whose closing quote is missing on its line.
    UnfinishedText,
    /// A character that begins no token.
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
        /// The reserved words of the language, without names of types.
        pub const KEYWORDS: &[&str] = &[$($word),*];

        impl TokenKind {
            /// The reserved word, if it is one. Names of types are reserved too; `types` knows those.
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
    /// True for the words that begin a statement; they occur nowhere else.
    pub(super) fn begins_statement(self) -> bool {
        matches!(self, TokenKind::Input | TokenKind::Let | TokenKind::Fn | TokenKind::Output)
    }

    /// True for names and reserved words alike: what may follow a dot.
    pub(super) fn is_word(self) -> bool {
        matches!(self, TokenKind::Word | TokenKind::Type) || self as u8 >= TokenKind::Input as u8
    }

    /// The number of brackets that are open behind the token, if `depth` are open before it.
    pub(super) fn depth_behind(self, depth: usize) -> usize {
        match self {
            TokenKind::OpenRound | TokenKind::OpenSquare | TokenKind::OpenCurly => depth + 1,
            TokenKind::CloseRound | TokenKind::CloseSquare | TokenKind::CloseCurly => depth.saturating_sub(1),
            _ => depth,
        }
    }

    /// True for what a prefix minus belongs to.
    pub(super) fn is_number(self) -> bool {
        matches!(self, TokenKind::Number | TokenKind::Inf | TokenKind::Nan)
    }
}

/// A token.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Token {
    /// What it is.
    pub(super) kind: TokenKind,
    /// True if it is the first on its line.
    pub(super) first_on_line: bool,
    /// Where it stands.
    pub(super) span: Span,
}
