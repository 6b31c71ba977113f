//! The cursor: the current token of a text, the problems found so far, and how deep in brackets we are. Types, values
//! and expressions are all read through one.

use super::elsewhere::{BY_LABELS, COMMENT, ForeignUse, foreign_form};
use super::lexer::{Lexer, PlacedText};
use super::sources::Sources;
use super::token::{Token, TokenKind};
use cembra_runtime::Excerpt;
use cembra_value::{Budget, Code, Diagnostic, Limit, Limits, Span};

/// The statement cannot be read further. Its problem is recorded already.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Stop;

/// The state of reading a text, kept while another text is read.
pub(super) struct ReadingState<'s> {
    source: PlacedText<'s>,
    lexer: Lexer<'s>,
    token: Token,
    previous_kind: TokenKind,
    previous: Span,
}

/// Reads tokens and records problems.
pub(super) struct Cursor<'s> {
    /// The text being read.
    source: PlacedText<'s>,
    /// All texts of the model, if it has several.
    sources: Option<&'s Sources>,
    lexer: Lexer<'s>,
    /// The token to read next.
    pub(super) token: Token,
    /// The kind of the token read last.
    pub(super) previous_kind: TokenKind,
    /// Where the token read last stands.
    pub(super) previous: Span,
    /// What is wrong with the text, in the order found.
    pub(super) problems: Vec<Diagnostic>,
    /// True if only those problems are kept behind which a statement cannot be read further.
    pub(super) only_syntax: bool,
    /// True if reading on makes no sense: a limit is exceeded, or there are too many problems.
    pub(super) given_up: bool,
    /// How many brackets of the statement are open: inside, line ends do not count.
    pub(super) brackets: usize,
    /// True once the type of a tensor was read.
    pub(super) has_tensors: bool,
    depth: usize,
    /// The limits, and when reading began. Time passes for models only, not for a literal or a type by itself.
    budget: Budget,
    /// The count of tokens read and nodes made, by which the clock is looked at rarely.
    visits: usize,
}

/// How parts of tensors are written.
pub(super) const OF_AXES: &str =
    "of a tensor, `tensor.slice(x, 0, 2, 5)` has some indices of axis 0, `tensor.take(x, 2)` has one";

impl<'s> Cursor<'s> {
    /// At the first token of a text. A text beyond the limit is not read at all.
    pub(super) fn new(source: &'s str, limits: &Limits) -> Self {
        Cursor::within(source.into(), source.len(), None, limits)
    }

    /// At the first token of a file of a model likewise; the bytes of all its files count.
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

    /// Goes to the first token of another text of the model.
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

    /// Goes on in the text that was left for another.
    pub(super) fn come_back(&mut self, place: ReadingState<'s>) {
        let ReadingState { source, lexer, token, previous_kind, previous } = place;
        (self.source, self.lexer, self.token) = (source, lexer, token);
        (self.previous_kind, self.previous) = (previous_kind, previous);
    }

