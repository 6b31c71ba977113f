//! Membership tests: `x in [a, b]`, `x in a..b`, and `x in e` for an array, a dictionary or a table `e`. Each test may have `not in` in place of
//! `in`. Membership tests bind like comparisons. Inside of a local name's value (`let t = value in ..`) a test needs brackets, because `in` ends that
//! value.

use super::Parser;
use super::call::Target;
use super::expression::{Expect, Frame, Operand, Shape};
use crate::NodeId;
use crate::infix::{COMPARISON, IN, IN_RANGE, IN_VALUE, Operation};
use crate::text::cursor::Stop;
use crate::text::token::{Token, TokenKind};
use cembra_value::{Code, Diagnostic, Span};

/// The word before a list or a range. Everywhere else it is an ordinary word.
const WORD: &str = "in";

impl Parser<'_, '_> {
    fn is_word(&self, token: Token) -> bool {
        token.kind == TokenKind::Word && self.cursor.text(token.span) == WORD
    }

    /// Returns true at `in` or `not in` after an operand.
    pub(super) fn at_membership(&self) -> bool {
        let token = self.cursor.token;
        self.is_word(token) || token.kind == TokenKind::Not && self.is_word(self.cursor.peek())
    }

    /// Reads `in` or `not in`, and the opening bracket if a list follows.
    pub(super) fn begin_membership(&mut self) -> Result<Expect, Stop> {
        self.reduce(COMPARISON)?;
        if let Some(operand) = self.operands.last()
            && matches!(operand.shape, Shape::Compared(..))
        {
            let whole = operand.span.to(self.cursor.token.span);
            let problem = Diagnostic::new(Code::ChainedComparison, "a comparison cannot be compared again").at(whole);
            self.cursor.report(problem.hint("put the comparison in brackets: `(a == b) in ..`"));
        }
        let not = self.cursor.take(TokenKind::Not);
        self.cursor.advance();
        let open = self.cursor.token;
        if open.kind == TokenKind::OpenSquare && !self.cursor.at_array_literal() {
            self.cursor.open()?;
            self.frames.push(Frame::List { open: open.span, base: self.operands.len() - 1, not });
        } else {
            self.frames.push(Frame::Range { not, read: false });
        }
        Ok(Expect::Operand)
    }

    /// Reads the two dots of a range.
    pub(super) fn range(&mut self) -> Result<Expect, Stop> {
        self.reduce(COMPARISON + 1)?;
        match self.frames.last_mut() {
            Some(Frame::Range { read: read @ false, .. }) => {
                *read = true;
                self.cursor.advance();
                Ok(Expect::Operand)
            }
            _ => {
                let problem = self.cursor.describe_unexpected("an operator");
                Err(self.cursor.stop(problem.hint("write a range only after `in`, as in `x in 3..7`")))
            }
        }
    }

    /// Makes the node of the membership test `x in a..b` or `x in e`, whose range or value was read last.
    pub(super) fn complete_range(&mut self, not: bool, read: bool) -> Result<(), Stop> {
        // Without dots, the operand is an array, a dictionary or a table.
        let (form, operands) = if read { (IN_RANGE, 3) } else { (IN_VALUE, 2) };
        let (base, last) =
            (self.operands.len().saturating_sub(operands), self.operands.last().map(|operand| operand.span));
        let start = self.operands.get(base).map(|operand| operand.span);
        let span = start.zip(last).map_or(self.cursor.previous, |(start, last)| start.to(last));
        let made = self.make_of(form, base, span)?;
        let made = self.membership(made, not, last.unwrap_or(span))?;
        self.push(made);
        Ok(())
    }

    /// Makes the node of the membership test `x in [a, b]`, whose list ends with the bracket at `close`.
    pub(super) fn make_list(&mut self, open: Span, base: usize, not: bool, close: Span) -> Result<Operand, Stop> {
        let start = self.operands.get(base).map_or(open, |operand| operand.span);
        let made = self.make_of(IN, base, start.to(close))?;
        self.membership(made, not, open.to(close))
    }

    /// Returns a membership test, negated if `not`.
    fn membership(&mut self, made: Operand, not: bool, right: Span) -> Result<Operand, Stop> {
        let node: Option<NodeId> = match made.node.filter(|_| not) {
            Some(node) => {
                let name = self.operation_name(Operation::Not);
                Some(self.operator(name, &[node], made.span)?)
            }
            None => made.node,
        };
        Ok(Operand { shape: Shape::Compared(right, None), ..Operand::new(node, made.span) })
    }

    /// Returns true if the current token begins the argument of `operator` for the parameter at index `position`.
    pub(super) fn at_argument_of(&self, operator: &str, position: usize) -> bool {
        match self.frames.last() {
            Some(Frame::Call { target: Target::Operator(index), base, .. }) => {
                let callable = &self.operators[*index].0;
                let keyword = self.keywords.last().filter(|keyword| keyword.position == self.operands.len());
                let is_it = match keyword {
                    Some(keyword) => callable.params.get(position).is_some_and(|param| param.name == keyword.name),
                    None => self.operands.len() == base + position,
                };
                callable.name == operator && is_it
            }
            _ => false,
        }
    }
}
