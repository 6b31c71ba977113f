//! Cotangents, and the elements for which they exist. If a conditional did not choose an element, the element has no
//! cotangent. A cotangent of 0 would be wrong, because a later factor may be infinite, and 0 times infinity is NaN. So
//! a cotangent consists of values and of a mask, which marks the elements that have a cotangent.

use crate::node::Operation;
use crate::{Extents, TensorGraph, TensorNodeId};
use cembra_ops::id;
use cembra_value::Error;
use smallvec::SmallVec;

type NodeResult = Result<TensorNodeId, Error>;

/// The cotangent of a node: its values, and a mask of the elements for which it exists.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cotangent {
    /// The node with the values of the cotangent. It has the type and the extents of the node that the cotangent belongs to.
    pub(crate) value: TensorNodeId,
    /// A mask that broadcasts to the extents of the values, true where the cotangent exists. `None` if the cotangent exists everywhere.
    pub(crate) exists: Option<TensorNodeId>,
    /// True if the values are 0 where the cotangent does not exist. If false, the values there may be anything, such as NaN.
    pub(crate) is_zero_elsewhere: bool,
}

/// The cotangents that a node passes to its differentiated operands, in their order; `None` for an operand without a cotangent.
pub(crate) type OperandCotangents = SmallVec<[Option<Cotangent>; 3]>;

/// The way in which an operation passes the cotangent of its result on to an operand: as a view, as sums, or to some
/// elements only. In each way, an element of the operand receives a sum of elements of the result's cotangent, each
/// with the factor 0 or 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CotangentRule {
    /// An element of the operand receives one element of the cotangent: the cotangent is viewed, as for a reshape.
    Seen,
    /// An element of the operand receives the sum of some of the cotangent's elements, as for a broadcast.
    Added,
    /// Only the elements of the operand that the operation reads receive a cotangent, as for a slice: an element of the result's cotangent, or the
    /// sum of several. The operand's other elements receive none.
    Placed,
}

impl Cotangent {
    /// Makes a cotangent that exists for all elements.
    pub(crate) fn everywhere(value: TensorNodeId) -> Cotangent {
        Cotangent { value, exists: None, is_zero_elsewhere: false }
    }

    /// Returns the values of the cotangent, with zeros where it does not exist.
    pub(crate) fn with_zeros(self, graph: &mut TensorGraph) -> NodeResult {
        match self.exists {
            Some(exists) if !self.is_zero_elsewhere => {
                let zero = graph.constant(graph.scalar(self.value), 0.0)?;
                graph.map(id::TENSOR_WHERE, &[exists, self.value, zero])
            }
            _ => Ok(self.value),
        }
    }

    /// Returns true if the cotangent's mask has axes, so that the cotangent may exist for some elements only.
    pub(crate) fn is_masked(&self, graph: &TensorGraph) -> bool {
        self.exists.is_some_and(|exists| !graph.extents(exists).is_empty())
    }

    /// Restricts the cotangent to the elements where `mask` is true too. `None` restricts nothing.
    pub(crate) fn within(self, graph: &mut TensorGraph, mask: Option<TensorNodeId>) -> Result<Cotangent, Error> {
        let exists = match (self.exists, mask) {
            (Some(own), Some(mask)) => Some(graph.map(id::LOGICAL_AND, &[own, mask])?),
            (own, mask) => own.or(mask),
        };
        Ok(Cotangent { exists, is_zero_elsewhere: self.is_zero_elsewhere && mask.is_none(), ..self })
    }

    /// Returns the cotangents of operands whose values are `made`. These values were computed from this cotangent, with
    /// zeros where this cotangent does not exist. If the mask of this cotangent has no axes, the results get this mask
    /// too. If the mask has axes, the results get no mask, because it is not known which elements of the operands
    /// affect which element of the result.
    pub(crate) fn for_all(
        self,
        graph: &TensorGraph,
        made: impl IntoIterator<Item = Option<TensorNodeId>>,
    ) -> SmallVec<[Option<Cotangent>; 3]> {
        let exists = self.exists.filter(|_| !self.is_masked(graph));
        made.into_iter().map(|made| made.map(|value| Cotangent { exists, ..Cotangent::everywhere(value) })).collect()
    }

