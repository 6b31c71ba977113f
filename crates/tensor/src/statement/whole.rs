//! Numbers that are made of all elements, as methods of labelled expressions make them.

use crate::node::Reduction;
use crate::{TensorGraph, TensorNodeId};
use cembra_ops::id;
use cembra_value::Error;

/// A number that is made of all elements of an expression.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FullReduction {
    /// Their sum.
    Sum,
    /// Their product.
    Product,
    /// The smallest.
    Min,
    /// The largest.
    Max,
    /// The smallest magnitude.
    AbsMin,
    /// The largest magnitude.
    AbsMax,
    /// The square root of the sum of their squares.
    Norm,
    /// The sum of their squares.
    SquaredNorm,
    /// The sum of the diagonal of what has two axes.
    Trace,
}

impl FullReduction {
    /// The number of a node.
    ///
    /// ```
    /// use cembra_runtime::Scalar;
    /// use cembra_tensor::{TensorGraph, FullReduction};
    ///
    /// let mut g = TensorGraph::standard();
    /// let a = g.leaf("a", Scalar::Float64, &[2, 3])?;
    /// let norm = FullReduction::Norm.of(&mut g, a)?;
    /// assert!(g.extents(norm).is_empty());
    /// # Ok::<(), cembra_value::Error>(())
    /// ```
    ///
    /// # Errors
    /// Elements of a type that has no such number, the smallest or largest of none, or a trace of other than two axes.
    pub fn of(self, graph: &mut TensorGraph, node: TensorNodeId) -> Result<TensorNodeId, Error> {
        let axes: Vec<usize> = (0..graph.extents(node).len()).collect();
        let absolute = |g: &mut TensorGraph| g.map(id::ABS, &[node]);
        match self {
            FullReduction::Sum => graph.reduce(Reduction::Sum, node, &axes),
            FullReduction::Product => graph.reduce(Reduction::Product, node, &axes),
            FullReduction::Min => graph.reduce(Reduction::Min, node, &axes),
            FullReduction::Max => graph.reduce(Reduction::Max, node, &axes),
            FullReduction::AbsMin => absolute(graph).and_then(|node| graph.reduce(Reduction::Min, node, &axes)),
            FullReduction::AbsMax => absolute(graph).and_then(|node| graph.reduce(Reduction::Max, node, &axes)),
            FullReduction::Norm | FullReduction::SquaredNorm => {
                let squares = graph.map(id::TENSOR_SQUARE, &[node])?;
                let sum = graph.reduce(Reduction::Sum, squares, &axes)?;
                if self == FullReduction::SquaredNorm {
                    return Ok(sum);
                }
                // The root has no slope at 0, where the norm has its least value: it is not chosen there, so that the gradient is 0.
                let zero = graph.constant(graph.scalar(sum), 0.0)?;
                let root = graph.map(id::SQRT, &[sum])?;
                let is_zero = graph.map(id::BOOL_EQUAL, &[sum, zero])?;
                graph.map(id::TENSOR_WHERE, &[is_zero, zero, root])
            }
            FullReduction::Trace => {
                check_trace(axes.len())?;
                let diagonal = graph.with_axes(node, &[0, 0])?;
                graph.reduce(Reduction::Sum, diagonal, &[0])
            }
        }
    }
}

/// An error unless an expression of this many axes has a trace.
pub(super) fn check_trace(axes: usize) -> Result<(), Error> {
    if axes == 2 {
        return Ok(());
    }
    let error =
        Error::tensors(crate::TensorErrorKind::RankMismatch, format!("the trace of an expression of {axes} labels"));
    Err(error.hint("a matrix has one: `a(\"i,j\").trace()`"))
}
