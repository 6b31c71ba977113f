//! Finds the structure of a text for its layout: the beginnings of statements, the pairs of brackets and their kinds, and the tokens that are written
//! without a blank between them. The structure is correct for texts that the parser accepts. For any other text the layout may be odd, but it never
//! changes the text's meaning.

use super::tokens::Tokens;
use crate::infix::{COMPARISON, Level, Operation};
use crate::text::parser::{EXTERN, IN, NUMBERS, TEST, TILE, begins_table, table::TABLE};
use crate::text::sources::USE;
use crate::text::token::TokenKind;
use cembra_runtime::DICT_WORD;

/// The most columns of an element in a list that fills lines.
const SHORT: usize = 10;

/// The properties of a token that its layout depends on: whether it begins a statement, and whether blanks may be around it.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Role {
    /// True if the token is written without a blank before it.
    pub(super) touches_before: bool,
    /// True if the token is written without a blank after it.
    pub(super) touches_behind: bool,
    /// True if the token begins a statement.
    pub(super) begins_statement: bool,
    /// True if the token begins a case of a table of tests, or the line of names at the table's start.
    pub(super) begins_row: bool,
    /// True if the token is a reserved word that is used as a name: as a field's name, or in a path.
    pub(super) is_name: bool,
    /// True if the token is the `in` after the value of a local name.
    pub(super) binds: bool,
    /// True if the token is a `;` that a line end can replace.
    pub(super) is_dropped: bool,
    /// True if the token begins an expression that may be broken into lines before its operators.
    pub(super) begins_chain: bool,
    /// True if the token is an operator before which its expression may be broken into lines: no operator of the expression binds less, except inside
    /// of brackets.
    pub(super) is_joint: bool,
    /// The number of additional blanks before the token, for alignment.
    pub(super) padding: u8,
}

/// The kind of content that a bracket has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum BracketKind {
    /// The bracket contains operands, entries, types or names.
    Plain,
    /// The bracket contains a value after the name of its type, where blanks may have a meaning: `DATE{2026-11-20}`.
    Raw,
    /// The bracket contains the values of a test's case.
    Case,
    /// The bracket contains a table of cases, where line ends have a meaning.
    Table,
}

/// A pair of brackets in the text: its kind, and what decides whether it is broken into several lines.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bracket {
    pub(super) kind: BracketKind,
    pub(super) open: usize,
    pub(super) close: usize,
    /// The number of commas in the bracket, without those in inner brackets.
    pub(super) commas: usize,
    /// True if the content of the bracket begins on a new line after the opening bracket.
    pub(super) begins_line: bool,
    /// True if there is a comment at a place where the bracket may be broken.
    pub(super) has_comment: bool,
    /// True if a line of the source ends within an operand in the bracket, outside of inner brackets, where a blank may be.
    pub(super) has_line_end: bool,
    /// True if the bracket is a list of short literals, so that each line has as many of them as fit.
    pub(super) is_filled: bool,
}

impl Bracket {
    /// Returns true if the bracket is broken into several lines, however short it is.
    pub(super) fn is_broken(&self) -> bool {
        match self.kind {
            BracketKind::Raw => false,
            BracketKind::Table => true,
            BracketKind::Plain | BracketKind::Case => {
                self.begins_line || self.has_comment || self.commas > 0 && self.has_line_end
            }
        }
    }

    /// Returns true if the bracket may be broken into several lines because it is too long.
    pub(super) fn may_break(&self) -> bool {
        self.is_broken() || self.commas > 0 && self.kind != BracketKind::Raw
    }
}

/// The structure of a text that its layout depends on: the roles of its tokens, and its brackets.
pub(super) struct Structure {
    /// The roles of the tokens, one per token.
    pub(super) roles: Vec<Role>,
    /// The brackets of the text, in the order of their opening.
    pub(super) brackets: Vec<Bracket>,
}

/// A bracket that is not closed yet.
#[derive(Clone, Copy, Debug)]
struct Open {
    /// The index of the bracket.
    bracket: usize,
    /// The index of the token that opens the bracket.
    start: usize,
    /// True if the bracket contains arguments of a call.
    is_call: bool,
}

