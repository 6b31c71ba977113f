//! Blocks, in texts with tensors: `a("i,j").block([0, 0], [2, 3])` selects a range of tiles on each axis, and the labels name the axes of the
//! block. A block may be written wherever labels may follow a name. `tensor.block(a, [0, 0], [2, 3])` selects the same tiles of `a` without labels.
//! Which elements the tiles have is determined later, when the model is lowered.

use super::Parser;
use super::expression::{Expect, Operand, Shape};
use crate::infix::{AT_LABELS, BLOCK, MAKE_TUPLE};
use crate::name_index::Referent;
use crate::text::cursor::Stop;
use crate::text::token::TokenKind;
use crate::{Node, NodeId};
use cembra_runtime::MOST_AXES;
use cembra_value::{Code, Diagnostic, ScalarValue, Span, Value};

/// The name of the method that selects a block of tiles.
pub(super) const METHOD_OF_BLOCKS: &str = "block";

impl Parser<'_, '_> {
    /// Reads the two lists of tile indices (first tiles, and ends) after the open bracket of the method `block`, and makes the node of the block.
    /// `of` is the tensor, `at` the span of the method's name.
    pub(super) fn block(&mut self, of: Operand, at: Span, open: Span) -> Result<Expect, Stop> {
        let start = self.tiles()?;
        if !self.cursor.take(TokenKind::Comma) {
            return Err(self
                .cursor
                .unclosed(open, "`,` and the list of the tiles after the end of the block, as in `[2, 3]`"));
        }
        let stop = self.tiles()?;
        let close = self.cursor.close(TokenKind::CloseRound, open, "`)`")?;
        let span = of.span.to(close);
        let name = self.program.graph.intern(BLOCK);
        self.note_referent(at, |_| Some(Referent::Operator(name)));
        let node = match (of.node, start.node, stop.node) {
            (Some(node), Some(start), Some(stop)) => match self.labelled_tensor(node) {
                Some((tensor, labels)) => {
                    let block = self.operator(name, &[tensor, start, stop], span)?;
                    let name = self.program.graph.intern(AT_LABELS);
                    Some(self.operator(name, &[block, labels], span)?)
                }
                None => {
                    let problem = Diagnostic::new(Code::Syntax, "`block` must follow a name with labels").at(of.span);
                    self.cursor.report(problem.hint(
                        "name the tensor first, `let t(\"i,j\") = ..`, then write `t(\"i,j\").block([0, 0], [2, 3])`",
                    ));
                    None
                }
            },
            _ => None,
        };
        Ok(self.push(Operand { shape: Shape::Enclosed, ..Operand::new(node, span) }))
    }

    /// Returns the tensor and the labels of a labelled tensor; `None` for other nodes.
    fn labelled_tensor(&self, node: NodeId) -> Option<(NodeId, NodeId)> {
        let graph = &self.program.graph;
        match graph.node(node) {
            Node::Operator(name, &[tensor, labels]) if **graph.name(name) == *AT_LABELS => Some((tensor, labels)),
            _ => None,
        }
    }

    /// Reads a list of tile indices such as `[0, 1]` as a tuple.
    pub(super) fn tiles(&mut self) -> Result<Operand, Stop> {
        let open = self
            .cursor
            .require_open(TokenKind::OpenSquare, "a list with the number of a tile for each axis, as in `[0, 1]`")?;
        let mut numbers: Vec<NodeId> = Vec::new();
        while self.cursor.token.kind != TokenKind::CloseSquare {
            let start = self.cursor.token.span;
            let is_negative = self.cursor.take(TokenKind::Minus);
            let written = self.cursor.token.span;
            if self.cursor.token.kind != TokenKind::Number {
                return Err(self.cursor.unclosed(open, "the number of a tile or `]`"));
            }
            self.cursor.advance();
            let span = start.to(written);
            let number: Option<i64> = self.cursor.text(written).parse().ok().filter(|_| !is_negative);
            let Some(number) = number else {
                let problem = Diagnostic::new(Code::Literal, "the number of a tile must be an integer of at least 0");
                return Err(self.cursor.stop(problem.at(span).hint("count the tiles of an axis from 0")));
            };
            if numbers.len() == MOST_AXES {
                let problem = Diagnostic::new(Code::Literal, format!("a tensor has 0 to {MOST_AXES} axes"));
                return Err(self.cursor.stop(problem.at(span)));
            }
            let number = i32::try_from(number).map_or(ScalarValue::Int64(number), ScalarValue::Int32);
            numbers.push(self.literal(Value::Scalar(number), span)?);
            if !self.cursor.take(TokenKind::Comma) {
                break;
            }
        }
        let span = open.to(self.cursor.close(TokenKind::CloseSquare, open, "`,` or `]`")?);
        let name = self.program.graph.intern(MAKE_TUPLE);
        Ok(Operand::new(Some(self.operator(name, &numbers, span)?), span))
    }

    /// Returns the span of a line that would assign to a block, such as `c("i,j").block([0, 0], [2, 3]) = ..`; `None` if no such line begins at the
    /// current token.
    pub(super) fn assigned_block_ahead(&self) -> Option<Span> {
        if !self.cursor.has_tensors || self.cursor.token.kind != TokenKind::Word {
            return None;
        }
        let mut ahead = self.cursor.ahead();
        let mut next = || ahead.next();
        let begins = [TokenKind::OpenRound, TokenKind::Text, TokenKind::CloseRound, TokenKind::Dot, TokenKind::Word];
        let mut method = Span::default();
        for kind in begins {
            let token = next();
            if token.kind != kind {
                return None;
            }
            method = token.span;
        }
        if self.cursor.text(method) != METHOD_OF_BLOCKS || next().kind != TokenKind::OpenRound {
            return None;
        }
        let mut token = next();
        // The lists contain no round brackets.
        while matches!(
            token.kind,
            TokenKind::OpenSquare | TokenKind::CloseSquare | TokenKind::Comma | TokenKind::Number | TokenKind::Minus
        ) {
            token = next();
        }
        let close = token;
        if close.kind != TokenKind::CloseRound {
            return None;
        }
        let sign = next();
        let is_changed = matches!(sign.kind, TokenKind::Plus | TokenKind::Minus | TokenKind::Star) && {
            let equals = next();
            equals.kind == TokenKind::Equals && equals.span.start == sign.span.end
        };
        let is_assigned = sign.kind == TokenKind::Equals || is_changed;
        is_assigned.then(|| self.cursor.token.span.to(close.span))
    }
}
