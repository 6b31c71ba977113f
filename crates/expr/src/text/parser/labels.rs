//! Labels behind names, in texts with tensors: `a("i,k")` names the axes of a tensor where it is used, `let t("i,j") = ..`,
//! `output t("i,j") = ..` and `t("i,j") = ..` those of one that is defined. Here they become operators; what labels mean is found when the model is lowered.

use super::Parser;
use super::expression::Operand;
use crate::NodeId;
use crate::infix::BIND_LABELS;
use crate::text::cursor::Stop;
use crate::text::quoted;
use crate::text::token::TokenKind;
use cembra_value::{Span, Value};

/// The labels that a definition gives a value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Labels {
    /// The labels, as a literal.
    pub(super) node: NodeId,
    /// Where they stand, their brackets included.
    pub(super) span: Span,
}

impl Parser<'_, '_> {
    /// True at an opening bracket with nothing but one text in it, in a text in which some type of a tensor was read: only there are
    /// values called with labels, so that functions of texts stay what they are everywhere else.
    pub(super) fn at_labels(&self) -> bool {
        let mut ahead = self.cursor.ahead();
        self.cursor.has_tensors
            && self.cursor.token.kind == TokenKind::OpenRound
            && ahead.next().kind == TokenKind::Text
            && ahead.next().kind == TokenKind::CloseRound
    }

    /// Reads the labels behind a name that is being defined, if there are any.
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

    /// The value with the labels of its definition. The whole stands where the two and what is between them do.
    pub(super) fn as_labelled(&mut self, value: Operand, labels: Option<Labels>) -> Result<Operand, Stop> {
        let (Some(Labels { node: labels, span }), Some(node)) = (labels, value.node) else { return Ok(value) };
        let name = self.program.graph.intern(BIND_LABELS);
        let node = self.operator(name, &[node, labels], span.to(value.span))?;
        Ok(Operand::new(Some(node), value.span))
    }
}