/// An expression that is being scanned: the part of a bracket or statement between two separators.
#[derive(Debug)]
struct Chain {
    /// The index of the expression's first token.
    start: usize,
    /// The precedence level of the operators in the expression that bind least.
    level: Level,
    /// The indices of the operators with that level.
    joints: Vec<usize>,
}

impl Chain {
    fn new(start: usize) -> Chain {
        Chain { start, level: Level::MAX, joints: Vec::new() }
    }

    /// Adds to the expression an operator with the precedence `level`. `operator` is its token's index; `None` if no
    /// line may begin before it.
    fn join(&mut self, level: Level, operator: Option<usize>) {
        if level < self.level {
            self.level = level;
            self.joints.clear();
        }
        if level == self.level {
            self.joints.extend(operator);
        }
    }
}

/// Scans a text for its structure.
struct Scan<'t, 's> {
    tokens: &'t Tokens<'s>,
    roles: Vec<Role>,
    brackets: Vec<Bracket>,
    open: Vec<Open>,
    /// The expressions that are being scanned: one outside of brackets, and one per open bracket.
    chains: Vec<Chain>,
    /// For each local name whose value is being scanned, the number of brackets that were open at its `let`.
    lets: Vec<usize>,
    /// True after a complete operand.
    behind_operand: bool,
    /// True from the beginning of a test to its first brace.
    in_test_head: bool,
    /// True inside of a test.
    in_test: bool,
}

impl Structure {
    pub(super) fn of(tokens: &Tokens<'_>) -> Structure {
        let mut scan = Scan {
            tokens,
            roles: Vec::with_capacity(tokens.len()),
            brackets: Vec::new(),
            open: Vec::new(),
            chains: vec![Chain::new(0)],
            lets: Vec::new(),
            behind_operand: false,
            in_test_head: false,
            in_test: false,
        };
        for index in 0..tokens.len() {
            scan.token(index);
        }
        Structure { roles: scan.roles, brackets: scan.brackets }
    }
}

impl Scan<'_, '_> {
    fn token(&mut self, index: usize) {
        let kind = self.tokens.kind(index);
        let before = index.checked_sub(1).map(|before| self.tokens.kind(before));
        let begins = self.begins_statement(index, before);
        if begins {
            self.begin_chain(index);
            self.lets.clear();
            self.behind_operand = false;
            let word = self.statement_word(index);
            (self.in_test, self.in_test_head) = (word == Some(TEST), word == Some(TEST));
        }
        let is_name = kind.is_word()
            && (before == Some(TokenKind::Dot) || self.tokens.kind(index + 1) == TokenKind::Colon && !begins);
        let mut role = Role { begins_statement: begins, is_name, ..Role::default() };
        let (inside, opened) = (self.open.last().copied(), self.open.len());
        role.begins_row = self.begins_row(index, before);
        self.behind_operand &= !role.begins_row;
        let was_behind_operand = std::mem::replace(&mut self.behind_operand, false);
        match kind {
            _ if is_name => self.behind_operand = true,
            TokenKind::Word => {
                let text = self.tokens.text(index);
                if was_behind_operand && text == IN {
                    role.binds = self.lets.pop_if(|depth| *depth == self.open.len()).is_some();
                } else {
                    self.behind_operand = !begins || self.statement_word(index).is_none();
                }
            }
            // Part of `not in`.
            TokenKind::Not => self.behind_operand = was_behind_operand,
            TokenKind::Let if !begins => self.lets.push(self.open.len()),
            TokenKind::Comma => role.touches_before = true,
            TokenKind::Semicolon => {
                role.touches_before = true;
                role.is_dropped = self.is_needless(index);
            }
            TokenKind::Colon => role.touches_before = true,
            TokenKind::Question => (role.touches_before, self.behind_operand) = (true, true),
            TokenKind::Dot | TokenKind::DotDot => (role.touches_before, role.touches_behind) = (true, true),
            TokenKind::Greater => {
                // The end of an arrow: `=>` or `->`.
                role.touches_before = matches!(before, Some(TokenKind::Equals | TokenKind::Minus));
            }
            TokenKind::Plus | TokenKind::Minus => role.touches_behind = !was_behind_operand,
            TokenKind::Equals if self.names_argument(index) => {
                (role.touches_before, role.touches_behind) = (true, true);
            }
            // The end of an assignment sign such as `+=`.
            TokenKind::Equals if self.tokens.gap(index).is_empty() => {
                role.touches_before = matches!(before, Some(TokenKind::Plus | TokenKind::Minus | TokenKind::Star));
            }
            TokenKind::Text => {
                self.behind_operand = true;
                role.touches_before = before == Some(TokenKind::Type) && self.tokens.gap(index).is_empty();
            }
            TokenKind::OpenRound | TokenKind::OpenSquare | TokenKind::OpenCurly => {
                self.open_bracket(index, was_behind_operand, &mut role);
            }
            TokenKind::CloseRound | TokenKind::CloseSquare | TokenKind::CloseCurly => {
                self.behind_operand = true;
                role.touches_before = self.close_bracket(index);
            }
            TokenKind::Type | TokenKind::Number | TokenKind::Bytes => self.behind_operand = true,
            TokenKind::True | TokenKind::False | TokenKind::Present | TokenKind::Missing => self.behind_operand = true,
            TokenKind::Inf | TokenKind::Nan => self.behind_operand = true,
            _ => {}
        }
        if let Some(open) = inside {
            let is_mark = kind == TokenKind::Comma || self.open.len() != opened;
            if self.brackets[open.bracket].kind == BracketKind::Raw && !is_mark {
                (role.touches_before, role.touches_behind) = (false, false);
            }
            self.note_in_bracket(open, index, role);
        }
        self.note_in_chain(index, role, was_behind_operand);
        self.roles.push(role);
    }

