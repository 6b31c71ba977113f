//! The roles of labels in a product of two tensors. In `bij,bjk->bik`, `b` is a batch label (both operands and the
//! result have it), `i` is a row label of the left operand, `k` a column label of the right one, and `j` is summed. The
//! product of two tiles is one matrix product for each index of the batch labels.

use crate::error::unlike_tilings;
use crate::{Tiling, Tiling1};
use cembra_tensor::{Axes, Axis, Labels};
use cembra_value::Error;
use cembra_value::tensor::TensorErrorKind as Kind;
use std::hash::{DefaultHasher, Hash, Hasher};

/// The labels of a product by their roles. Labels of the result are in its order, and summed labels in the order of the left operand.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Roles {
    /// The labels that both operands and the result have.
    pub(crate) batch: Axes,
    /// The labels that the left operand and the result have, but not the right operand.
    pub(crate) rows: Axes,
    /// The labels that the right operand and the result have, but not the left operand.
    pub(crate) columns: Axes,
    /// The labels that both operands have and that are summed.
    pub(crate) terms: Axes,
    /// For each operand, the label of each of its axes.
    pub(crate) operands: [Axes; 2],
    /// The label of each axis of the result.
    pub(crate) result: Axes,
}

impl Roles {
    /// Finds the roles of the labels of a product.
    ///
    /// # Errors
    /// If there are not two operands, one of them has a label twice, or a label of one operand alone is summed.
    pub(crate) fn of(labels: &Labels) -> Result<Roles, Error> {
        let [left, right] = labels.operands.as_slice() else {
            let message = format!("a product must have two tiled tensors, found {}", labels.operands.len());
            return Err(Error::tensors(Kind::OperandCount, message).hint("multiply two at a time"));
        };
        for own in [left, right] {
            if (1..own.len()).any(|at| own[..at].contains(&own[at])) {
                return Err(Error::tensors(Kind::BadLabel, "a tiled operand has the same label for two axes")
                    .hint("give each axis its own label"));
            }
        }
        let result = &labels.output;
        for (own, other) in [(left, right), (right, left)] {
            if own.iter().any(|label| !other.contains(label) && !result.contains(label)) {
                let message = "a label is in only one operand, and not in the result";
                return Err(Error::tensors(Kind::FreeLabel, message).hint("sum over the axis before the product"));
            }
        }
        let of = |from: &Axes, is_in: [bool; 3]| -> Axes {
            let has = |label: &Axis| [left.contains(label), right.contains(label), result.contains(label)];
            from.iter().copied().filter(|label| has(label) == is_in).collect()
        };
        Ok(Roles {
            batch: of(result, [true, true, true]),
            rows: of(result, [true, false, true]),
            columns: of(result, [false, true, true]),
            terms: of(left, [true, true, false]),
            operands: [left.clone(), right.clone()],
            result: result.clone(),
        })
    }

    /// Returns a hash of the labels, so that products with different labels have different numbers (almost certainly).
    pub(crate) fn number(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (&self.operands, &self.result).hash(&mut hasher);
        hasher.finish()
    }

    /// Returns the tiling of the product's result, from the tilings of the operands.
    ///
    /// # Errors
    /// If an operand does not have one axis per label, or axes with the same label have different tilings.
    pub(crate) fn result_tiling(&self, operands: [&Tiling; 2]) -> Result<Tiling, Error> {
        let mut known: Vec<Option<&Tiling1>> = vec![None; usize::from(Axis::MAX) + 1];
        for (labels, tiling) in self.operands.iter().zip(operands) {
            tiling.check_rank(labels.len())?;
            for (label, axis) in labels.iter().zip(tiling.axes()) {
                let before = known[usize::from(*label)].get_or_insert(axis);
                if *before != axis {
                    return Err(unlike_tilings(&format!("axes with one label, {before:?} and {axis:?},")));
                }
            }
        }
        Tiling::new(self.result.iter().filter_map(|label| known[usize::from(*label)]))
    }
}
