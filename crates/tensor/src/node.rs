//! Nodes of graphs: what operations there are, on what, and what comes of them.

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

/// The number of an axis.
pub type Axis = u8;

/// Some axes, or where axes go.
pub type Axes = SmallVec<[Axis; 8]>;

/// A node of a graph.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TensorNodeId(pub(crate) u32);

impl TensorNodeId {
    /// The node's position: operands have lower ones.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// How many elements become one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Reduction {
    /// The sum; integers wrap. 0 of none.
    Sum,
    /// The product; integers wrap. 1 of none.
    Product,
    /// The largest: a NaN wins, and +0 is above -0.
    Max,
    /// The smallest: a NaN wins, and -0 is below +0.
    Min,
    /// True if one is. False of none.
    Any,
    /// True if all are. True of none.
    All,
}

/// Which axes of operands, and of a result, have one label. Labels are numbers; equal ones have equal extents.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Labels {
    /// The labels of each operand's axes.
    pub operands: Vec<Axes>,
    /// The labels of the result's axes, each once. Labels that it does not have are summed over.
    pub output: Axes,
}

/// What a node does.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Operation {
    /// The input of this number.
    Leaf(u32),
    /// Something of which nothing is known, not even a value: what forward mode differentiates by. Each is another one.
    Seed(u32),
    /// A number, or truth value, of no axes: its bits in the layout of frames, with zeros behind them.
    Constant(u64),
    /// A tensor whose elements are known.
    Tensor(ConstantTensor),
    /// For each index of the only axis its number.
    Iota,
    /// A scalar operator on each element, operands being broadcast to the extents of the result.
    Map(ElementOperator),
    /// A reduction over some axes, in ascending order.
    Reduce(Reduction, Axes),
    /// Products of elements, summed over the labels that the result does not have.
    Contract(Arc<Labels>),
    /// Axis `i` of the operand as axis `to[i]` of the result; what goes to one axis is a diagonal.
    Axes(Axes),
    /// A slice of each axis.
    Slice(SmallVec<[Slice; 2]>),
    /// The same elements for all indices of new axes, or of axes of extent 1.
    Broadcast,
    /// The same elements in the same order under other extents.
    Reshape,
    /// Zeros, but for the diagonals that `Axes` sees: they are the operand.
    PlaceAxes(Axes),
    /// Zeros, but for the slices: they are the first operand. A second one is the node that they are slices of. It is not read: the zeros are cut
    /// into tiles as it is, where tensors have tiles.
    PlaceSlice(SmallVec<[Slice; 2]>),
    /// The indices of an axis that the second operand names: its axes stand in the place of that axis.
    Take(Axis),
    /// Zeros, to which is added, at the indices of an axis that the second operand names, what the first has for each.
    PlaceTake(Axis),
    /// The operands one behind the other along an axis.
    Concat(Axis),
    /// The first operand, of whose gradient something else is said.
    CustomVjp(CustomVjp),
    /// An operation of a user.
    Custom(Custom),
    /// The operand, of which nothing else is known. Each is another one.
    Barrier(u32),
}

/// A node: what it does, on what, and what comes of it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Node {
    /// What it does.
    pub operation: Operation,
    /// On what.
    pub operands: SmallVec<[TensorNodeId; 2]>,
    /// The type of its elements.
    pub scalar: Scalar,
    /// The number of indices of each of its axes.
    pub extents: Extents,
}

impl Node {
    /// The operands whose values the node's value is made of. Others are there for its gradient alone, or for its tiles.
    #[must_use]
    pub fn read(&self) -> &[TensorNodeId] {
        match self.operation {
            Operation::CustomVjp(_) | Operation::PlaceSlice(_) => &self.operands[..1],
            _ => &self.operands,
        }
    }

    /// The operands whose tiles say how the node's value is cut into tiles: those that it is made of. A slice among zeros is cut as what it is a
    /// slice of, and has none if that is not known.
    #[must_use]
    pub fn cut_by(&self) -> &[TensorNodeId] {
        match self.operation {
            Operation::PlaceSlice(_) => &self.operands[1..],
            _ => self.read(),
        }
    }

    /// The operands that its value or gradients of it need.
    pub(crate) fn kept(&self) -> &[TensorNodeId] {
        match self.operation {
            Operation::PlaceSlice(_) => self.read(),
            _ => &self.operands,
        }
    }

    /// The same node, with no operand that says how it is cut alone.
    pub(crate) fn without_cuts(&self) -> Node {
        Node { operands: self.kept().into(), ..self.clone() }
    }

    /// The operands that its derivatives are of.
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
    /// Its name; may be empty.
    pub name: Arc<str>,
    /// Its node.
    pub node: TensorNodeId,
}

impl Labels {
    /// True if an operand has a label that the result does not have, be it one of one index: then products are summed, from +0 on.
    #[must_use]
    pub fn is_sum(&self) -> bool {
        self.operands.iter().flatten().any(|label| !self.output.contains(label))
    }

    /// How many indices each label has.
    ///
    /// # Errors
    /// Uses of a label have unlike extents, or operands another number of axes than of labels.
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

    /// An error if all labels together, of these extents, have more indices than can be counted: a loop over them all has no end.
    ///
    /// # Errors
    /// They have.
    pub fn check_countable(&self, extents: &[usize]) -> Result<(), Error> {
        let all = extents.iter().try_fold(1_usize, |all, extent| all.checked_mul((*extent).max(1)));
        let message = || format!("a product of more than 2^{} terms", usize::BITS);
        all.map(drop).ok_or_else(|| Error::tensors(TensorErrorKind::Limit, message()))
    }

    /// The extents of the result of a product of operands of these extents.
    ///
    /// # Errors
    /// As for [`label_extents`](Labels::label_extents); a label of the result that no operand has, or that it has twice; more elements than can
    /// be counted.
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
