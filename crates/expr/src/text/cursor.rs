//! The cursor: the current token of a text, the problems found so far, and the nesting depth of brackets. The readers of types, values and
//! expressions all use this cursor.

use super::elsewhere::{BY_LABELS, COMMENT, ForeignUse, foreign_hint};
use super::lexer::{Lexer, PlacedText};
use super::sources::Sources;
use super::token::{Token, TokenKind};
use cembra_runtime::Excerpt;
use cembra_value::{Budget, Code, Diagnostic, Limit, Limits, Span};

/// The error that the rest of a statement cannot be read. The problem is already recorded in the cursor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Stop;

/// The position of the cursor in one text, saved while another text of the model is read.
pub(super) struct ReadingState<'s> {
    source: PlacedText<'s>,
    lexer: Lexer<'s>,
    token: Token,
    previous_kind: TokenKind,
    previous: Span,
}

/// Reads the tokens of a text and records the text's problems.
pub(super) struct Cursor<'s> {
    /// The text being read.
    source: PlacedText<'s>,
    /// The texts of the model; `None` for a single text.
    sources: Option<&'s Sources>,
    lexer: Lexer<'s>,
    /// The current token, which is not consumed yet.
    pub(super) token: Token,
    /// The kind of the last token that was consumed.
    pub(super) previous_kind: TokenKind,
    /// The span of the last token that was consumed.
    pub(super) previous: Span,
    /// The problems of the text, in the order of discovery.
    pub(super) problems: Vec<Diagnostic>,
    /// True if only syntax problems are recorded: problems after which a statement cannot be read further, or tokens may have been misread.
    pub(super) only_syntax: bool,
    /// True if reading must end: a limit is exceeded, or there are too many problems.
    pub(super) given_up: bool,
    /// The number of open brackets in the statement. A line end inside of brackets does not end a statement.
    pub(super) brackets: usize,
    /// True once a tensor type was read.
    pub(super) has_tensors: bool,
    depth: usize,
    /// The limits, and the time at which reading started. The time limit applies only to models, not to a single literal or type.
    budget: Budget,
    /// The number of tokens read and nodes made. The time limit is checked only once for many tokens and nodes.
    visits: usize,
}

/// The hint for how to write a part of a tensor.
pub(super) const OF_AXES: &str =
    "use `tensor.slice(x, 0, 2, 5)` for a range of indices on axis 0 of a tensor, `tensor.take(x, 2)` for one index";

impl<'s> Cursor<'s> {
    /// Returns a cursor at the first token of a text. A text that is longer than the limit is not read: an error is recorded instead.
    pub(super) fn new(source: &'s str, limits: &Limits) -> Self {
        Cursor::within(source.into(), source.len(), None, limits)
    }

    /// Returns a cursor at the first token of one of a model's files. The limit on the length applies to the bytes of all files together.
    pub(super) fn of_file(sources: &'s Sources, file: usize, limits: &Limits) -> Self {
        Cursor::within(sources.placed(file), sources.end(), Some(sources), limits)
    }

    fn within(source: PlacedText<'s>, bytes: usize, sources: Option<&'s Sources>, limits: &Limits) -> Self {
        let too_long = bytes > limits.source_bytes.min(u32::MAX as usize);
        let source = if too_long { "".into() } else { source };
        let mut lexer = Lexer::of(source);
        let token = lexer.next();
        let mut cursor = Cursor {
            source,
            sources,
            lexer,
            token,
            previous_kind: TokenKind::Semicolon,
            previous: Span::default(),
            problems: Vec::new(),
            only_syntax: false,
            given_up: false,
            brackets: 0,
            has_tensors: false,
            depth: 0,
            budget: Budget::new(*limits),
            visits: 0,
        };
        if too_long {
            cursor.limit(Limit::SourceBytes, None);
        }
        cursor
    }

    /// Moves to the first token of another text of the model. Returns the state that [`come_back`](Self::come_back) needs to continue in the
    /// current text.
    pub(super) fn go_to(&mut self, source: PlacedText<'s>) -> ReadingState<'s> {
        let mut lexer = Lexer::of(source);
        let token = lexer.next();
        let lexer = std::mem::replace(&mut self.lexer, lexer);
        let source = std::mem::replace(&mut self.source, source);
        let (previous_kind, previous) = (self.previous_kind, self.previous);
        let place = ReadingState { source, lexer, token: self.token, previous_kind, previous };
        (self.token, self.previous_kind) = (token, TokenKind::Semicolon);
        self.previous = Span::new(token.span.start, token.span.start);
        place
    }

    /// Returns to the text that `go_to` left.
    pub(super) fn come_back(&mut self, place: ReadingState<'s>) {
        let ReadingState { source, lexer, token, previous_kind, previous } = place;
        (self.source, self.lexer, self.token) = (source, lexer, token);
        (self.previous_kind, self.previous) = (previous_kind, previous);
    }

    /// Returns the text at the span `span`, in any of the files.
    pub(super) fn text(&self, span: Span) -> &'s str {
        match (self.source.get(span), self.sources) {
            (Some(found), _) => found,
            (None, Some(sources)) => sources.text_at(span),
            (None, None) => "",
        }
    }

