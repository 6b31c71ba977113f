//! Labelled expressions as trees in an arena, in which operands come before their users. Also parses labels, such as
//! `i,k`. The module `labels` determines the labels that are summed over.

use super::FullReduction;
use crate::{ElementOperator, TensorErrorKind};
use cembra_runtime::Excerpt;
use cembra_value::Error;
use cembra_value::Span;
use smallvec::{SmallVec, smallvec};

/// A part of a labelled expression: a tensor, a number or an operation. Its operands are positions of other parts in the tree.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum ExpressionNode {
    /// A tensor: its position in the list of the expression's tensors, and the label of each of its axes.
    Tensor(u32, Vec<u32>),
    Number(f64),
    Negated(u32),
    Sum(u32, u32),
    Difference(u32, u32),
    Product(u32, u32),
    /// A part divided by a number.
    Quotient(u32, f64),
    /// An elementwise operator on other parts, which are aligned by their labels.
    Map(ElementOperator, SmallVec<[u32; 3]>),
    FullReduction(FullReduction, u32),
}

impl ExpressionNode {
    /// The positions in the tree of this part's operands.
    pub(super) fn operands(&self) -> SmallVec<[u32; 3]> {
        match self {
            ExpressionNode::Tensor(..) | ExpressionNode::Number(_) => smallvec![],
            ExpressionNode::Negated(of) | ExpressionNode::Quotient(of, _) | ExpressionNode::FullReduction(_, of) => {
                smallvec![*of]
            }
            ExpressionNode::Sum(a, b) | ExpressionNode::Difference(a, b) | ExpressionNode::Product(a, b) => {
                smallvec![*a, *b]
            }
            ExpressionNode::Map(_, of) => of.clone(),
        }
    }
}

/// A labelled expression as a list of parts. The last part is the root.
#[derive(Clone, Default, Debug)]
pub(super) struct Tree {
    pub(super) parts: Vec<ExpressionNode>,
    pub(super) spans: Vec<Span>,
    pub(super) labels: Vec<String>,
}

impl Tree {
    pub(super) fn root(&self) -> u32 {
        self.parts.len().saturating_sub(1) as u32
    }

    /// Appends a part to the tree and returns its position.
    pub(super) fn push(&mut self, part: ExpressionNode, span: Span) -> u32 {
        self.parts.push(part);
        self.spans.push(span);
        self.root()
    }

    /// Parses labels that are separated by commas, and returns their numbers.
    pub(super) fn read_labels(&mut self, known: &mut Positions, text: &str) -> Result<Vec<u32>, Error> {
        let mut labels = Vec::new();
        if text.trim().is_empty() {
            return Ok(labels);
        }
        for label in text.split(',').map(str::trim) {
            if !label.starts_with(is_start) || !label.chars().all(is_part) {
                let message = format!("`{}` is not a label", Excerpt::quoted(label));
                let error = Error::tensors(TensorErrorKind::BadLabel, message);
                return Err(error.hint("write a label with letters, digits and `_`, without a digit at the start"));
            }
            labels.push(self.label(known, label));
        }
        Ok(labels)
    }

    /// The number of a label. A new label gets the next number.
    fn label(&mut self, known: &mut Positions, label: &str) -> u32 {
        if let Some(at) = known.get(label) {
            return *at;
        }
        let at = self.labels.len() as u32;
        self.labels.push(label.to_owned());
        known.insert(label.to_owned(), at);
        at
    }
}

pub(super) type Positions = std::collections::HashMap<String, u32>;

fn is_start(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_'
}

fn is_part(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_numbered_in_the_order_of_the_text() {
        let (mut tree, mut known) = (Tree::default(), Positions::new());
        assert_eq!(tree.read_labels(&mut known, " i, k_1 ,i").unwrap(), [0, 1, 0]);
        assert_eq!(tree.read_labels(&mut known, "j,k_1").unwrap(), [2, 1]);
        assert!(tree.read_labels(&mut known, " ").unwrap().is_empty());
        for wrong in ["1i", "i,", "i j", "\u{e9}"] {
            assert_eq!(
                tree.read_labels(&mut known, wrong).unwrap_err().tensor_kind(),
                Some(TensorErrorKind::BadLabel),
                "{wrong}"
            );
        }
    }
}
