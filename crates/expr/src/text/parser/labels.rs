//! Labels after names, in texts with tensors. `a("i,k")` names the axes of a tensor where it is used; `let t("i,j") = ..`, `output t("i,j") = ..`
//! and `t("i,j") = ..` name the axes of the value that is defined. The parser turns labels into operators; their meaning is determined when the
//! model is lowered.

use super::Parser;
use super::expression::Operand;
use crate::NodeId;
use crate::infix::BIND_LABELS;
use crate::text::cursor::Stop;
use crate::text::quoted;
use crate::text::token::TokenKind;
use cembra_value::{Span, Value};

/// The labels after a name in its definition: `("i,j")`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Labels {
    /// The node of the labels, which are a literal.
    pub(super) node: NodeId,
    /// The span of the labels, including their brackets.
    pub(super) span: Span,
}

impl Parser<'_, '_> {
    /// Returns true if the current token opens a bracket that contains exactly one string, and a tensor type occurs earlier in the model. In a model
    /// without tensor types such a bracket is a call with a string as its argument.
    pub(super) fn at_labels(&self) -> bool {
        let mut ahead = self.cursor.ahead();
        self.cursor.has_tensors
            && self.cursor.token.kind == TokenKind::OpenRound
            && ahead.next().kind == TokenKind::Text
            && ahead.next().kind == TokenKind::CloseRound
    }

    /// Reads the labels after a name that is being defined; `None` if the name has no labels.
    pub(super) fn defined_labels(&mut self) -> Result<Option<Labels>, Stop> {
        if self.cursor.at_line_end() || !self.at_labels() {
            return Ok(None);
        }
        let open = self.cursor.advance().span;
        let at = self.cursor.advance().span;
        let text = quoted::decode(self.cursor.text(at), at).map_err(|fault| self.cursor.stop(fault.diagnostic()))?;
        let span = open.to(self.cursor.advance().span);
        Ok(Some(Labels { node: self.literal(Value::text(&*text), at)?, span }))
    }

    /// Applies the labels of a definition to its value. The span of the new node covers the labels and the value.
    pub(super) fn as_labelled(&mut self, value: Operand, labels: Option<Labels>) -> Result<Operand, Stop> {
        let (Some(Labels { node: labels, span }), Some(node)) = (labels, value.node) else { return Ok(value) };
        let name = self.program.graph.intern(BIND_LABELS);
        let node = self.operator(name, &[node, labels], span.to(value.span))?;
        Ok(Operand::new(Some(node), value.span))
    }
}