    /// Returns the byte at the offset `at` of the current text; 0 after its end.
    #[inline]
    pub(super) fn byte(&self, at: u32) -> u8 {
        let place = (at as usize).checked_sub(self.source.start);
        place.and_then(|place| self.source.text.as_bytes().get(place)).copied().unwrap_or(0)
    }

    /// Consumes the current token and moves to the next.
    pub(super) fn advance(&mut self) -> Token {
        let read = self.token;
        self.previous = read.span;
        self.previous_kind = read.kind;
        self.token = self.lexer.next();
        if self.visit().is_err() {
            // The current construct ends here.
            self.lexer = Lexer::of("".into());
            self.token = self.lexer.next();
        }
        if matches!(read.kind, TokenKind::Word | TokenKind::Type) {
            self.check_name(read.span);
        }
        read
    }

    /// Starts the clock for the time limit of reading.
    pub(super) fn start_clock(&mut self) {
        self.budget = Budget::start(*self.limits());
    }

    /// Returns the limits for reading the text.
    pub(super) fn limits(&self) -> &Limits {
        self.budget.limits()
    }

    /// Counts a token or a node. Stops reading the text if the time limit is exceeded.
    pub(super) fn visit(&mut self) -> Result<(), Stop> {
        self.visits += 1;
        let within = self.budget.check_visit(self.visits);
        self.end_beyond(within)
    }

    /// Stops reading the text if the time limit is exceeded; called before work that may take long.
    pub(super) fn check_time(&mut self) -> Result<(), Stop> {
        let within = self.budget.check_time();
        self.end_beyond(within)
    }

    fn end_beyond(&mut self, within: Result<(), Diagnostic>) -> Result<(), Stop> {
        within.map_err(|problem| self.give_up(problem.at(self.previous)))
    }

    /// Checks that the name at `span` is not longer than the limit, because names are copied into messages.
    pub(super) fn check_name(&mut self, span: Span) {
        if (span.end - span.start) as usize > self.limits().name_bytes {
            self.limit(Limit::NameBytes, Some(span));
        }
    }

    /// Consumes the current token if it has the kind `kind`. Returns true if it did.
    pub(super) fn take(&mut self, kind: TokenKind) -> bool {
        let found = self.token.kind == kind;
        if found {
            self.advance();
        }
        found
    }

    /// Returns the token after the current one.
    pub(super) fn peek(&self) -> Token {
        self.ahead().next()
    }