    /// The text at a span, of whatever file.
    pub(super) fn text(&self, span: Span) -> &'s str {
        match (self.source.get(span), self.sources) {
            (Some(found), _) => found,
            (None, Some(sources)) => sources.text_at(span),
            (None, None) => "",
        }
    }

    /// The byte at a place of the text being read; 0 behind its end.
    #[inline]
    pub(super) fn byte(&self, at: u32) -> u8 {
        let place = (at as usize).checked_sub(self.source.start);
        place.and_then(|place| self.source.text.as_bytes().get(place)).copied().unwrap_or(0)
    }

    /// Reads the current token and moves to the next.
    pub(super) fn advance(&mut self) -> Token {
        let read = self.token;
        self.previous = read.span;
        self.previous_kind = read.kind;
        self.token = self.lexer.next();
        if self.visit().is_err() {
            // Whatever is being read ends here.
            self.lexer = Lexer::of("".into());
            self.token = self.lexer.next();
        }
        if matches!(read.kind, TokenKind::Word | TokenKind::Type) {
            self.check_name(read.span);
        }
        read
    }

    /// Begins to count the time that reading takes.
    pub(super) fn start_clock(&mut self) {
        self.budget = Budget::start(*self.limits());
    }

    /// The limits.
    pub(super) fn limits(&self) -> &Limits {
        self.budget.limits()
    }

    /// Counts a token or a node, and ends the text if the time is over.
    pub(super) fn visit(&mut self) -> Result<(), Stop> {
        self.visits += 1;
        let within = self.budget.check_visit(self.visits);
        self.end_beyond(within)
    }

    /// Ends the text if the time is over, before work that may take long by itself.
    pub(super) fn check_time(&mut self) -> Result<(), Stop> {
        let within = self.budget.check_time();
        self.end_beyond(within)
    }

    fn end_beyond(&mut self, within: Result<(), Diagnostic>) -> Result<(), Stop> {
        within.map_err(|problem| self.give_up(problem.at(self.previous)))
    }

    /// A name at this span must not be longer than the limit: names are copied into messages.
    pub(super) fn check_name(&mut self, span: Span) {
        if (span.end - span.start) as usize > self.limits().name_bytes {
            self.limit(Limit::NameBytes, Some(span));
        }
    }

    /// Reads the current token if it is of this kind.
    pub(super) fn take(&mut self, kind: TokenKind) -> bool {
        let found = self.token.kind == kind;
        if found {
            self.advance();
        }
        found
    }

    /// The token behind the current one.
    pub(super) fn peek(&self) -> Token {
        self.ahead().next()
    }

    /// Reads the tokens behind the current one, without moving.
    pub(super) fn ahead(&self) -> Lexer<'s> {
        self.lexer.clone()
    }

    /// True if the statement may end before the current token because it begins a line outside of brackets.
    pub(super) fn at_line_end(&self) -> bool {
        self.token.first_on_line && self.brackets == 0
    }

    /// Consumes the opening bracket that is the current token, and goes one level deeper. Line ends inside of brackets do not count.
    pub(super) fn open(&mut self) -> Result<Span, Stop> {
        let bracket = self.token.span;
        self.deepen(bracket)?;
        self.brackets += 1;
        self.advance();
        Ok(bracket)
    }

    /// Consumes an opening bracket of a kind as [`open`](Self::open) does. Another token is an error.
    pub(super) fn require_open(&mut self, kind: TokenKind, expected: &str) -> Result<Span, Stop> {
        if self.token.kind == kind { self.open() } else { Err(self.unexpected(expected)) }
    }

    /// Consumes the bracket that closes the one at `open`, and leaves its level. Another token is an error.
    pub(super) fn close(&mut self, kind: TokenKind, open: Span, expected: &str) -> Result<Span, Stop> {
        if self.token.kind != kind {
            return Err(self.unclosed(open, expected));
        }
        let bracket = self.advance().span;
        self.leave();
        Ok(bracket)
    }

    /// Consumes a token of a kind. Another token is an error.
    pub(super) fn require(&mut self, kind: TokenKind, expected: &str) -> Result<Span, Stop> {
        if self.token.kind == kind { Ok(self.advance().span) } else { Err(self.unexpected(expected)) }
    }

    /// Leaves a bracket.
    pub(super) fn leave(&mut self) {
        self.brackets = self.brackets.saturating_sub(1);
        self.rise();
    }

    /// Goes one level deeper without a bracket.
    pub(super) fn deepen(&mut self, span: Span) -> Result<(), Stop> {
        if self.depth >= self.limits().nesting {
            return Err(self.limit(Limit::Nesting, Some(span)));
        }
        self.depth += 1;
        Ok(())
    }

    /// Comes one level up.
    pub(super) fn rise(&mut self) {
        self.depth = self.depth.saturating_sub(1);
    }

    /// Forgets all open brackets, at the begin of a statement.
    pub(super) fn surface(&mut self) {
        self.brackets = 0;
        self.depth = 0;
    }

    /// Records a problem behind which the statement is read on.
    pub(super) fn report(&mut self, problem: Diagnostic) {
        if !self.only_syntax {
            self.record(problem);
        }
    }

    /// The same of a problem that the syntax has too, because what was read may be other tokens than it seems.
    pub(super) fn report_syntax(&mut self, problem: Diagnostic) {
        self.record(problem);
    }

    /// Records a problem that ends the statement.
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

    /// Records an exceeded limit, which ends the text.
    pub(super) fn limit(&mut self, limit: Limit, span: Option<Span>) -> Stop {
        let problem = self.limits().exceeded(limit).at(span);
        self.give_up(problem)
    }

    /// Records a problem that ends the text.
    fn give_up(&mut self, problem: Diagnostic) -> Stop {
        self.record(problem);
        self.given_up = true;
        Stop
    }

    /// The current token is not what must stand here.
    pub(super) fn unexpected(&mut self, expected: &str) -> Stop {
        let problem = self.describe_unexpected(expected);
        self.stop(problem)
    }

    /// The current token neither goes on in the bracket opened at `open` nor closes it.
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

    /// The current token, for a message.
    fn found(&self) -> String {
        match self.token.kind {
            TokenKind::End => "the end of the text".into(),
            kind if ends_text(kind) => "the end of the statement".into(),
            _ => format!("`{}`", Excerpt::quoted(self.text(self.token.span))),
        }
    }

    /// The problem of a token that must not stand here.
    pub(super) fn describe_unexpected(&self, expected: &str) -> Diagnostic {
        let Token { kind, span, .. } = self.token;
        let text = self.text(span);
        match kind {
            TokenKind::UnfinishedText => {
                return Diagnostic::new(Code::Literal, "this text has no closing quote")
                    .at(span)
                    .hint("a text ends on its line; write a line end inside as `\\n`");
            }
            TokenKind::Invalid => {
                // A space that does not break looks like one that does.
                let shown = text.escape_debug().to_string();
                let message = format!("`{}` is no part of the language", Excerpt::quoted(&shown));
                let problem = Diagnostic::new(Code::Syntax, message).at(span);
                return match self.form_of_sign(expected) {
                    _ if text == "@" && self.has_tensors => problem.hint(BY_LABELS),
                    Some(form) => problem.hint(form),
                    None if text.starts_with(char::is_alphanumeric) => {
                        problem.hint("a name with other letters than `a` to `z` is quoted: `L[\"größe\"]`")
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
                problem.hint("labels are a text: `p(\"i,j\") = a(\"i,k\") * b(\"k,j\")`; write `==` to compare")
            }
            TokenKind::OpenRound | TokenKind::OpenSquare if self.has_tensors && expected == "`=`" => {
                problem.hint("labels are a text: `output c(\"i,j\") = ..`")
            }
            _ => {
                self.form_of_sign(expected).or_else(|| self.form_of_word()).into_iter().fold(problem, Diagnostic::hint)
            }
        };
        if self.is_behind_comment() { problem.hint(COMMENT) } else { problem }
    }

    /// What to write for the sign here, which other languages have: by itself, or with the token before or behind it where they touch.
    fn form_of_sign(&self, expected: &str) -> Option<&'static str> {
        let Token { kind, span, .. } = self.token;
        let next = self.peek();
        let of = |sign: &str| foreign_form(ForeignUse::Sign, sign);
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
                // Where a literal is expected there is no difference.
                TokenKind::Minus if self.previous_kind == TokenKind::Number => of("0-"),
                _ => of(self.text(span)),
            }),
        }
    }

    /// What to write for the word here, or for the one before what is here, which other languages have.
    fn form_of_word(&self) -> Option<&'static str> {
        let Token { kind, span, first_on_line } = self.token;
        let of = |at: Span| foreign_form(ForeignUse::Word, self.text(at));
        let here = match kind {
            TokenKind::Word | TokenKind::Type | TokenKind::If => of(span),
            TokenKind::Not => of(self.peek().span),
            _ => None,
        };
        let is_behind_word = matches!(self.previous_kind, TokenKind::Word | TokenKind::Type) && !first_on_line;
        here.or_else(|| if is_behind_word { of(self.previous) } else { None })
    }

    /// True if what is here may be meant to be in a comment: a little before it on its line something stands that begins one elsewhere.
    fn is_behind_comment(&self) -> bool {
        let end = (self.token.span.start as usize).saturating_sub(self.source.start);
        let text = self.source.text;
        let start = text.floor_char_boundary(end.saturating_sub(LOOKED_BACK).min(text.len()));
        let before = text.get(start..end).unwrap_or_default();
        let line = before.rsplit(['\n', '\r']).next().unwrap_or_default();
        ["//", "/*", "--"].iter().any(|sign| line.contains(sign))
    }
}

/// The longest signs that are looked up, in bytes.
const LONGEST_SIGN: usize = 4;

/// How far before a token it is looked for the beginning of a comment, in bytes.
const LOOKED_BACK: usize = 100;

/// True for what no statement reaches beyond.
pub(super) fn ends_text(kind: TokenKind) -> bool {
    kind.begins_statement() || matches!(kind, TokenKind::End | TokenKind::Semicolon)
}
