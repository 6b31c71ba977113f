//! Determines from the tokens before a cursor what may be written at the cursor. Editors need this in the middle of a statement that cannot be
//! parsed yet.

use super::lexer::{Lexer, continues_word};
use super::parser::IN;
use super::token::TokenKind;
use cembra_value::Span;

/// The kind of text that may be written at a cursor: a statement, an operand, an operator or a type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ExpectedAt {
    /// Nothing can be proposed: the cursor is in a new name, in a comment or in a string.
    Nothing,
    /// A statement may begin at the cursor; an expression may be one.
    Statement,
    /// A value in an expression may be written at the cursor.
    Operand,
    /// An operator, or the next keyword of a condition, may be written at the cursor.
    Operator,
    /// A type may be written at the cursor.
    Type,
}

/// A call whose brackets enclose the cursor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OpenCall {
    /// The span of the called name or path.
    pub callee: Span,
    /// The number of complete arguments before the cursor.
    pub argument: usize,
    /// True if an argument of this call begins at the cursor, so that the name of a parameter may be written there (`digits = 2`).
    pub begins: bool,
}

/// The syntactic context of a cursor in a text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CursorContext {
    /// The span of the name or path that ends at the cursor; empty if no name ends there.
    pub word: Span,
    /// The kind of text that may be written at the cursor, in place of `word`.
    pub expected: ExpectedAt,
    /// The innermost call that encloses the cursor; `None` if there is none.
    pub call: Option<OpenCall>,
}

/// A bracket that is open.
struct Open {
    kind: TokenKind,
    callee: Option<Span>,
    commas: usize,
}

/// Returns the context of a cursor at the byte `at` of `text`. Only the text from byte `start` on is read, so a statement must begin at `start`. If
/// `start` or `at` is beyond the text or inside of a character, it is rounded down.
///
/// ```
/// use cembra_expr::{ExpectedAt, cursor_context};
///
/// let text = "let y = math.round(a + b, dig";
/// let context = cursor_context(text, 0, text.len());
/// assert_eq!((context.word.text(text), context.expected), ("dig", ExpectedAt::Operand));
/// let call = context.call.unwrap();
/// assert_eq!((call.callee.text(text), call.argument, call.begins), ("math.round", 1, true));
/// assert_eq!(cursor_context(text, 0, 5).expected, ExpectedAt::Nothing);
/// assert_eq!(cursor_context("x ", 0, 2).expected, ExpectedAt::Operator);
/// assert_eq!(cursor_context("x # no", 0, 6).expected, ExpectedAt::Nothing);
/// ```
#[must_use]
pub fn cursor_context(text: &str, start: usize, at: usize) -> CursorContext {
    let at = text.floor_char_boundary(at.min(text.len()));
    let start = text.floor_char_boundary(start.min(at));
    let before = &text.as_bytes()[start..at];
    let word = before.iter().rev().take_while(|byte| continues_word(**byte) || **byte == b'.').count();
    let word = at - word;
    // Spans have 32 bits; longer texts are not read.
    let span =
        |start: usize| Span::new(u32::try_from(start).unwrap_or(u32::MAX), u32::try_from(at).unwrap_or(u32::MAX));
    let mut context = CursorContext { word: span(word), expected: ExpectedAt::Nothing, call: None };
    if at > u32::MAX as usize {
        return context;
    }
    let mut lexer = Lexer::within(text, start..word);
    let (mut first, mut last, mut end) = (None, None, start);
    let mut open: Vec<Open> = Vec::new();
    // True between `fn` and the `=` before the body.
    let mut in_head = false;
    let mut path: Option<Span> = None;
    loop {
        let token = lexer.next();
        if token.kind == TokenKind::End {
            break;
        }
        let is_name = matches!(token.kind, TokenKind::Word | TokenKind::Type);
        path = match (last, path) {
            (Some(TokenKind::Dot), Some(path)) if token.kind.is_word() => Some(path.to(token.span)),
            _ if is_name => Some(token.span),
            (_, path) if matches!(token.kind, TokenKind::Dot | TokenKind::OpenRound) => path,
            _ => None,
        };
        let is_line = token.first_on_line && ends_operand(last);
        if last.is_none() || open.is_empty() && (is_line || last == Some(TokenKind::Semicolon)) {
            (first, in_head) = (Some(token.kind), false);
        }
        in_head = (in_head || token.kind == TokenKind::Fn) && token.kind != TokenKind::Equals;
        match token.kind {
            TokenKind::OpenRound | TokenKind::OpenSquare | TokenKind::OpenCurly => {
                let callee = path.take().filter(|_| token.kind == TokenKind::OpenRound);
                open.push(Open { kind: token.kind, callee, commas: 0 });
            }
            TokenKind::CloseRound | TokenKind::CloseSquare | TokenKind::CloseCurly => {
                open.pop();
            }
            TokenKind::Comma => {
                if let Some(open) = open.last_mut() {
                    open.commas += 1;
                }
            }
            _ => {}
        }
        // After a value, the word is an operator, and a value follows.
        let is_in = token.kind == TokenKind::Word && ends_operand(last) && token.span.text(text) == IN;
        (last, end) = (Some(if is_in { TokenKind::And } else { token.kind }), token.span.end as usize);
    }
    let gap = text.get(end..word).unwrap_or_default();
    let line = gap.rsplit(['\n', '\r']).next().unwrap_or_default();
    let is_new_line = line.len() < gap.len();
    let in_text = last == Some(TokenKind::UnfinishedText) && !is_new_line;
    let digits =
        text.as_bytes().get(word).is_some_and(|byte| word < at && !byte.is_ascii_alphabetic() && *byte != b'_');
    if line.contains('#') || in_text || digits {
        return context;
    }
    let is_argument = matches!(last, Some(TokenKind::OpenRound | TokenKind::Comma));
    let top = open.len().saturating_sub(1);
    let call = open.iter().enumerate().rev().find_map(|(depth, open)| Some((depth, open.commas, open.callee?)));
    context.call =
        call.map(|(depth, argument, callee)| OpenCall { callee, argument, begins: is_argument && depth == top });
    let in_bracket = open.last().map(|open| open.kind);
    context.expected = match last {
        None | Some(TokenKind::Semicolon) if in_bracket.is_none() => ExpectedAt::Statement,
        Some(TokenKind::Let | TokenKind::Fn | TokenKind::Input | TokenKind::Output) => ExpectedAt::Nothing,
        Some(TokenKind::Comma) if in_bracket.is_none() && first == Some(TokenKind::Input) => ExpectedAt::Nothing,
        Some(TokenKind::Colon) if in_bracket != Some(TokenKind::OpenCurly) => ExpectedAt::Type,
        _ if in_head => ExpectedAt::Nothing,
        last if ends_operand(last) && is_new_line && in_bracket.is_none() => ExpectedAt::Statement,
        last if ends_operand(last) => ExpectedAt::Operator,
        _ => ExpectedAt::Operand,
    };
    context
}

