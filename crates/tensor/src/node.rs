//! Nodes of graphs: their operations, their operands, and the types and extents of their results.

use crate::constant::ConstantTensor;
use crate::custom::Custom;
use crate::custom_gradient::CustomVjp;
use crate::maps::ElementOperator;
use crate::{Extents, Slice, TensorErrorKind};
use cembra_runtime::Scalar;
use cembra_value::Error;
use cembra_value::tensor::index_count;
use smallvec::SmallVec;
use std::sync::Arc;

/// The number of an axis of a tensor, counted from 0, or the number of a label in a product.
pub type Axis = u8;

/// A list of axes or labels. In a transposition, entry `i` is the axis of the result to which axis `i` of the operand moves.
pub type Axes = SmallVec<[Axis; 8]>;

/// The number of a node: the node's position in its graph.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TensorNodeId(pub(crate) u32);

impl TensorNodeId {
    /// The node's position in its graph. Operands have lower positions than their users.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// The way in which a reduction combines several elements to one, such as a sum or a maximum.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Reduction {
    /// The sum of the elements, where integers wrap; 0 if there are no elements.
    Sum,
    /// The product of the elements, where integers wrap; 1 if there are no elements.
    Product,
    /// The largest element. A NaN counts as larger than all numbers, and +0 as larger than -0.
    Max,
    /// The smallest element. A NaN counts as smaller than all numbers, and -0 as smaller than +0.
    Min,
    /// True if at least one element is true; false if there are no elements.
    Any,
    /// True if all elements are true; true if there are no elements.
    All,
}

/// The labels of the axes in a product. Labels are numbers. Axes with one label share one index and have equal extents.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Labels {
    /// For each operand of the product, the label of each of its axes.
    pub operands: Vec<Axes>,
    /// The label of each axis of the product's result; no label may occur twice. Labels that the result does not have are summed over.
    pub output: Axes,
}

/// The operation of a node: an input, a constant, or a computation on the node's operands.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Operation {
    /// An input of the graph, by its number.
    Leaf(u32),
    /// A seed: a placeholder without a value, which forward mode differentiates by. The number makes each seed a node of its own.
    Seed(u32),
    /// A constant number or truth value without axes: its bits in the layout of frames, padded with zeros.
    Constant(u64),
    /// A constant tensor: a tensor whose elements are part of the graph.
    Tensor(ConstantTensor),
    /// The integers 0, 1, 2, .. along the only axis, as i64.
    Iota,
    /// A scalar operator, applied to each element. The operands are broadcast to the extents of the result.
    Map(ElementOperator),
    /// A reduction of the operand over the given axes, which are in ascending order.
    Reduce(Reduction, Axes),
    /// A product of the operands by labels: elements are multiplied, and summed over the labels that the result does not have.
    Contract(Arc<Labels>),
    /// A transposition or diagonal: with the list `to`, axis `i` of the operand moves to axis `to[i]` of the result. If several axes move to one
    /// axis, the result is a diagonal.
    Axes(Axes),
    /// A slice of the operand, given by the slice of each axis.
    Slice(SmallVec<[Slice; 2]>),
    /// The operand, repeated along axes that are new or had the extent 1.
    Broadcast,
    /// The operand with other extents. Its elements keep their row-major order.
    Reshape,
    /// Zeros, into which the operand is copied at the diagonals that `Axes` would select: the adjoint of `Axes`.
    PlaceAxes(Axes),
    /// Zeros, into which the first operand is copied at the slices: the adjoint of `Slice`. The second operand, if there is one, is the tensor that
    /// the slices were taken from. Its value is not read: where tensors have tiles, the result is cut into the tiles of the second operand.
    PlaceSlice(SmallVec<[Slice; 2]>),
    /// The elements of the first operand along an axis, at the indices that the second operand contains. The axes of the second operand replace that
    /// axis.
    Take(Axis),
    /// Zeros, to which the first operand is added along an axis. The indices along that axis are the elements of another operand. This is the adjoint
    /// of `Take`.
    PlaceTake(Axis),
    /// The operands, concatenated along an axis.
    Concat(Axis),
    /// The first operand, marked as the result of a function with a user-defined gradient.
    CustomVjp(CustomVjp),
    /// A user-defined operation, which user code computes.
    Custom(Custom),
    /// The operand itself, hidden from rewrites. The number makes each barrier a node of its own.
    Barrier(u32),
}

/// A node of a graph: its operation, its operands, and the type and extents of its result.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Node {
    /// The operation that the node applies to its operands.
    pub operation: Operation,
    /// The operands of the node, which come before it in the graph.
    pub operands: SmallVec<[TensorNodeId; 2]>,
    /// The type of the elements of the node's result.
    pub scalar: Scalar,
    /// The number of indices along each axis of the node's result.
    pub extents: Extents,
}

impl Node {
    /// The operands from which the node's value is computed. Other operands serve only its gradient, or tell how its value is cut into tiles
    /// (blocks).
    #[must_use]
    pub fn read(&self) -> &[TensorNodeId] {
        match self.operation {
            Operation::CustomVjp(_) | Operation::PlaceSlice(_) => &self.operands[..1],
            _ => &self.operands,
        }
    }

