//! Constant tensors as nodes of a graph: literal tensors, and the indices of an axis. A single number is an [`Operation::Constant`](crate::Operation)
//! instead, because an elementwise expression can contain it.

use crate::node::{Node, Operation};
use crate::{Extents, Tensor, TensorGraph, TensorNodeId};
use cembra_runtime::Scalar;
use cembra_value::Error;
use smallvec::SmallVec;
use std::fmt;
use std::hash::{Hash, Hasher};

/// A constant tensor with its elements in row-major order. Two constants are equal if their elements have the same
/// bits.
#[derive(Clone, PartialEq)]
pub struct ConstantTensor(Tensor);

impl ConstantTensor {
    /// The constant as a tensor with its elements.
    #[must_use]
    pub const fn tensor(&self) -> &Tensor {
        &self.0
    }

    fn bits(&self) -> impl ExactSizeIterator<Item = u64> {
        (0..self.0.data().len()).map(|at| self.0.data().bits(at))
    }
}

impl Eq for ConstantTensor {}

impl Hash for ConstantTensor {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.extents().hash(state);
        self.bits().for_each(|bits| bits.hash(state));
    }
}

/// Prints the type and the extents only, because the elements may be many.
impl fmt::Debug for ConstantTensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}", self.0.scalar_type().short_name(), self.0.extents())
    }
}

impl TensorGraph {
    /// Returns the node of a constant tensor. Two tensors with equal bits become one node.
    ///
    /// ```
    /// use cembra_tensor::{TensorGraph, Tensor};
    ///
    /// let mut g = TensorGraph::standard();
    /// let weights = g.constant_tensor(&Tensor::new(&[2], vec![0.5, 2.0])?)?;
    /// assert_eq!(g.constant_tensor(&Tensor::new(&[2], vec![0.5, 2.0])?)?, weights);
    /// assert_ne!(g.constant_tensor(&Tensor::new(&[2], vec![0.5, -2.0])?)?, weights);
    /// # Ok::<(), cembra_value::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the graph has too many nodes.
    pub fn constant_tensor(&mut self, tensor: &Tensor) -> Result<TensorNodeId, Error> {
        let tensor = Tensor::of_data(tensor.extents(), tensor.gathered())?;
        let (scalar, extents) = (tensor.scalar_type(), tensor.extents().into());
        let operation = Operation::Tensor(ConstantTensor(tensor));
        self.intern(Node { operation, operands: SmallVec::new(), scalar, extents })
    }

    /// Returns the integers `0..extent`, as an i64 tensor with one axis.
    ///
    /// # Errors
    /// If a tensor may not have `extent` elements, or the graph has too many nodes.
    pub fn iota(&mut self, extent: usize) -> Result<TensorNodeId, Error> {
        cembra_value::tensor::index_count(&[extent])?;
        let extents = Extents::from_slice(&[extent]);
        self.intern(Node { operation: Operation::Iota, operands: SmallVec::new(), scalar: Scalar::Int64, extents })
    }
}