/// Returns true for a token that may end a value.
fn ends_operand(kind: Option<TokenKind>) -> bool {
    let Some(kind) = kind else { return false };
    match kind {
        TokenKind::Text | TokenKind::Bytes | TokenKind::Question | TokenKind::UnfinishedText => true,
        TokenKind::CloseRound | TokenKind::CloseSquare | TokenKind::CloseCurly => true,
        TokenKind::Word | TokenKind::Type | TokenKind::True | TokenKind::False => true,
        TokenKind::Present | TokenKind::Missing => true,
        kind => kind.is_number(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expected(text: &str) -> ExpectedAt {
        cursor_context(text, 0, text.len()).expected
    }

    #[test]
    fn what_is_expected_depends_on_the_tokens_before() {
        use ExpectedAt::{Nothing, Operand, Operator, Statement, Type};
        let all = [
            ("", Statement),
            ("le", Statement),
            ("let a = 1\nfo", Statement),
            ("let a = 1; fo", Statement),
            ("let a = 1 +\nfo", Operand),
            ("let a = (1\nfo", Operator),
            ("let a = ", Operand),
            ("let ", Nothing),
            ("input a, b", Nothing),
            ("input a: f", Type),
            ("fn f(a, b", Nothing),
            ("fn f(a: f", Type),
            ("fn f(a) = a", Operand),
            ("let f = fn(a) = a", Operand),
            ("{x: a", Operand),
            ("f(a", Operand),
            ("x th", Operator),
            ("f(x) th", Operator),
            ("if a then", Operator),
            ("x in a", Operand),
            ("let y = let t = 1 in t", Operand),
            ("let in = a", Operand),
            ("y = in th", Operator),
            ("if a th", Operator),
            ("\"a b", Nothing),
            ("x # b", Nothing),
            ("x # b\nc", Statement),
            ("1.5", Nothing),
            ("1 + 25", Nothing),
            ("größe", Operand),
        ];
        let found: Vec<_> = all.iter().map(|(text, _)| (*text, expected(text))).collect();
        assert_eq!(found, all);
    }

    #[test]
    fn calls_are_those_around_the_place() {
        let call = |text: &'static str| {
            let call = cursor_context(text, 0, text.len()).call?;
            Some((call.callee.text(text), call.argument, call.begins))
        };
        assert_eq!(call("f(a, (b, c), d"), Some(("f", 2, true)));
        assert_eq!(call("f(a, M.math . add(b + c"), Some(("M.math . add", 0, false)));
        assert_eq!(call("f(a, [b, c"), Some(("f", 1, false)));
        assert_eq!(call("f(a, (b"), Some(("f", 1, false)));
        assert_eq!(call("f(a)"), None);
        assert_eq!(call("if (a"), None);
        assert_eq!(call("x.if(a"), Some(("x.if", 0, true)));
    }

    #[test]
    fn any_place_may_be_asked_about() {
        let text = "let é = \"ü\" # ö";
        for start in 0..text.len() + 2 {
            for at in 0..text.len() + 2 {
                let word = cursor_context(text, start, at).word;
                assert!(text.get(word.start as usize..word.end as usize).is_some());
            }
        }
    }
}