    /// The operands whose tiles (blocks) decide how the node's value is cut into tiles. Usually, these are the operands from which the value is
    /// computed. A node that copies a slice into zeros is cut like another tensor, its second operand; the list is empty if there is no such operand.
    #[must_use]
    pub fn tiling_operands(&self) -> &[TensorNodeId] {
        match self.operation {
            Operation::PlaceSlice(_) => &self.operands[1..],
            _ => self.read(),
        }
    }

    /// The operands that the value or the gradients of the node need.
    pub(crate) fn kept(&self) -> &[TensorNodeId] {
        match self.operation {
            Operation::PlaceSlice(_) => self.read(),
            _ => &self.operands,
        }
    }

    /// Returns the node without the operands that only decide how its value is cut into tiles (blocks).
    pub(crate) fn without_tiling_only_operands(&self) -> Node {
        Node { operands: self.kept().into(), ..self.clone() }
    }

    /// The operands with respect to which the node may be differentiated.
    pub(crate) fn differentiated(&self) -> &[TensorNodeId] {
        match &self.operation {
            Operation::CustomVjp(custom) => custom.inputs(self),
            Operation::PlaceSlice(_) => self.read(),
            _ => &self.operands,
        }
    }
}

/// An input of a graph: its name and its node.
#[derive(Clone, PartialEq, Debug)]
pub struct Leaf {
    /// The name of the input, which may be empty.
    pub name: Arc<str>,
    /// The node of the graph that stands for the input.
    pub node: TensorNodeId,
}

impl Labels {
    /// Returns true if an operand has a label that the result does not have, even if the label has the extent 1. If so,
    /// products are summed, starting with +0.
    #[must_use]
    pub fn is_sum(&self) -> bool {
        self.operands.iter().flatten().any(|label| !self.output.contains(label))
    }

    /// Returns the extent of each label, by the label's number. `operands` has the extents of each operand.
    ///
    /// # Errors
    /// If axes with the same label have different extents, or an operand does not have one label per axis.
    pub fn label_extents(&self, operands: &[&[usize]]) -> Result<Vec<usize>, Error> {
        if operands.len() != self.operands.len() {
            let message = format!("{} operands are given for {} lists of labels", operands.len(), self.operands.len());
            return Err(Error::tensors(TensorErrorKind::OperandCount, message));
        }
        let labels = self.operands.iter().flatten().map(|label| usize::from(*label) + 1).max().unwrap_or(0);
        let mut found: Vec<Option<usize>> = vec![None; labels];
        for (labels, extents) in self.operands.iter().zip(operands) {
            if labels.len() != extents.len() {
                let message = format!("{} labels are given for a tensor of {} axes", labels.len(), extents.len());
                return Err(Error::tensors(TensorErrorKind::RankMismatch, message));
            }
            for (label, extent) in labels.iter().zip(*extents) {
                let known = found[usize::from(*label)].get_or_insert(*extent);
                if known != extent {
                    let message = format!("a label has {known} indices in one operand and {extent} in another");
                    return Err(Error::tensors(TensorErrorKind::SizeMismatch, message));
                }
            }
        }
        Ok(found.into_iter().map(|extent| extent.unwrap_or(1)).collect())
    }

    /// Checks that the combinations of the indices of all labels can be counted in a `usize`, because a loop over more combinations would never end.
    /// `extents` has the extent of each label.
    ///
    /// # Errors
    /// If there are more combinations than a `usize` can count.
    pub fn check_countable(&self, extents: &[usize]) -> Result<(), Error> {
        let all = extents.iter().try_fold(1_usize, |all, extent| all.checked_mul((*extent).max(1)));
        let message = || format!("a product has more than 2^{} terms, which is the limit", usize::BITS);
        all.map(drop).ok_or_else(|| Error::tensors(TensorErrorKind::Limit, message()))
    }

    /// Returns the extents of the product's result, for operands with the extents `operands`.
    ///
    /// # Errors
    /// The errors of [`label_extents`](Labels::label_extents). It is also an error if the result has a label twice, has
    /// a label that no operand has, or has more elements than can be counted.
    pub fn output_extents(&self, operands: &[&[usize]]) -> Result<Extents, Error> {
        let extents = self.label_extents(operands)?;
        let mut is_met = [false; u8::MAX as usize + 1];
        let mut made = Extents::new();
        for label in &self.output {
            if !self.operands.iter().any(|labels| labels.contains(label)) {
                return Err(Error::tensors(
                    TensorErrorKind::UnknownOutputLabel,
                    "a label of the result is in no operand",
                ));
            }
            if std::mem::replace(&mut is_met[usize::from(*label)], true) {
                return Err(Error::tensors(TensorErrorKind::RepeatedOutputLabel, "a label is twice in the result"));
            }
            made.push(extents[usize::from(*label)]);
        }
        index_count(&made)?;
        Ok(made)
    }
}