    /// Returns the sum of two cotangents of the same node.
    pub(crate) fn plus(self, other: Cotangent, graph: &mut TensorGraph) -> Result<Cotangent, Error> {
        if self.exists == other.exists {
            let value = graph.map(id::ADD, &[self.value, other.value])?;
            let is_zero_elsewhere = self.is_zero_elsewhere && other.is_zero_elsewhere;
            return Ok(Cotangent { value, exists: self.exists, is_zero_elsewhere });
        }
        let Some((own, others)) = self.exists.zip(other.exists) else {
            let terms = [self.with_zeros(graph)?, other.with_zeros(graph)?];
            return graph.map(id::ADD, &terms).map(Cotangent::everywhere);
        };
        let is_opposite = |graph: &TensorGraph, [a, b]: [TensorNodeId; 2]| {
            let node = graph.node(a);
            matches!(&node.operation, Operation::Map(op) if op.id() == id::LOGICAL_NOT && node.operands[..] == [b])
        };
        if is_opposite(graph, [own, others]) || is_opposite(graph, [others, own]) {
            return graph.map(id::TENSOR_WHERE, &[own, self.value, other.value]).map(Cotangent::everywhere);
        }
        let terms = [self.with_zeros(graph)?, other.with_zeros(graph)?];
        let value = graph.map(id::ADD, &terms)?;
        let exists = graph.map(id::LOGICAL_OR, &[own, others])?;
        Ok(Cotangent { value, exists: Some(exists), is_zero_elsewhere: true })
    }

    /// Returns the cotangent of `operand` that follows from this cotangent of an operation's result. `carry` computes
    /// the operand's values from the values of this cotangent. `carry` also computes the operand's mask from this
    /// cotangent's mask, which is given as truth values, or as numbers: 1 where the mask is true and 0 elsewhere.
    pub(crate) fn carried(
        self,
        graph: &mut TensorGraph,
        operand: TensorNodeId,
        how: CotangentRule,
        carry: impl Fn(&mut TensorGraph, TensorNodeId) -> NodeResult,
    ) -> Result<Cotangent, Error> {
        let is_masked = self.is_masked(graph);
        // An input passes its cotangent on to no operand, so no mask is needed once the numbers are 0 elsewhere.
        let is_last = graph.node(operand).operands.is_empty();
        // A mask without axes stays as it is.
        if !is_masked && (is_last || how != CotangentRule::Placed || graph.is_for_tiles()) {
            return Ok(Cotangent { value: carry(graph, self.value)?, ..self });
        }
        let is_view = how == CotangentRule::Seen && !is_last;
        let value = if is_view { self.value } else { self.with_zeros(graph)? };
        let value = carry(graph, value)?;
        if is_last {
            return Ok(Cotangent::everywhere(value));
        }
        let is_zero_elsewhere = !is_view || self.is_zero_elsewhere;
        let extents: Extents = graph.extents(self.value).into();
        let exists = match self.exists.filter(|_| is_masked) {
            Some(exists) if is_view && !graph.is_for_tiles() => {
                let exists = graph.broadcast(exists, &extents)?;
                carry(graph, exists)?
            }
            // Tiles have no truth values, and truth values are not added up.
            exists => {
                let scalar = graph.scalar(self.value);
                let mut ones = graph.constant(scalar, 1.0)?;
                let zero = graph.constant(scalar, 0.0)?;
                if let Some(exists) = exists {
                    ones = graph.map(id::TENSOR_WHERE, &[exists, ones, zero])?;
                }
                let ones = graph.broadcast(ones, &extents)?;
                let found = carry(graph, ones)?;
                graph.map(id::BOOL_GREATER, &[found, zero])?
            }
        };
        let carried = Cotangent { value, exists: Some(exists), is_zero_elsewhere };
        // A mask without axes holds for all elements of the operand too.
        if is_masked { Ok(carried) } else { carried.within(graph, self.exists) }
    }
}
