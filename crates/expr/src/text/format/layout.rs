//! Decides the layout of a formatted text: which tokens begin a line, the indentation of each line, and the blanks between tokens of a line.
//!
//! Outside of brackets, and between the cases of a table, a line end may end a statement or a case, so the line ends of the source are kept. There
//! are two exceptions: a `;` is replaced by a line end where that is possible, and a line may be broken before a `then`, an `else` or an operator,
//! which continue the statement. Inside of brackets, line ends have no meaning. A bracket is broken, with one line per operand, if it was broken in
//! the source or is too long; the other line ends in the bracket are kept. A conditional that is too long is broken before each `else`, and before a
//! `then` whose line would still be too long. Only if that does not suffice, brackets inside of the conditional are broken. Any other expression that
//! is too long is broken before the operators that bind least.

use super::lines::Lines;
use super::structure::{Bracket, BracketKind, Structure};
use super::tokens::{Piece, Tokens, next_piece};
use crate::text::token::TokenKind;

/// The most columns of a line before it is broken.
const MOST: usize = 100;

/// The number of columns of one indentation step.
const STEP: usize = 4;

/// The layout of a bracket: on one line, on several lines, or unchanged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mode {
    /// The bracket stays on the line where it begins, as far as possible.
    Flat,
    /// The bracket is written on several lines, one per operand.
    Broken,
    /// The content of the bracket is written between the lines of its brackets, as many operands on each line as fit.
    Filled,
    /// The bracket is written as in the source.
    Raw,
    /// The bracket is a table of test cases, written on several lines, one per case.
    Table,
}

/// A bracket that is open while the layout is written: its layout, and the indentation of its lines.
#[derive(Clone, Copy, Debug)]
struct Frame {
    bracket: Bracket,
    mode: Mode,
    /// The indentation of the line where the bracket begins.
    indentation: usize,
    /// The number of conditions that were begun before the bracket and are not complete.
    begun: usize,
    /// True if the current expression (chain of operators) in the bracket is broken before its operators, up to the next line end of the source.
    breaks_chain: bool,
}

impl Frame {
    /// Returns the indentation of the lines after the first line of an operand.
    fn going_on(&self) -> usize {
        let is_deep = self.mode == Mode::Table || self.mode == Mode::Broken && self.bracket.commas > 0;
        self.indentation + if is_deep { 2 * STEP } else { STEP }
    }
}

/// The part of a condition that is being written, or the value of a local name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Construct {
    Condition,
    Then,
    Else,
    Local,
}

/// A condition, or the value of a local name, that was begun.
#[derive(Clone, Copy, Debug)]
struct OpenCondition {
    part: Construct,
    /// The indentation of lines that begin with a keyword (`then`, `else`, `in`) of the condition or local name.
    indentation: usize,
    /// True if each `else` begins a line, because the condition is too long for one line.
    is_broken: bool,
}

/// A range of tokens for which the layout tests whether it fits on a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum FitRange {
    /// The range begins with a bracket, and ends where a line may end. The line may end within one of these tokens if that is a bracket or
    /// expression that may be broken itself.
    Bracket,
    /// The range is a condition from its `if` on, and the tokens after it. If it is too long, the condition is broken first, and only then brackets
    /// in it.
    Condition,
    /// The range is a branch of a condition, from its `then` to the `else`.
    Branch,
    /// The range is an expression, and the tokens after it up to the next condition. If it is too long, the expression is broken before its
    /// operators, and only then inside of brackets.
    Chain,
}

/// The white space before a token.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Before<'s> {
    /// The token begins a new line. With `may_be_apart`, the line may follow an empty line.
    Line { indentation: usize, may_be_apart: bool },
    /// The token is on the same line after these blanks, which may be empty.
    Blank(&'s str),
}

