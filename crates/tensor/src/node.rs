//! Nodes of graphs: the operations, their operands, and the types and extents of their results.

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

/// The number of an axis or of a label.
pub type Axis = u8;

/// A list of axes or labels; in a transposition, the axis that each axis goes to.
pub type Axes = SmallVec<[Axis; 8]>;

/// The number of a node in its graph.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TensorNodeId(pub(crate) u32);

impl TensorNodeId {
    /// The node's position in its graph. Operands have lower positions.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// The way in which several elements become one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Reduction {
    /// The sum; integers wrap. 0 if there are no elements.
    Sum,
    /// The product; integers wrap. 1 if there are no elements.
    Product,
    /// The largest element. A NaN counts as the largest, and +0 is above -0.
    Max,
    /// The smallest element. A NaN counts as the smallest, and -0 is below +0.
    Min,
    /// True if at least one element is true; false if there are no elements.
    Any,
    /// True if all elements are true; true if there are no elements.
    All,
}

/// The labels of the axes of a product. Labels are numbers; axes with the same label have the same extent.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Labels {
    /// The labels of the axes of each operand.
    pub operands: Vec<Axes>,
    /// The labels of the result's axes, which must differ. Labels that the result does not have are summed over.
    pub output: Axes,
}

/// The operation of a node.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Operation {
    /// The input with this number.
    Leaf(u32),
    /// A node without a value, by which forward mode differentiates. The number makes each seed a node of its own.
    Seed(u32),
    /// A number or truth value without axes: its bits in the layout of frames, padded with zeros.
    Constant(u64),
    /// A constant tensor.
    Tensor(ConstantTensor),
    /// The index along the only axis, as i64.
    Iota,
    /// A scalar operator on each element, with operands broadcast to the extents of the result.
    Map(ElementOperator),
    /// A reduction over these axes, which are in ascending order.
    Reduce(Reduction, Axes),
    /// A product by labels: products of elements, summed over the labels that the result does not have.
    Contract(Arc<Labels>),
    /// Axis `i` of the operand moves to axis `to[i]` of the result; several axes that go to one are a diagonal.
    Axes(Axes),
    /// The operand's elements in a slice of each axis.
    Slice(SmallVec<[Slice; 2]>),
    /// The elements repeated for all indices of new axes, or of axes of extent 1.
    Broadcast,
    /// The elements in the same order under other extents.
    Reshape,
    /// Zeros, except for the diagonals that `Axes` would select: these are the operand.
    PlaceAxes(Axes),
    /// Zeros, except for the slices, which are the first operand. A second operand is the node that they are slices of. It is not read:
    /// where tensors have tiles, the zeros are cut as that node is.
    PlaceSlice(SmallVec<[Slice; 2]>),
    /// The indices of an axis that the second operand contains. The axes of the second operand replace that axis.
    Take(Axis),
    /// Zeros, to which the first operand is added at the indices of an axis that the second operand contains.
    PlaceTake(Axis),
    /// The operands concatenated along an axis.
    Concat(Axis),
    /// The first operand, with a gradient that a user defines.
    CustomVjp(CustomVjp),
    /// An operation of a user.
    Custom(Custom),
    /// The operand, hidden from rewrites. The number makes each barrier a node of its own.
    Barrier(u32),
}

/// A node: its operation, its operands, and the type and extents of its result.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Node {
    /// The operation of the node.
    pub operation: Operation,
    /// The operands of the operation.
    pub operands: SmallVec<[TensorNodeId; 2]>,
    /// The type of the result's elements.
    pub scalar: Scalar,
    /// The number of indices of each axis of the result.
    pub extents: Extents,
}

impl Node {
    /// The operands from which the node's value is computed. Other operands serve its gradient or its tiles alone.
    #[must_use]
    pub fn read(&self) -> &[TensorNodeId] {
        match self.operation {
            Operation::CustomVjp(_) | Operation::PlaceSlice(_) => &self.operands[..1],
            _ => &self.operands,
        }
    }

    /// The operands whose tiles decide how the node's value is cut into tiles: those from which it is computed. A slice among zeros is cut
    /// as the node that it is a slice of, and the list is empty if that is not known.
    #[must_use]
    pub fn cut_by(&self) -> &[TensorNodeId] {
        match self.operation {
            Operation::PlaceSlice(_) => &self.operands[1..],
            _ => self.read(),
        }
    }