    /// Records the effect of a token on the expression around it, which the token may end.
    fn note_in_chain(&mut self, index: usize, role: Role, behind_operand: bool) {
        let (kind, next) = (self.tokens.kind(index), self.tokens.at(index + 1));
        match kind {
            _ if role.is_name => {}
            TokenKind::Word if role.binds => self.begin_chain(index + 1),
            TokenKind::Comma | TokenKind::Semicolon | TokenKind::Colon | TokenKind::Equals | TokenKind::End => {
                self.begin_chain(index + 1);
            }
            TokenKind::If | TokenKind::Then | TokenKind::Else | TokenKind::Let => self.begin_chain(index + 1),
            TokenKind::Word if behind_operand && self.tokens.text(index) == IN => self.join(COMPARISON, None),
            _ if behind_operand && let Some(operation) = Operation::infix(kind) => {
                // The beginning or the end of an arrow, or of a sign such as `+=`.
                let is_sign = matches!(next.kind, TokenKind::Greater | TokenKind::Equals) || role.touches_before;
                if !is_sign {
                    // An operator at the end of a line: the expression is not broken before it.
                    self.join(operation.level(), Some(index).filter(|_| !next.first_on_line));
                }
            }
            _ => {}
        }
    }

    fn join(&mut self, level: Level, operator: Option<usize>) {
        if let Some(chain) = self.chains.last_mut() {
            chain.join(level, operator);
        }
    }

    /// Ends the innermost expression, and begins another one in its place.
    fn begin_chain(&mut self, start: usize) {
        if let Some(chain) = self.chains.pop() {
            self.end_chain(&chain);
        }
        self.chains.push(Chain::new(start));
    }

    fn end_chain(&mut self, chain: &Chain) {
        if !chain.joints.is_empty() {
            self.roles[chain.start].begins_chain = true;
            chain.joints.iter().for_each(|joint| self.roles[*joint].is_joint = true);
        }
    }

    /// Returns true if a statement begins at a token.
    fn begins_statement(&self, index: usize, before: Option<TokenKind>) -> bool {
        if !self.open.is_empty() {
            return false;
        }
        if before.is_none_or(|before| before == TokenKind::Semicolon) {
            return true;
        }
        let token = self.tokens.at(index);
        let goes_on = Operation::infix(token.kind).is_some()
            || match token.kind {
                TokenKind::Then | TokenKind::Else | TokenKind::Equals | TokenKind::Colon | TokenKind::Comma => true,
                TokenKind::Dot | TokenKind::DotDot | TokenKind::Question | TokenKind::Semicolon => true,
                TokenKind::Word => self.tokens.text(index) == IN && !self.lets.is_empty(),
                _ => self.in_test_head,
            };
        token.kind != TokenKind::End && token.first_on_line && self.behind_operand && !goes_on
    }

