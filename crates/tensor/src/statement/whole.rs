//! Reductions of all elements to one number, which labelled expressions have as methods, such as `a("i,j").trace()`.

use crate::node::Reduction;
use crate::{TensorGraph, TensorNodeId};
use cembra_ops::id;
use cembra_value::Error;

/// A reduction of all elements of an expression to one number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FullReduction {
    /// The sum of all elements.
    Sum,
    /// The product of all elements.
    Product,
    /// The smallest of all elements.
    Min,
    /// The largest of all elements.
    Max,
    /// The smallest absolute value among the elements.
    AbsMin,
    /// The largest absolute value among the elements.
    AbsMax,
    /// The Euclidean norm: the square root of the sum of the squares of the elements.
    Norm,
    /// The sum of the squares of the elements.
    SquaredNorm,
    /// The sum of the diagonal elements of a matrix.
    Trace,
}

impl FullReduction {
    /// Reduces all elements of `node` to one number, as a new node.
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
    /// If the reduction does not exist for the element type, if a minimum or maximum has no elements, or if the `node`
    /// of a trace does not have two axes.
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

/// Checks that a labelled expression of `axes` axes has a trace: it must have two.
pub(super) fn check_trace(axes: usize) -> Result<(), Error> {
    if axes == 2 {
        return Ok(());
    }
    let error = Error::tensors(
        crate::TensorErrorKind::RankMismatch,
        format!("a trace needs an expression with 2 labels, found {axes}"),
    );
    Err(error.hint("write the trace of a matrix: `a(\"i,j\").trace()`"))
}
