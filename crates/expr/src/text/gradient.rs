//! Gradients by expressions. Which node a gradient is by is found by what it is, so people who write `tensor.grad(y, x + 1)` mean one that `y`
//! has: where it has none they are told, by the parser. By a name that `y` does not use a gradient is zeros, so the printer gives names to what
//! gradients are by. What a gradient is worth is said elsewhere.

use super::lexer::is_word;
use crate::infix::{AT_LABELS, MAKE_NAMED, MAKE_TUPLE};
use crate::{Graph, Node, NodeId};
use cembra_value::{Code, Diagnostic, Span};
use rustc_hash::FxHashSet;

/// How many operands may be looked at for all gradients of a text. Behind that an expression is believed to be used.
const MOST_LOOKED_AT: usize = 1 << 22;

/// What was looked at for the gradients of a text.
#[derive(Debug, Default)]
pub(super) struct Gradients {
    looked_at: usize,
}

/// True for a node that may be written as an expression. Of tuples and of labelled tensors there are no gradients at all.
pub(super) fn may_be_expression(graph: &Graph, by: NodeId) -> bool {
    let Node::Operator(name, _) = graph.node(by) else { return false };
    !matches!(&**graph.name(name), MAKE_TUPLE | MAKE_NAMED | AT_LABELS)
}

/// True if a text is a name, or a field of one, in brackets or not.
fn is_name(text: &str) -> bool {
    let is_around = |c: char| c.is_whitespace() || matches!(c, '(' | ')');
    text.trim_matches(is_around).split('.').all(|part| {
        let part = part.trim();
        is_word(part) || (!part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
    })
}

impl Gradients {
    /// What is wrong with a gradient of a node by another one, which is written so at a place.
    pub(super) fn check(&mut self, graph: &Graph, of: NodeId, by: NodeId, text: &str, at: Span) -> Option<Diagnostic> {
        if !may_be_expression(graph, by) || is_name(text) || self.uses(graph, of, by) {
            return None;
        }
        let message = "a gradient by an expression that what is differentiated does not use";
        let hint = "give the expression a name with `let`, use that in what is differentiated, and differentiate by it";
        Some(Diagnostic::new(Code::Derivative, message).at(at).hint(hint))
    }

    /// True if a node is made of another one, or is it.
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
