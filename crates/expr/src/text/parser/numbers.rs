//! Reads the statements `numbers f64` and `numbers f32`, which must come first in a file. They select the file's number rule: to which float type
//! integers and fraction literals are converted. A function keeps the number rule of the file that defines it, because its body is converted when
//! that file is read.

use super::Parser;
use crate::infix::{BESIDE, Operation, WIDE};

use crate::text::cursor::Stop;
use crate::text::numbers::{Marker, NodeKinds, Numbers};
use crate::text::token::TokenKind;
use crate::{Graph, NameId, NodeId, Vocabulary};
use cembra_runtime::Scalar;
use cembra_value::{Code, Diagnostic, ScalarValue, Value};

/// The first word of a `numbers` statement, before a type. Everywhere else it is an ordinary name.
pub(in crate::text) const NUMBERS: &str = "numbers";

/// The number rule of a file: how integers and fraction literals are converted to floats.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct FileRule {
    /// True once a statement of the file was read. After that, a `numbers` line is an error.
    pub(super) begun: bool,
    pub(super) numbers: Numbers,
}

impl Parser<'_, '_> {
    /// Reads `numbers f64` or `numbers f32`.
    pub(super) fn numbers(&mut self) -> Result<(), Stop> {
        let start = self.cursor.advance().span;
        let span = start.to(self.cursor.token.span);
        let said = match self.cursor.text(self.cursor.token.span) {
            word if word == Scalar::Float64.short_name() => Some(Numbers::Wide),
            word if word == Scalar::Float32.short_name() => Some(Numbers::Narrow),
            _ => None,
        };
        self.cursor.advance();
        if said.is_none() {
            let problem = Diagnostic::new(Code::Syntax, "`numbers` must be followed by `f64` or `f32`").at(span);
            self.cursor.report(problem.hint("write `numbers f64`, `numbers f32`, or leave the statement out"));
        } else if self.rule.begun {
            let written = self.cursor.text(span);
            let problem =
                Diagnostic::new(Code::Syntax, format!("`{written}` must stand before all other statements of a file"));
            self.cursor.report(
                problem
                    .at(span)
                    .hint("write it once, at the start of the file: `numbers` applies to all numbers of the file"),
            );
        }
        self.rule = FileRule { begun: true, numbers: said.unwrap_or(self.rule.numbers) };
        Ok(())
    }

    /// Returns true if `operation` makes an f64 of integers by the number rule of the current file.
    pub(super) fn is_wide(&self, operation: Operation) -> bool {
        self.rule.numbers == Numbers::Wide && operation == Operation::Power
    }

    /// Returns the literal `value`, converted by the number rule of the current file.
    pub(super) fn literal_of_file(&self, value: Value) -> Value {
        // `WEAK_FLOAT{0.5}` has an explicit type.
        let is_bare = matches!(self.cursor.previous_kind, TokenKind::Number | TokenKind::Inf | TokenKind::Nan);
        match value {
            Value::Scalar(ScalarValue::WeakFloat(value)) if self.rule.numbers == Numbers::Wide && is_bare => {
                Value::from(value)
            }
            value => value,
        }
    }

    /// Returns the default of a parameter, converted by the number rule of the current file for a call with `arguments`.
    pub(super) fn default_of_file(&mut self, default: &Value, arguments: &[NodeId]) -> Value {
        if self.rule.numbers == Numbers::Undeclared { self.default_beside(default, arguments) } else { default.clone() }
    }

    /// Returns the operands of the operator `name`, converted by the number rule of the current file; `None` if they are unchanged.
    pub(super) fn operands_of_file(&mut self, name: NameId, operands: &[NodeId]) -> Result<Option<Vec<NodeId>>, Stop> {
        if self.rule.numbers == Numbers::Narrow { Ok(None) } else { self.marked_operands(name, operands) }
    }

    /// Returns the node for the operator `name` in a copied function body, if it is a conversion mark (`core._wide`, `core._beside`). Whether the
    /// mark is needed depends on its operands in the copy, which are `operands`. Returns `None` for an operator that is not a mark.
    pub(super) fn marked_again(&mut self, name: NameId, operands: &[NodeId]) -> Result<Option<NodeId>, Stop> {
        match (&**self.program.graph.name(name), operands) {
            (WIDE, [operand]) => self.widened(*operand).map(Some),
            (BESIDE, [operand, other]) => self.beside(*operand, *other).map(Some),
            _ => Ok(None),
        }
    }
}

impl Marker for Parser<'_, '_> {
    type Stop = Stop;

    fn known(&mut self) -> (&Graph, &dyn Vocabulary, &mut NodeKinds) {
        (&self.program.graph, self.vocabulary, &mut self.known)
    }

    fn wide_literal(&mut self, value: f64, written: NodeId) -> Result<NodeId, Stop> {
        let span = self.program.graph.last_span(written).unwrap_or(self.cursor.previous);
        self.literal(Value::from(value), span)
    }

    fn mark(&mut self, mark: &str, operands: &[NodeId]) -> Result<NodeId, Stop> {
        let name = self.program.graph.intern(mark);
        let place = operands.first().and_then(|operand| self.program.graph.last_span(*operand));
        self.plain_operator(name, operands, place.unwrap_or(self.cursor.previous))
    }
}