    /// Returns a lexer for the tokens after the current one, without moving.
    pub(super) fn ahead(&self) -> Lexer<'s> {
        self.lexer.clone()
    }

    /// Returns true if the statement may end before the current token, because the token begins a line outside of brackets.
    pub(super) fn at_line_end(&self) -> bool {
        self.token.first_on_line && self.brackets == 0
    }

    /// Consumes the opening bracket that is the current token, and increases the nesting depth. Line ends inside of brackets do not end the
    /// statement.
    pub(super) fn open(&mut self) -> Result<Span, Stop> {
        let bracket = self.token.span;
        self.deepen(bracket)?;
        self.brackets += 1;
        self.advance();
        Ok(bracket)
    }

    /// Consumes an opening bracket of the kind `kind` as [`open`](Self::open) does. Any other token is an error; `expected` describes the bracket in
    /// the error message.
    pub(super) fn require_open(&mut self, kind: TokenKind, expected: &str) -> Result<Span, Stop> {
        if self.token.kind == kind { self.open() } else { Err(self.unexpected(expected)) }
    }

    /// Consumes the bracket of the kind `kind` that closes the bracket opened at `open`, and decreases the nesting depth. Any other token is an
    /// error; `expected` describes the closing bracket in the error message.
    pub(super) fn close(&mut self, kind: TokenKind, open: Span, expected: &str) -> Result<Span, Stop> {
        if self.token.kind != kind {
            return Err(self.unclosed(open, expected));
        }
        let bracket = self.advance().span;
        self.leave();
        Ok(bracket)
    }

    /// Consumes a token of the kind `kind`. Any other token is an error; `expected` describes the token in the error message.
    pub(super) fn require(&mut self, kind: TokenKind, expected: &str) -> Result<Span, Stop> {
        if self.token.kind == kind { Ok(self.advance().span) } else { Err(self.unexpected(expected)) }
    }

    /// Decreases the nesting depth after a bracket.
    pub(super) fn leave(&mut self) {
        self.brackets = self.brackets.saturating_sub(1);
        self.rise();
    }

    /// Increases the nesting depth without a bracket. Fails beyond the limit on nesting.
    pub(super) fn deepen(&mut self, span: Span) -> Result<(), Stop> {
        if self.depth >= self.limits().nesting {
            return Err(self.limit(Limit::Nesting, Some(span)));
        }
        self.depth += 1;
        Ok(())
    }

    /// Decreases the nesting depth that [`deepen`](Self::deepen) increased.
    pub(super) fn rise(&mut self) {
        self.depth = self.depth.saturating_sub(1);
    }

    /// Resets the nesting depth of brackets to 0 at the beginning of a statement.
    pub(super) fn surface(&mut self) {
        self.brackets = 0;
        self.depth = 0;
    }

    /// Records a problem after which reading of the statement continues. The problem is ignored if only syntax problems are recorded.
    pub(super) fn report(&mut self, problem: Diagnostic) {
        if !self.only_syntax {
            self.record(problem);
        }
    }

    /// Records a problem after which reading of the statement continues. The problem is recorded even if only syntax problems are recorded, because
    /// it may mean that tokens were misread.
    pub(super) fn report_syntax(&mut self, problem: Diagnostic) {
        self.record(problem);
    }

    /// Records a problem after which the rest of the statement is skipped.
    pub(super) fn stop(&mut self, problem: Diagnostic) -> Stop {
        self.record(problem);
        Stop
    }

    fn record(&mut self, problem: Diagnostic) {
        if !self.given_up {
            self.problems.push(problem);
            self.given_up = self.problems.len() >= self.limits().problems.max(1);
        }
    }

    /// Records that `limit` is exceeded, and stops reading the text.
    pub(super) fn limit(&mut self, limit: Limit, span: Option<Span>) -> Stop {
        let problem = self.limits().exceeded(limit).at(span);
        self.give_up(problem)
    }

    /// Records a problem after which nothing more of the text is read.
    fn give_up(&mut self, problem: Diagnostic) -> Stop {
        self.record(problem);
        self.given_up = true;
        Stop
    }

    /// Records the error that the current token is unexpected. The words `expected` describe the possible tokens. The rest of the statement is
    /// skipped.
    pub(super) fn unexpected(&mut self, expected: &str) -> Stop {
        let problem = self.describe_unexpected(expected);
        self.stop(problem)
    }

    /// Records the error that the current token neither continues nor closes the bracket opened at `open`. The words `expected` describe the possible
    /// tokens. The rest of the statement is skipped.
    pub(super) fn unclosed(&mut self, open: Span, expected: &str) -> Stop {
        let problem = match self.token.kind {
            kind if ends_text(kind) => Diagnostic::new(Code::Bracket, "this bracket is never closed")
                .at(open)
                .label("opened here")
                .also(self.end_of_previous(), format!("expected {expected}")),
            TokenKind::CloseRound | TokenKind::CloseSquare | TokenKind::CloseCurly => {
                Diagnostic::new(Code::Bracket, format!("expected {expected}, found {}", self.found()))
                    .at(self.token.span)
                    .also(open, "the bracket opened here")
            }
            _ => self.describe_unexpected(expected).also(open, "in the bracket opened here"),
        };
        self.stop(problem)
    }

    fn end_of_previous(&self) -> Span {
        Span::new(self.previous.end, self.previous.end)
    }

    /// Returns the current token in the words of a message.
    fn found(&self) -> String {
        match self.token.kind {
            TokenKind::End => "the end of the text".into(),
            kind if ends_text(kind) => "the end of the statement".into(),
            _ => format!("`{}`", Excerpt::quoted(self.text(self.token.span))),
        }
    }

    /// Returns the error that the current token is unexpected. The words `expected` describe the possible tokens.
    pub(super) fn describe_unexpected(&self, expected: &str) -> Diagnostic {
        let Token { kind, span, .. } = self.token;
        let text = self.text(span);
        match kind {
            TokenKind::UnfinishedText => {
                return Diagnostic::new(Code::Literal, "this text has no closing quote")
                    .at(span)
                    .hint("close the quote on the same line; write a line end inside a text as `\\n`");
            }
            TokenKind::Invalid => {
                // A no-break space looks like a normal one, so the character is shown as an escape.
                let shown = text.escape_debug().to_string();
                let message = format!("`{}` is not part of the language", Excerpt::quoted(&shown));
                let problem = Diagnostic::new(Code::Syntax, message).at(span);
                return match self.sign_hint(expected) {
                    _ if text == "@" && self.has_tensors => problem.hint(BY_LABELS),
                    Some(hint) => problem.hint(hint),
                    None if text.starts_with(char::is_alphanumeric) => {
                        problem.hint("quote a name with letters other than `a` to `z`: `L[\"größe\"]`")
                    }
                    None => problem,
                };
            }
            _ => {}
        }
        let at = if ends_text(kind) { self.end_of_previous() } else { span };
        let problem = Diagnostic::new(Code::Syntax, format!("expected {expected}, found {}", self.found())).at(at);
        let problem = match kind {
            TokenKind::Colon if self.has_tensors => problem.hint(OF_AXES),
            TokenKind::Equals if self.has_tensors && self.previous_kind == TokenKind::CloseRound => {
                problem.hint("write labels as a text: `p(\"i,j\") = a(\"i,k\") * b(\"k,j\")`; write `==` to compare")
            }
            TokenKind::OpenRound | TokenKind::OpenSquare if self.has_tensors && expected == "`=`" => {
                problem.hint("write labels as a text: `output c(\"i,j\") = ..`")
            }
            _ => self.sign_hint(expected).or_else(|| self.word_hint()).into_iter().fold(problem, Diagnostic::hint),
        };
        if self.is_behind_comment() { problem.hint(COMMENT) } else { problem }
    }

    /// Returns the hint for what to write in place of an operator sign of another language at the current token. The sign may be the current token
    /// alone, or together with an adjacent token.
    fn sign_hint(&self, expected: &str) -> Option<&'static str> {
        let Token { kind, span, .. } = self.token;
        let next = self.peek();
        let of = |sign: &str| foreign_hint(ForeignUse::Sign, sign);
        let pair = |first: Span, second: Span| {
            let touch = first.start < first.end
                && first.end == second.start
                && (second.end - first.start) as usize <= LONGEST_SIGN;
            if touch { of(&format!("{}{}", self.text(first), self.text(second))) } else { None }
        };
        match kind {
            TokenKind::Text | TokenKind::UnfinishedText => {
                let touch = self.previous_kind == TokenKind::Text && self.previous.end == span.start;
                if touch { of("''") } else { None }
            }
            _ if kind.is_word() || kind.is_number() => None,
            _ if ends_text(kind) => {
                if self.previous_kind == TokenKind::Percent {
                    of("%")
                } else {
                    None
                }
            }
            TokenKind::Dot => {
                if next.kind == TokenKind::Number {
                    of(".")
                } else {
                    None
                }
            }
            _ => pair(self.previous, span).or_else(|| pair(span, next.span)).or_else(|| match kind {
                TokenKind::Colon if expected.ends_with("`]`") => of("[:"),
                TokenKind::Equals if expected == "a value" => of("= "),
                // Where a literal is expected there is no subtraction, so a minus after a number suggests a date such as 2026-01-31.
                TokenKind::Minus if self.previous_kind == TokenKind::Number => of("0-"),
                _ => of(self.text(span)),
            }),
        }
    }

    /// Returns the hint for what to write in place of a keyword of another language, which is the current token or the token before it.
    fn word_hint(&self) -> Option<&'static str> {
        let Token { kind, span, first_on_line } = self.token;
        let of = |at: Span| foreign_hint(ForeignUse::Word, self.text(at));
        let here = match kind {
            TokenKind::Word | TokenKind::Type | TokenKind::If => of(span),
            TokenKind::Not => of(self.peek().span),
            _ => None,
        };
        let is_behind_word = matches!(self.previous_kind, TokenKind::Word | TokenKind::Type) && !first_on_line;
        here.or_else(|| if is_behind_word { of(self.previous) } else { None })
    }

    /// Returns true if the current token may be meant as part of a comment: shortly before it, its line has a comment sign of another language.
    fn is_behind_comment(&self) -> bool {
        let end = (self.token.span.start as usize).saturating_sub(self.source.start);
        let text = self.source.text;
        let start = text.floor_char_boundary(end.saturating_sub(LOOKED_BACK).min(text.len()));
        let before = text.get(start..end).unwrap_or_default();
        let line = before.rsplit(['\n', '\r']).next().unwrap_or_default();
        ["//", "/*", "--"].iter().any(|sign| line.contains(sign))
    }
}

/// The most bytes of a sign that is looked up.
const LONGEST_SIGN: usize = 4;

/// The number of bytes before a token that are searched for a comment sign.
const LOOKED_BACK: usize = 100;

/// Returns true for tokens that cannot be inside of a statement: a word that begins a statement, a `;` between statements, or the end of the text.
pub(super) fn ends_text(kind: TokenKind) -> bool {
    kind.begins_statement() || matches!(kind, TokenKind::End | TokenKind::Semicolon)
}
