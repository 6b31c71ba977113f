//! Cotangents, and the elements for which they exist. An element that was not chosen has no cotangent: whatever it would be multiplied with
//! does not count, even infinity. A mask beside the numbers marks such elements, because 0 times infinity would be NaN.

use crate::node::Operation;
use crate::{Extents, TensorGraph, TensorNodeId};
use cembra_ops::id;
use cembra_value::Error;
use smallvec::SmallVec;

type NodeResult = Result<TensorNodeId, Error>;

/// The cotangent of a node: its numbers, and a mask of the elements that have one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cotangent {
    /// The numbers of the cotangent, with the type and extents of its node.
    pub(crate) value: TensorNodeId,
    /// A mask that broadcasts to the extents of the numbers, true where the cotangent exists. `None` if it exists everywhere.
    pub(crate) exists: Option<TensorNodeId>,
    /// True if the numbers are 0 where the cotangent does not exist. They may be anything else, such as NaN.
    pub(crate) is_zero_elsewhere: bool,
}

/// The cotangents that a node gives its differentiated operands, in their order; `None` for an operand that gets none.
pub(crate) type OperandCotangents = SmallVec<[Option<Cotangent>; 3]>;

/// The way in which an operation carries the cotangent of its result to an operand. All are linear, with factors that are 0 or 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Carried {
    /// A view: an element of the operand gets one of the numbers.
    Seen,
    /// A sum: an element of the operand gets the sum of some of the numbers.
    Added,
    /// A scatter: the elements of the operand that the operation read get a number, or the sum of some. The other elements get none.
    Placed,
}

impl Cotangent {
    /// A cotangent that exists for all elements.
    pub(crate) fn everywhere(value: TensorNodeId) -> Cotangent {
        Cotangent { value, exists: None, is_zero_elsewhere: false }
    }

    /// The numbers of the cotangent, with zeros where it does not exist.
    pub(crate) fn with_zeros(self, graph: &mut TensorGraph) -> NodeResult {
        match self.exists {
            Some(exists) if !self.is_zero_elsewhere => {
                let zero = graph.constant(graph.scalar(self.value), 0.0)?;
                graph.map(id::TENSOR_WHERE, &[exists, self.value, zero])
            }
            _ => Ok(self.value),
        }
    }

    /// True if the mask has axes, so that it may differ between elements.
    pub(crate) fn is_masked(&self, graph: &TensorGraph) -> bool {
        self.exists.is_some_and(|exists| !graph.extents(exists).is_empty())
    }

    /// Restricts the cotangent to the elements where `mask` holds too. `None` restricts nothing.
    pub(crate) fn within(self, graph: &mut TensorGraph, mask: Option<TensorNodeId>) -> Result<Cotangent, Error> {
        let exists = match (self.exists, mask) {
            (Some(own), Some(mask)) => Some(graph.map(id::LOGICAL_AND, &[own, mask])?),
            (own, mask) => own.or(mask),
        };
        Ok(Cotangent { exists, is_zero_elsewhere: self.is_zero_elsewhere && mask.is_none(), ..self })
    }

    /// Returns the cotangents `made` by a function that was given this cotangent with zeros where it does not exist. A mask without axes
    /// holds for them too. A mask with axes is dropped, because it is not known which elements of the operands the function read for which
    /// element of its result.
    pub(crate) fn for_all(
        self,
        graph: &TensorGraph,
        made: impl IntoIterator<Item = Option<TensorNodeId>>,
    ) -> SmallVec<[Option<Cotangent>; 3]> {
        let exists = self.exists.filter(|_| !self.is_masked(graph));
        made.into_iter().map(|made| made.map(|value| Cotangent { exists, ..Cotangent::everywhere(value) })).collect()
    }

    /// The sum of two cotangents of a node.
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

    /// Returns the cotangent that `operand` has through an operation. `carry` computes its numbers from those of the result. `carry` also
    /// computes its mask from that of the result: as truth values, or as numbers that are 1 where the mask holds and 0 elsewhere.
    pub(crate) fn carried(
        self,
        graph: &mut TensorGraph,
        operand: TensorNodeId,
        how: Carried,
        carry: impl Fn(&mut TensorGraph, TensorNodeId) -> NodeResult,
    ) -> Result<Cotangent, Error> {
        let is_masked = self.is_masked(graph);
        // An input passes its cotangent on to no operand, so no mask is needed once the numbers are 0 elsewhere.
        let is_last = graph.node(operand).operands.is_empty();
        // A mask without axes stays as it is.
        if !is_masked && (is_last || how != Carried::Placed || graph.is_for_tiles()) {
            return Ok(Cotangent { value: carry(graph, self.value)?, ..self });
        }
        let is_view = how == Carried::Seen && !is_last;
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