/// Writes a text in its canonical layout, token by token: it decides which tokens begin a line, the indentation, and the blanks.
pub(super) struct Layout<'t, 's> {
    tokens: &'t Tokens<'s>,
    structure: &'t Structure,
    lines: Lines,
    frames: Vec<Frame>,
    begun: Vec<OpenCondition>,
    /// The value of [`Frame::breaks_chain`] outside of brackets.
    breaks_chain: bool,
    /// True if the current line has only closing brackets so far.
    is_closing_line: bool,
    /// The index, among the brackets of the text, of the bracket that opens next.
    next_bracket: usize,
    /// The index of the token that was written last; `None` before the first.
    last: Option<usize>,
    /// The index of the first token whose preceding comments and line ends are not written yet.
    pending: usize,
}

impl<'t, 's> Layout<'t, 's> {
    pub(super) fn new(tokens: &'t Tokens<'s>, structure: &'t Structure) -> Self {
        Layout {
            tokens,
            structure,
            lines: Lines::default(),
            frames: Vec::new(),
            begun: Vec::new(),
            breaks_chain: false,
            is_closing_line: false,
            next_bracket: 0,
            last: None,
            pending: 0,
        }
    }

    /// Returns the whole text in its canonical layout.
    pub(super) fn run(mut self) -> String {
        for index in 0..self.tokens.len() {
            match self.tokens.kind(index) {
                TokenKind::Semicolon if self.structure.roles[index].is_dropped => {}
                // Commas and semicolons are written before the comments in front of them.
                TokenKind::Comma | TokenKind::Semicolon => {
                    self.lines.write(self.tokens.text(index));
                    self.begun.truncate(self.begun_outside());
                    self.last = Some(index);
                }
                TokenKind::End => self.end(index),
                kind => self.token(index, kind),
            }
        }
        self.lines.finish()
    }

    fn token(&mut self, index: usize, kind: TokenKind) {
        let role = self.structure.roles[index];
        if role.begins_statement {
            self.begun.clear();
        }
        let word = self.word(index);
        self.close_conditions(word, role.binds);
        let before = self.before(index);
        let is_line = self.lines.is_empty() || matches!(before, Before::Line { .. });
        self.write_before(index, before);
        let closes = matches!(kind, TokenKind::CloseRound | TokenKind::CloseSquare | TokenKind::CloseCurly);
        self.is_closing_line = closes && (is_line || self.is_closing_line);
        if role.begins_chain || is_line && self.tokens.at(index).first_on_line && !closes {
            self.begin_chain(index);
        }
        match kind {
            TokenKind::OpenRound | TokenKind::OpenSquare | TokenKind::OpenCurly => self.open(index),
            TokenKind::CloseRound | TokenKind::CloseSquare | TokenKind::CloseCurly => {
                if let Some(frame) = self.frames.pop() {
                    self.begun.truncate(frame.begun);
                }
            }
            _ => {}
        }
        self.begin_conditions(index, word, is_line);
        self.lines.write(self.tokens.text(index));
        self.last = Some(index);
    }

    /// Decides whether the expression that begins or continues at a token is broken before its operators.
    fn begin_chain(&mut self, index: usize) {
        let breaks = self.may_break_chain(self.frames.len()) && !self.fits(index, FitRange::Chain);
        self.set_chain_broken(breaks);
    }

    /// Returns true if an expression inside of the first `brackets` open brackets may be broken before its operators.
    fn may_break_chain(&self, brackets: usize) -> bool {
        let Some(Frame { mode, bracket, .. }) = brackets.checked_sub(1).map(|at| self.frames[at]) else { return true };
        let may_break = match mode {
            // The elements of a broken bracket have lines of their own; a bracket around one expression keeps its line ends.
            Mode::Broken => true,
            Mode::Flat => bracket.commas == 0 && !self.structure.roles[bracket.open].touches_before,
            Mode::Filled | Mode::Raw | Mode::Table => false,
        };
        may_break && !self.in_table()
    }

    fn set_chain_broken(&mut self, breaks: bool) {
        match self.frames.last_mut() {
            Some(frame) => frame.breaks_chain = breaks,
            None => self.breaks_chain = breaks,
        }
    }

    /// Returns true if the innermost expression is broken before its operators.
    fn is_chain_broken(&self) -> bool {
        self.frames.last().map_or(self.breaks_chain, |frame| frame.breaks_chain)
    }

