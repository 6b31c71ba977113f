//! Checks gradients with respect to expressions. `tensor.grad(y, x + 1)` finds the node `x + 1` in `y` by structural equality. If `y` does not
//! contain that node, the parser reports an error, because the user meant a node of `y`. A gradient with respect to a name that `y` does not use is
//! zero, so the printer writes the second operand of every gradient as a name, which is always accepted. This file only checks gradients, and does
//! not compute them.

use super::lexer::is_word;
use crate::infix::{AT_LABELS, MAKE_NAMED, MAKE_TUPLE};
use crate::{Graph, Node, NodeId};
use cembra_value::{Code, Diagnostic, Span};
use rustc_hash::FxHashSet;

/// The most operands that are searched for all gradients of a text. Beyond that, an expression counts as used.
const MOST_LOOKED_AT: usize = 1 << 22;

/// The work done so far to check the gradients of a text, as the number of operands that were searched.
#[derive(Debug, Default)]
pub(super) struct Gradients {
    looked_at: usize,
}

/// Returns true if `by`, the second operand of a gradient, may be an expression such as `x + 1`: an operator node that makes neither a tuple nor a
/// labelled tensor.
pub(super) fn is_operator_expression(graph: &Graph, by: NodeId) -> bool {
    let Node::Operator(name, _) = graph.node(by) else { return false };
    !matches!(&**graph.name(name), MAKE_TUPLE | MAKE_NAMED | AT_LABELS)
}

/// Returns true if a text is a name or a field of one, with or without brackets.
fn is_name(text: &str) -> bool {
    let is_around = |c: char| c.is_whitespace() || matches!(c, '(' | ')');
    text.trim_matches(is_around).split('.').all(|part| {
        let part = part.trim();
        is_word(part) || (!part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
    })
}

impl Gradients {
    /// Returns the problem with a gradient of `of` with respect to `by`; `None` if the gradient is valid. `text` is the text of `by`, and `at` is the
    /// span of that text.
    pub(super) fn check(&mut self, graph: &Graph, of: NodeId, by: NodeId, text: &str, at: Span) -> Option<Diagnostic> {
        if !is_operator_expression(graph, by) || is_name(text) || self.uses(graph, of, by) {
            return None;
        }
        let message =
            "the gradient is taken with respect to an expression that is not part of the differentiated expression";
        let hint = "name the expression with `let`, use the name in the differentiated expression, and differentiate by the name";
        Some(Diagnostic::new(Code::Derivative, message).at(at).hint(hint))
    }

    /// Returns true if a node contains `what` or is `what`.
    fn uses(&mut self, graph: &Graph, of: NodeId, what: NodeId) -> bool {
        let (mut seen, mut open) = (FxHashSet::default(), vec![of]);
        while let Some(node) = open.pop() {
            if node == what || self.looked_at >= MOST_LOOKED_AT {
                return true;
            }
            let operands = graph.operands(node);
            self.looked_at += 1 + operands.len();
            // Operands have smaller ids than their users.
            open.extend(operands.iter().filter(|operand| **operand >= what && seen.insert(**operand)));
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_from_expressions() {
        for name in ["x", "(x)", "( t . 0 )", "t.w", "L.x", "x_1"] {
            assert!(is_name(name), "{name}");
        }
        for expression in ["x + 1", "-x", "f(x)", "(x)+(y)", "f(x).0", "not x", "let t = x in t", "x\n+y", ""] {
            assert!(!is_name(expression), "{expression}");
        }
    }

    #[test]
    fn what_takes_too_long_to_find_is_believed_to_be_used() {
        let mut graph = Graph::new();
        let [x, y] = ["x", "y"].map(|name| graph.leaf(name, None));
        let by = graph.operator("math.neg", &[y], None);
        let of = graph.operator("math.add", &[x, x], None);
        let found = |looked_at| Gradients { looked_at }.check(&graph, of, by, "-y", Span::new(0, 2)).is_some();
        assert!(found(0) && !found(MOST_LOOKED_AT));
    }
}
