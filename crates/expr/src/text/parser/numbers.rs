//! `numbers f64`, which stands before all other statements of a file. In it, literals with a fraction are f64, and integers become f64 where
//! they are divided and where they meet floats. Types are not known here: an operand that may be such an integer is marked by an operator
//! of its own, which the registry takes apart. Functions keep the rule of the file that defines them, since their bodies are marked there.

use super::Parser;
use crate::infix::{BESIDE, Operation, WIDE};
use crate::text::cursor::Stop;
use crate::text::token::TokenKind;
use crate::vocabulary::Integers;
use crate::{NameId, Node, NodeId};
use cembra_runtime::Scalar;
use cembra_value::{Code, Diagnostic, ScalarValue, Span, Value};

/// The word that begins the statement, before a type. It is a name everywhere else.
pub(in crate::text) const NUMBERS: &str = "numbers";

/// The rule of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct FileRule {
    /// True once a statement was read.
    pub(super) begun: bool,
    /// True in a file of `numbers f64`.
    is_wide: bool,
}

impl Parser<'_, '_> {
    /// `numbers f64`
    pub(super) fn numbers(&mut self) -> Result<(), Stop> {
        let start = self.cursor.advance().span;
        let span = start.to(self.cursor.token.span);
        let is_float = self.cursor.text(self.cursor.token.span) == Scalar::Float64.short_name();
        self.cursor.advance();
        if !is_float {
            let problem =
                Diagnostic::new(Code::Syntax, "numbers of a file are f64, or what their literals say").at(span);
            self.cursor.report(problem.hint("write `numbers f64`, or leave the statement out"));
        } else if self.rule.begun {
            let problem = Diagnostic::new(Code::Syntax, "`numbers f64` stands before all other statements of a file");
            self.cursor.report(problem.at(span).hint("it is said once, and of all numbers of the file"));
        }
        self.rule = FileRule { begun: true, is_wide: self.rule.is_wide || is_float };
        Ok(())
    }

    /// True for an operation on integers whose result is an f64 here.
    pub(super) fn is_wide(&self, operation: Operation) -> bool {
        self.rule.is_wide && operation == Operation::Power
    }

    /// A literal as the file reads it.
    pub(super) fn literal_of_file(&self, value: Value) -> Value {
        // `WEAK_FLOAT{0.5}` says its type.
        let is_bare = matches!(self.cursor.previous_kind, TokenKind::Number | TokenKind::Inf | TokenKind::Nan);
        match value {
            Value::Scalar(ScalarValue::WeakFloat(value)) if self.rule.is_wide && is_bare => Value::from(value),
            value => value,
        }
    }

    /// The operands of an operator as the file makes them; none if it leaves them as they are.
    pub(super) fn marked_operands(
        &mut self,
        name: NameId,
        operands: &[NodeId],
        span: Span,
    ) -> Result<Option<Vec<NodeId>>, Stop> {
        if !self.rule.is_wide {
            return Ok(None);
        }
        let mut marked: Vec<NodeId> = operands.into();
        match self.integers_of(name) {
            Integers::Stay => return Ok(None),
            Integers::Widen => self.widen_all(&mut marked, span)?,
            Integers::WidenBesideFloats(from) => {
                let meeting = marked.get_mut(from..).unwrap_or_default();
                if meeting.iter().any(|operand| self.is_literal_of_floats(*operand)) {
                    self.widen_all(meeting, span)?;
                } else if let [x, y] = meeting {
                    let [before, beside] = [*x, *y];
                    *x = self.mark_beside(before, beside, span)?;
                    *y = self.mark_beside(beside, before, span)?;
                } else if let [first, others @ ..] = meeting {
                    // The first becomes an f64 if one of the others is a float, and all others are beside what it became.
                    for other in &*others {
                        *first = self.mark_beside(*first, *other, span)?;
                    }
                    for other in others {
                        *other = self.mark_beside(*other, *first, span)?;
                    }
                }
            }
        }
        Ok(Some(marked))
    }

    fn integers_of(&self, operator: NameId) -> Integers {
        let callable = self.vocabulary.resolve(self.program.graph.name(operator));
        callable.map_or(Integers::Stay, |callable| callable.integers)
    }

    /// True for what makes no integers of operands as this file has them: a quotient is a float, or a duration.
    fn makes_no_integers(&self, operator: NameId) -> bool {
        **self.program.graph.name(operator) == *WIDE || self.integers_of(operator) == Integers::Widen
    }

    fn widen_all(&mut self, operands: &mut [NodeId], span: Span) -> Result<(), Stop> {
        for operand in operands {
            *operand = self.widened(*operand, span)?;
        }
        Ok(())
    }

    /// An operand as an f64 if it is an integer.
    fn widened(&mut self, operand: NodeId, span: Span) -> Result<NodeId, Stop> {
        let wide = match self.program.graph.node(operand) {
            Node::Literal(Value::Scalar(ScalarValue::Int32(value))) => f64::from(*value),
            Node::Literal(Value::Scalar(ScalarValue::Int64(value))) => *value as f64,
            Node::Literal(value) if !is_of_integers(value) => return Ok(operand),
            Node::Operator(name, _) if self.makes_no_integers(name) => return Ok(operand),
            _ => return self.mark(WIDE, &[operand], span),
        };
        let span = self.program.graph.last_span(operand).unwrap_or(span);
        self.literal(Value::from(wide), span)
    }

    /// An operand as an f64 if it is an integer and another one is a float. No literal here is a float.
    fn mark_beside(&mut self, operand: NodeId, other: NodeId, span: Span) -> Result<NodeId, Stop> {
        let graph = &self.program.graph;
        let is_settled = matches!(graph.node(other), Node::Literal(_))
            || matches!(graph.node(operand), Node::Literal(value) if !is_of_integers(value))
            || operand == other;
        if is_settled { Ok(operand) } else { self.mark(BESIDE, &[operand, other], span) }
    }

    fn mark(&mut self, mark: &str, operands: &[NodeId], span: Span) -> Result<NodeId, Stop> {
        let name = self.program.graph.intern(mark);
        let place = operands.first().and_then(|operand| self.program.graph.last_span(*operand));
        self.plain_operator(name, operands, place.unwrap_or(span))
    }

    fn is_literal_of_floats(&self, node: NodeId) -> bool {
        matches!(self.program.graph.node(node), Node::Literal(value) if element_type(value).is_some_and(Scalar::is_float))
    }
}

fn element_type(value: &Value) -> Option<Scalar> {
    value.qtype().of_each().scalar()
}

fn is_of_integers(value: &Value) -> bool {
    element_type(value).is_some_and(Scalar::is_whole)
}