    /// Returns true if a line begins with an operator because its expression is too long. After a closing bracket on a line of its own, the operator
    /// stays on that line.
    fn breaks_chain(&self, index: usize) -> bool {
        self.is_chain_broken() && self.structure.roles[index].is_joint && !self.is_closing_line
    }

    /// Returns true if the current place is in a table of cases.
    fn in_table(&self) -> bool {
        self.frames.first().is_some_and(|frame| frame.mode == Mode::Table)
    }

    /// The number of conditions that were begun outside of the innermost bracket.
    fn begun_outside(&self) -> usize {
        self.frames.last().map_or(0, |frame| frame.begun)
    }

    /// Returns the kind of a token in its context: a reserved word that is used as a name is a `Word`.
    fn word(&self, index: usize) -> TokenKind {
        if self.structure.roles[index].is_name { TokenKind::Word } else { self.tokens.kind(index) }
    }

    /// Returns the innermost condition that was begun in the innermost bracket.
    fn innermost(&mut self) -> Option<&mut OpenCondition> {
        let outside = self.begun_outside();
        self.begun.get_mut(outside..).and_then(<[OpenCondition]>::last_mut)
    }

    /// Ends the conditions that the keyword `word` ends, and advances the condition that the keyword belongs to.
    fn close_conditions(&mut self, word: TokenKind, binds: bool) {
        let belongs: fn(Construct) -> bool = match word {
            TokenKind::Then => |part| part == Construct::Condition,
            TokenKind::Else => |part| part == Construct::Then,
            _ if binds => |part| part == Construct::Local,
            _ => return,
        };
        while self.innermost().is_some_and(|begun| !belongs(begun.part)) {
            self.begun.pop();
        }
        if binds && self.innermost().is_some() {
            self.begun.pop();
        }
    }

    /// Records that the keyword `word` begins a condition, or a part of a condition.
    fn begin_conditions(&mut self, index: usize, word: TokenKind, is_line: bool) {
        let begins_statement = self.structure.roles[index].begins_statement;
        if word == TokenKind::If {
            // The condition is a different expression from the one before it.
            self.set_chain_broken(false);
        }
        // A bracket with several operands that is not broken now would be, if a line ended in it.
        let may_break = self.frames.last().is_none_or(|frame| match frame.mode {
            Mode::Broken => true,
            Mode::Flat => frame.bracket.commas == 0,
            Mode::Filled | Mode::Raw | Mode::Table => false,
        });
        let is_too_long = word == TokenKind::If && may_break && !self.fits(index, FitRange::Condition);
        let indentation = self.lines.indentation + if is_line { 0 } else { STEP };
        let follows_else = self.last.is_some_and(|last| self.tokens.kind(last) == TokenKind::Else) && !is_line;
        match (word, self.innermost()) {
            (TokenKind::If, Some(begun)) if follows_else && begun.part == Construct::Else => {
                begun.part = Construct::Condition;
                begun.is_broken |= is_too_long;
            }
            (TokenKind::If, _) => {
                self.begun.push(OpenCondition { part: Construct::Condition, indentation, is_broken: is_too_long });
            }
            (TokenKind::Then, Some(begun)) => begun.part = Construct::Then,
            (TokenKind::Else, Some(begun)) => begun.part = Construct::Else,
            (TokenKind::Let, _) if !begins_statement => {
                let indentation = self.going_on(TokenKind::Let);
                self.begun.push(OpenCondition { part: Construct::Local, indentation, is_broken: false });
            }
            _ => {}
        }
    }

    /// Returns the indentation of a line that begins with the keyword `word` and continues a condition.
    fn going_on(&mut self, word: TokenKind) -> usize {
        let base = self.frames.last().map_or(STEP, Frame::going_on);
        match self.innermost() {
            None => base,
            Some(OpenCondition { part: Construct::Local, indentation, .. }) => *indentation,
            Some(begun) if matches!(word, TokenKind::Then | TokenKind::Else) => begun.indentation,
            Some(begun) => begun.indentation + STEP,
        }
    }

