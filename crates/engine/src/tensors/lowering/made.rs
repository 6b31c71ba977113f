//! The result of lowering a program's node: a tensor, an expression over labels, a tuple, or a value that is not a tensor.

use cembra_expr::NodeId;
use cembra_tensor::TensorNodeId as Tensor;

/// A program's node that was lowered to a tensor without labels. If `is_weak`, the tensor takes on the type of the
/// values that it is combined with, as the literal `0.5` does.
#[derive(Clone, Copy, Debug)]
pub(super) struct LoweredTensor {
    pub(super) node: Tensor,
    pub(super) is_weak: bool,
    /// True if the tensor is a mask: a truth value without axes, which comparisons of scalars give. Operators on tensors take it as a truth value.
    pub(super) is_mask: bool,
}

impl LoweredTensor {
    /// Makes a lowered tensor whose type is known, and that is not a mask (a truth value from a comparison of scalars).
    pub(super) const fn of(node: Tensor) -> LoweredTensor {
        LoweredTensor { node, is_weak: false, is_mask: false }
    }
}

/// The result of lowering a program's node.
#[derive(Clone, Copy, Debug)]
pub(super) enum NodeForm {
    /// The node was not lowered: it is not needed, or it is a literal that only its users read.
    Nothing,
    /// The node is a tensor.
    Tensor(LoweredTensor),
    /// The node is an expression over labelled tensors, such as `a("i,k") * b("k,j")`. It is lowered when the text
    /// gives labels to the result, as in `c("i,j") = ..`.
    Labelled,
    /// The node is an expression over labelled tensors, and is assigned to a tensor with more labels. The assignment repeats the expression along the
    /// labels that it lacks.
    Unbound,
    /// The node's value is a tuple, which this node of the program makes.
    Tuple(NodeId),
    /// The node is not computed by tensors: it is a text, an optional value, an array.
    NonTensor,
}