    /// Returns true if a case of a table of tests, or the table's line of names, begins at the token `index`.
    fn begins_row(&self, index: usize, before: Option<TokenKind>) -> bool {
        let Some(Open { bracket, start, .. }) = self.open.last().copied() else { return false };
        if self.brackets[bracket].kind != BracketKind::Table {
            return false;
        }
        let (first, token) = (start + 1, self.tokens.at(index));
        let may_begin = match token.kind {
            TokenKind::Comma | TokenKind::Semicolon => false,
            // A case without inputs begins with its arrow.
            TokenKind::Equals => self.tokens.kind(first) == TokenKind::Equals,
            _ => true,
        };
        match before {
            Some(TokenKind::Semicolon) => true,
            Some(TokenKind::Comma | TokenKind::Greater) => false,
            _ => index == first || token.first_on_line && may_begin,
        }
    }

    /// Returns the first word of a statement, if it is one that is a keyword only because of the next token; `None` otherwise.
    fn statement_word(&self, index: usize) -> Option<&'static str> {
        self.word_before(index, index + 1)
    }

    /// Returns the word at `index` if it is a keyword because of the token at `next`; `None` otherwise.
    fn word_before(&self, index: usize, next: usize) -> Option<&'static str> {
        let of = (self.tokens.text(index), self.tokens.kind(next));
        let words = [
            (TEST, TokenKind::Text),
            (USE, TokenKind::Text),
            (TABLE, TokenKind::Word),
            (EXTERN, TokenKind::Fn),
            (NUMBERS, TokenKind::Type),
            (TILE, TokenKind::Word),
        ];
        words.into_iter().find(|known| *known == of).map(|(word, _)| word)
    }

    /// Returns true for a `;` that can be removed, because the next line does not continue the statement.
    fn is_needless(&self, index: usize) -> bool {
        let next = self.tokens.kind(index + 1);
        let is_literal = matches!(next, TokenKind::Number | TokenKind::Text | TokenKind::Bytes | TokenKind::Type)
            || matches!(next, TokenKind::True | TokenKind::False | TokenKind::Present | TokenKind::Missing)
            || matches!(next, TokenKind::Inf | TokenKind::Nan | TokenKind::CloseCurly | TokenKind::Semicolon);
        if !self.open.is_empty() || next == TokenKind::Semicolon {
            return is_literal;
        }
        // Such a word alone is a name. Before certain tokens it would begin another statement.
        let word = (0..index).rev().find(|before| self.tokens.kind(*before) != TokenKind::Semicolon);
        if word.is_some_and(|word| self.word_before(word, index + 1).is_some()) {
            return false;
        }
        match next {
            TokenKind::Word => self.tokens.text(index + 1) != IN,
            TokenKind::Input | TokenKind::Let | TokenKind::Fn | TokenKind::Output => true,
            TokenKind::If | TokenKind::Not => true,
            TokenKind::OpenRound | TokenKind::OpenSquare | TokenKind::OpenCurly | TokenKind::End => true,
            _ => is_literal,
        }
    }

    /// Returns true for the `=` after the name of an argument.
    fn names_argument(&self, index: usize) -> bool {
        let Some(Open { is_call: true, start, .. }) = self.open.last().copied() else { return false };
        let (Some(name), Some(before)) = (index.checked_sub(1), index.checked_sub(2)) else { return false };
        self.tokens.kind(name) == TokenKind::Word
            && (before == start || self.tokens.kind(before) == TokenKind::Comma)
            && self.tokens.kind(index + 1) != TokenKind::Greater
    }

    /// Returns true for a bracket after `[T?]`.
    fn follows_array_type(&self, index: usize) -> bool {
        let kinds = [TokenKind::OpenSquare, TokenKind::Type, TokenKind::Question, TokenKind::CloseSquare];
        index
            .checked_sub(kinds.len())
            .is_some_and(|first| (first..).zip(kinds).all(|(at, kind)| self.tokens.kind(at) == kind))
    }

    fn open_bracket(&mut self, index: usize, behind_operand: bool, role: &mut Role) {
        let before = index.checked_sub(1);
        let (kind_before, text_before) = match before {
            Some(before) => (self.tokens.kind(before), self.tokens.text(before)),
            None => (TokenKind::End, ""),
        };
        let is_near = self.tokens.gap(index).is_empty();
        let kind = self.tokens.kind(index);
        let mut of = BracketKind::Plain;
        let mut is_call = false;
        if kind == TokenKind::OpenCurly {
            let is_tuple = ["TUPLE", "NAMEDTUPLE", DICT_WORD].iter().any(|name| text_before.eq_ignore_ascii_case(name));
            let follows_type = match kind_before {
                TokenKind::Type | TokenKind::Question | TokenKind::CloseSquare => true,
                TokenKind::Word => is_near,
                _ => false,
            };
            role.touches_before = follows_type && behind_operand;
            of = match kind_before {
                _ if self.open.is_empty() && self.in_test => {
                    let next = [1, 2, 3].map(|ahead| self.tokens.kind(index + ahead));
                    if self.in_test_head && begins_table(next) { BracketKind::Table } else { BracketKind::Case }
                }
                TokenKind::Type | TokenKind::Question | TokenKind::Word if follows_type && !is_tuple => {
                    BracketKind::Raw
                }
                TokenKind::CloseSquare if role.touches_before && self.follows_array_type(index) => BracketKind::Raw,
                _ => BracketKind::Plain,
            };
            if of == BracketKind::Case || of == BracketKind::Table {
                (role.touches_before, self.in_test_head) = (false, false);
            }
        } else {
            role.touches_before = behind_operand || kind_before == TokenKind::Fn;
            is_call = kind == TokenKind::OpenRound && role.touches_before;
        }
        role.touches_behind = of != BracketKind::Case;
        self.chains.push(Chain::new(index + 1));
        self.open.push(Open { bracket: self.brackets.len(), start: index, is_call });
        self.brackets.push(Bracket {
            kind: of,
            open: index,
            close: self.tokens.len(),
            commas: 0,
            begins_line: false,
            has_comment: false,
            has_line_end: false,
            is_filled: kind == TokenKind::OpenSquare && !role.touches_before,
        });
    }

    /// Closes a bracket at the token `index`. Returns true if no blank is written before this token.
    fn close_bracket(&mut self, index: usize) -> bool {
        let Some(Open { bracket, start, .. }) = self.open.pop() else { return true };
        if let Some(chain) = self.chains.pop() {
            self.end_chain(&chain);
        }
        while self.lets.pop_if(|depth| *depth > self.open.len()).is_some() {}
        let bracket = &mut self.brackets[bracket];
        bracket.close = index;
        bracket.kind != BracketKind::Case || start + 1 == index
    }

    /// Records the effect of the token `index` on the bracket `open` that contains it. The token may also be the closing bracket.
    fn note_in_bracket(&mut self, open: Open, index: usize, role: Role) {
        let (token, before) = (self.tokens.at(index), self.tokens.kind(index - 1));
        let has_comment = self.tokens.has_comment_before(index);
        let is_first = open.start + 1 == index;
        let closes = matches!(token.kind, TokenKind::CloseRound | TokenKind::CloseSquare | TokenKind::CloseCurly);
        let is_short = match token.kind {
            TokenKind::Comma => true,
            TokenKind::Plus | TokenKind::Minus => is_first || before == TokenKind::Comma,
            TokenKind::Number | TokenKind::Text | TokenKind::Bytes => self.tokens.width(index, SHORT + 1) <= SHORT,
            TokenKind::True | TokenKind::False | TokenKind::Missing | TokenKind::Inf | TokenKind::Nan => true,
            _ => closes,
        };
        let touches = role.touches_before || self.roles[index - 1].touches_behind;
        let bracket = &mut self.brackets[open.bracket];
        bracket.is_filled &= is_short && !has_comment;
        bracket.commas += usize::from(token.kind == TokenKind::Comma);
        if is_first || closes || token.kind == TokenKind::Comma || before == TokenKind::Comma {
            bracket.has_comment |= has_comment;
            bracket.begins_line |= is_first && !closes && token.first_on_line;
        } else {
            bracket.has_line_end |= token.first_on_line && (has_comment || !touches);
        }
    }
}