    /// Returns true if a line begins with the token at `index` because the condition around it is too long for one line.
    fn breaks_condition(&mut self, index: usize, word: TokenKind) -> bool {
        let is_broken = self.innermost().is_some_and(|begun| begun.is_broken);
        match word {
            TokenKind::Else => is_broken,
            TokenKind::Then => is_broken && (self.is_chain_broken() || !self.fits(index, FitRange::Branch)),
            _ => false,
        }
    }

    /// Returns the white space before a token.
    fn before(&mut self, index: usize) -> Before<'s> {
        let Some(last) = self.last else { return Before::Blank("") };
        let role = self.structure.roles[index];
        let line = |indentation| Before::Line { indentation, may_be_apart: true };
        let word = self.word(index);
        let begins_line =
            self.tokens.at(index).first_on_line || self.breaks_condition(index, word) || self.breaks_chain(index);
        let Some(frame) = self.frames.last().copied() else {
            return match role.begins_statement {
                true => line(0),
                false if begins_line => line(self.going_on(word)),
                false => self.on_line(last, index, false),
            };
        };
        let (is_first, closes) = (last == frame.bracket.open, index == frame.bracket.close);
        let behind_comma = self.tokens.kind(last) == TokenKind::Comma;
        let is_empty = is_first && closes && !self.tokens.has_comment_before(index);
        match frame.mode {
            _ if is_empty => Before::Blank(""),
            Mode::Broken | Mode::Filled | Mode::Table if closes => line(frame.indentation),
            Mode::Broken | Mode::Filled | Mode::Table if is_first => line(frame.indentation + STEP),
            Mode::Broken if behind_comma => line(frame.indentation + STEP),
            Mode::Filled if behind_comma && !self.fills(index) => {
                Before::Line { indentation: frame.indentation + STEP, may_be_apart: false }
            }
            Mode::Table if role.begins_row => line(frame.indentation + STEP),
            Mode::Table if begins_line => line(frame.going_on()),
            Mode::Raw if begins_line => line(if closes { frame.indentation } else { frame.going_on() }),
            Mode::Flat | Mode::Broken
                if begins_line && !is_first && !closes && !behind_comma && !self.touches(last, index) =>
            {
                line(self.going_on(word))
            }
            mode => self.on_line(last, index, mode == Mode::Raw),
        }
    }

    fn touches(&self, last: usize, index: usize) -> bool {
        self.structure.roles[index].touches_before || self.structure.roles[last].touches_behind
    }

    /// Returns the blanks between two tokens of one line.
    fn on_line(&self, last: usize, index: usize, is_raw: bool) -> Before<'s> {
        let is_comma = |index| self.tokens.kind(index) == TokenKind::Comma;
        if is_raw && !self.touches(last, index) && !is_comma(last) {
            // Blanks may have a meaning here.
            return Before::Blank(self.tokens.gap(index).trim_matches(['\r', '\n']));
        }
        Before::Blank(if self.touches(last, index) && self.tokens.may_touch(last, index) { "" } else { " " })
    }

    /// Writes the white space and comments before a token.
    fn write_before(&mut self, index: usize, before: Before<'s>) {
        let frame = self.frames.last().copied();
        let closes = frame.is_some_and(|frame| frame.bracket.close == index);
        let is_first = frame.is_some_and(|frame| Some(frame.bracket.open) == self.last);
        let of_comments = match before {
            Before::Line { indentation, .. } => indentation + if closes { STEP } else { 0 },
            Before::Blank(_) if self.last.is_none() => 0,
            Before::Blank(_) => self.going_on(TokenKind::Word),
        };
        let may_be_apart = !matches!(before, Before::Line { may_be_apart: false, .. });
        let (ends, has_comment) = self.write_comments(index, of_comments, may_be_apart && !is_first);
        let is_apart = ends > 1 && may_be_apart && !closes && (has_comment || !is_first);
        match before {
            Before::Line { indentation, .. } => self.lines.begin(indentation, is_apart),
            Before::Blank(_) if has_comment => self.lines.begin(of_comments, is_apart),
            Before::Blank(_) if self.lines.is_empty() => {}
            Before::Blank(blank) => {
                self.lines.write(blank);
                self.lines.blanks(self.structure.roles[index].padding.into());
            }
        }
    }

    /// Writes the comments before a token. Returns the number of line ends after the last one, and whether there was a comment.
    fn write_comments(&mut self, index: usize, indentation: usize, may_be_apart: bool) -> (usize, bool) {
        let mut ends = usize::from(self.lines.is_empty());
        let mut has_comment = false;
        for gap in self.pending..=index {
            // A token that was dropped may have been on a line of its own.
            ends = ends.min(1);
            let mut gap = self.tokens.gap(gap);
            while let Some(piece) = next_piece(&mut gap) {
                match piece {
                    Piece::Mark(_) | Piece::Blank(_) => {}
                    Piece::LineEnd(_) => ends += 1,
                    Piece::Comment(text) => {
                        let text = text.trim_end_matches([' ', '\t']);
                        if ends == 0 {
                            self.lines.end_with_comment(text);
                        } else {
                            if !self.lines.is_empty() {
                                self.lines.begin(indentation, ends > 1 && (may_be_apart || has_comment));
                            }
                            self.lines.write(text);
                        }
                        (ends, has_comment) = (0, true);
                    }
                }
            }
        }
        self.pending = index + 1;
        (ends, has_comment)
    }

    /// Writes the comments before the end of the text.
    fn end(&mut self, index: usize) {
        self.write_comments(index, 0, true);
    }

    /// Decides the layout of the bracket that the token at `index` opens.
    fn open(&mut self, index: usize) {
        let bracket = self.structure.brackets[self.next_bracket];
        // The rows of a table keep their lines, so that the columns stay aligned.
        let in_table = self.in_table();
        let mode = match bracket.kind {
            BracketKind::Raw => Mode::Raw,
            BracketKind::Table => Mode::Table,
            BracketKind::Plain | BracketKind::Case => {
                let is_broken =
                    bracket.is_broken() || bracket.may_break() && !in_table && !self.fits(index, FitRange::Bracket);
                match is_broken {
                    true if bracket.is_filled && bracket.commas > 0 => Mode::Filled,
                    true => Mode::Broken,
                    false => Mode::Flat,
                }
            }
        };
        self.next_bracket += 1;
        let indentation = self.lines.indentation;
        self.frames.push(Frame { bracket, mode, indentation, begun: self.begun.len(), breaks_chain: false });
    }

    /// Returns true if the tokens from `open` fit on the line, up to the next place where a line may end.
    fn fits(&self, open: usize, stretch: FitRange) -> bool {
        // A `then` follows a blank, which is not written yet.
        let mut column = self.lines.column + usize::from(stretch == FitRange::Branch);
        let mut next_bracket = self.next_bracket;
        // The conditions of the same bracket whose `else` is still to come: those begun before, the innermost last, and those from here on.
        let begun = self.begun.get(self.begun_outside()..).unwrap_or_default().iter();
        let mut begun =
            begun.rev().filter(|begun| matches!(begun.part, Construct::Condition | Construct::Then)).peekable();
        let follows_else = open.checked_sub(1).is_some_and(|before| self.word(before) == TokenKind::Else);
        let mut own = usize::from(self.word(open) == TokenKind::If && !follows_else);
        // The brackets opened since `open`, and the number of earlier brackets that closed.
        let mut inside: Vec<Bracket> = Vec::new();
        let mut outside = self.frames.len();
        // True if it is not yet decided whether the current expression is broken before its operators.
        let mut is_open_chain = stretch == FitRange::Chain;
        for index in open..self.tokens.len() {
            let token = self.tokens.at(index);
            if index > open && inside.is_empty() {
                let role = self.structure.roles[index];
                is_open_chain |= role.begins_chain;
                let around = outside.checked_sub(1).map_or(self.breaks_chain, |at| self.frames[at].breaks_chain);
                let ends = match is_open_chain {
                    true => stretch == FitRange::Bracket && self.may_break_chain(outside),
                    false => around,
                };
                if role.is_joint && ends {
                    return true;
                }
            }
            if index > open && inside.is_empty() && outside == self.frames.len() {
                let goes_on = self.tokens.kind(index + 1) == TokenKind::If;
                match self.word(index) {
                    TokenKind::If if stretch == FitRange::Chain => return true,
                    TokenKind::Then if stretch == FitRange::Chain && self.in_broken_condition() => return true,
                    TokenKind::If if self.word(index - 1) != TokenKind::Else => own += 1,
                    TokenKind::Else if own > 0 => own -= usize::from(!goes_on),
                    TokenKind::Else if stretch == FitRange::Branch => return true,
                    TokenKind::Else => {
                        let of = if goes_on { begun.peek().copied() } else { begun.next() };
                        if of.is_some_and(|begun| begun.is_broken) {
                            return true;
                        }
                    }
                    _ => {}
                }
            }
            if index > open {
                let around = outside.checked_sub(1).map(|outside| self.frames[outside]);
                let mode = match (inside.last(), around) {
                    (Some(bracket), _) if bracket.kind == BracketKind::Raw => Some(Mode::Raw),
                    (Some(_), _) => Some(Mode::Flat),
                    (None, around) => around.map(|frame| frame.mode),
                };
                let close = inside.last().copied().or(around.map(|frame| frame.bracket)).map(|bracket| bracket.close);
                if self.ends_line(index, mode, close == Some(index)) {
                    return true;
                }
                let Before::Blank(blank) = self.on_line(index - 1, index, mode == Some(Mode::Raw)) else { return true };
                column += blank.chars().count();
            }
            column += self.tokens.width(index, MOST + 1);
            if column > MOST {
                return false;
            }
            match token.kind {
                TokenKind::OpenRound | TokenKind::OpenSquare | TokenKind::OpenCurly => {
                    let bracket = self.structure.brackets[next_bracket];
                    next_bracket += 1;
                    let is_other = index > open || stretch == FitRange::Chain;
                    let may_break = stretch == FitRange::Bracket && inside.is_empty() && bracket.may_break();
                    if is_other && (bracket.is_broken() || may_break) {
                        return true;
                    }
                    inside.push(bracket);
                }
                TokenKind::CloseRound | TokenKind::CloseSquare | TokenKind::CloseCurly if inside.pop().is_none() => {
                    (outside, is_open_chain) = (outside.saturating_sub(1), false);
                }
                _ => {}
            }
        }
        true
    }

    /// Returns true if the current place is in a condition of the innermost bracket that is too long for a line.
    fn in_broken_condition(&self) -> bool {
        let begun = self.begun.get(self.begun_outside()..).and_then(<[OpenCondition]>::last);
        begun.is_some_and(|begun| begun.is_broken)
    }

    /// Returns true if a line ends before a token. `mode` is the layout of its bracket; `None` outside of brackets.
    fn ends_line(&self, index: usize, mode: Option<Mode>, closes: bool) -> bool {
        let (token, before) = (self.tokens.at(index), self.tokens.kind(index - 1));
        if token.kind == TokenKind::End || self.structure.roles[index].begins_statement {
            return true;
        }
        if matches!(token.kind, TokenKind::Comma | TokenKind::Semicolon) {
            return false;
        }
        let has_comment = self.tokens.has_comment_before(index)
            || before == TokenKind::Comma && self.tokens.has_comment_before(index - 1);
        let behind_open = matches!(before, TokenKind::OpenRound | TokenKind::OpenSquare | TokenKind::OpenCurly);
        let between = closes || behind_open || before == TokenKind::Comma;
        has_comment
            || match mode {
                None | Some(Mode::Raw) => token.first_on_line,
                Some(Mode::Table) => token.first_on_line || closes,
                Some(Mode::Broken | Mode::Filled) if between => true,
                Some(Mode::Broken | Mode::Filled | Mode::Flat) => {
                    token.first_on_line && !between && !self.touches(index - 1, index)
                }
            }
    }

    /// Returns true if the element of a list that begins at the token `index` fits on the current line.
    fn fills(&self, index: usize) -> bool {
        let is_end = |index: &usize| matches!(self.tokens.kind(*index), TokenKind::Comma | TokenKind::CloseSquare);
        let end = (index..self.tokens.len()).find(is_end).unwrap_or(index);
        let width: usize = (index..=end).map(|index| self.tokens.width(index, MOST)).sum();
        self.lines.column + 1 + width <= MOST
    }
}
