//! Reads declared types, as in `let x: f64 = 1`: the types of `let` values, of parameters and results of functions, and
//! of outputs. The parser only adds an operator that has the value and its declared type as operands. The effect of the
//! type is determined when types are inferred.

use super::Parser;
use super::expression::Operand;
use crate::NodeId;
use crate::infix::DECLARED;
use crate::reach::OperandConversion;
use crate::text::cursor::Stop;
use crate::text::token::TokenKind;
use cembra_value::{Code, Diagnostic, Span, Value};

/// A declared type: its node, its span, and the conversion that the type causes for operands of the declared expression. In `let y: f64 = x / 100`
/// the operands `x` and `100` become f64.
#[derive(Clone, Copy, Debug)]
pub(super) struct Declared {
    /// The type, as a literal.
    node: NodeId,
    /// The place of the type.
    span: Span,
    /// The conversion that the type causes for operands of the declared expression; `None` if the type converts no operands.
    reach: Option<OperandConversion>,
}

impl Parser<'_, '_> {
    /// Reads the `: type` after a name; `None` if no colon follows.
    pub(super) fn declared_type(&mut self) -> Result<Option<Declared>, Stop> {
        if !self.cursor.take(TokenKind::Colon) {
            return Ok(None);
        }
        let start = self.cursor.token.span;
        let qtype = self.cursor.read_type()?;
        let span = start.to(self.cursor.previous);
        if !qtype.is_declarable() {
            let problem =
                Diagnostic::new(Code::TypeMismatch, format!("a value cannot be declared with the type {qtype}"))
                    .at(span);
            return Err(self
                .cursor
                .stop(problem.hint("declare another type: values of this type exist only inside a model's text")));
        }
        let reach = OperandConversion::of(&qtype);
        self.noted.declare(reach);
        Ok(Some(Declared { node: self.literal(Value::Type(qtype), span)?, span, reach }))
    }

    /// Applies the operator for a declared type to `value`. The span of the new node covers the type and the value.
    /// Without a declared type, returns `value`.
    pub(super) fn as_declared(&mut self, value: Operand, declared: Option<Declared>) -> Result<Operand, Stop> {
        let Some(Declared { node: qtype, span, reach }) = declared else { return Ok(value) };
        let value = match reach {
            Some(reach) => self.reached(value, reach, span)?,
            None => value,
        };
        let Some(node) = value.node else { return Ok(value) };
        // The value may be a name, whose node was written elsewhere.
        self.program.graph.note_span(node, Some(value.span));
        let name = self.program.graph.intern(DECLARED);
        let whole = if value.span.start < span.start { value.span.to(span) } else { span.to(value.span) };
        let node = self.operator(name, &[node, qtype], whole)?;
        Ok(Operand::new(Some(node), value.span))
    }
}