    /// The operands that the node's value or gradients of it need.
    pub(crate) fn kept(&self) -> &[TensorNodeId] {
        match self.operation {
            Operation::PlaceSlice(_) => self.read(),
            _ => &self.operands,
        }
    }

    /// Returns the node without operands that only decide how it is cut into tiles.
    pub(crate) fn without_cuts(&self) -> Node {
        Node { operands: self.kept().into(), ..self.clone() }
    }

    /// The operands with respect to which the node is differentiated.
    pub(crate) fn differentiated(&self) -> &[TensorNodeId] {
        match &self.operation {
            Operation::CustomVjp(custom) => custom.inputs(self),
            Operation::PlaceSlice(_) => self.read(),
            _ => &self.operands,
        }
    }
}

/// An input of a graph.
#[derive(Clone, PartialEq, Debug)]
pub struct Leaf {
    /// The name of the input; may be empty.
    pub name: Arc<str>,
    /// The node of the input.
    pub node: TensorNodeId,
}

impl Labels {
    /// True if an operand has a label that the result does not have, even one of extent 1: then products are summed, starting with +0.
    #[must_use]
    pub fn is_sum(&self) -> bool {
        self.operands.iter().flatten().any(|label| !self.output.contains(label))
    }

    /// The extent of each label, by its number.
    ///
    /// # Errors
    /// If uses of a label have unlike extents, or an operand has not one label per axis.
    pub fn label_extents(&self, operands: &[&[usize]]) -> Result<Vec<usize>, Error> {
        if operands.len() != self.operands.len() {
            let message = format!("{} operands for {} lists of labels", operands.len(), self.operands.len());
            return Err(Error::tensors(TensorErrorKind::OperandCount, message));
        }
        let labels = self.operands.iter().flatten().map(|label| usize::from(*label) + 1).max().unwrap_or(0);
        let mut found: Vec<Option<usize>> = vec![None; labels];
        for (labels, extents) in self.operands.iter().zip(operands) {
            if labels.len() != extents.len() {
                let message = format!("{} labels for a tensor of {} axes", labels.len(), extents.len());
                return Err(Error::tensors(TensorErrorKind::RankMismatch, message));
            }
            for (label, extent) in labels.iter().zip(*extents) {
                let known = found[usize::from(*label)].get_or_insert(*extent);
                if known != extent {
                    let message = format!("a label of {known} indices and of {extent}");
                    return Err(Error::tensors(TensorErrorKind::SizeMismatch, message));
                }
            }
        }
        Ok(found.into_iter().map(|extent| extent.unwrap_or(1)).collect())
    }

    /// Checks that the indices of all labels together can be counted, because a loop over more would have no end. `extents` has the extents
    /// of the labels.
    ///
    /// # Errors
    /// If there are more than a `usize` can count.
    pub fn check_countable(&self, extents: &[usize]) -> Result<(), Error> {
        let all = extents.iter().try_fold(1_usize, |all, extent| all.checked_mul((*extent).max(1)));
        let message = || format!("a product of more than 2^{} terms", usize::BITS);
        all.map(drop).ok_or_else(|| Error::tensors(TensorErrorKind::Limit, message()))
    }

    /// The extents of the result of a product of operands with these extents.
    ///
    /// # Errors
    /// The errors of [`label_extents`](Labels::label_extents); a label of the result that no operand has, or that it has twice; more
    /// elements than can be counted.
    pub fn output_extents(&self, operands: &[&[usize]]) -> Result<Extents, Error> {
        let extents = self.label_extents(operands)?;
        let mut is_met = [false; u8::MAX as usize + 1];
        let mut made = Extents::new();
        for label in &self.output {
            if !self.operands.iter().any(|labels| labels.contains(label)) {
                return Err(Error::tensors(
                    TensorErrorKind::UnknownOutputLabel,
                    "a label of the result that no operand has",
                ));
            }
            if std::mem::replace(&mut is_met[usize::from(*label)], true) {
                return Err(Error::tensors(TensorErrorKind::RepeatedOutputLabel, "a label that the result has twice"));
            }
            made.push(extents[usize::from(*label)]);
        }
        index_count(&made)?;
        Ok(made)
    }
}
