//! The form of a program's node after lowering: a tensor, an expression over labels, a tuple, or a value that is not a
//! tensor.

use cembra_expr::NodeId;
use cembra_tensor::TensorNodeId as Tensor;

/// A tensor without labels: its node, and whether its type is still open, as the type of the literal `0.5` is.
#[derive(Clone, Copy, Debug)]
pub(super) struct LoweredTensor {
    pub(super) node: Tensor,
    pub(super) is_weak: bool,
    /// True if the tensor is a mask: a truth value without axes that comparisons of scalars give. Operators on tensors take
    /// it as a truth value.
    pub(super) is_mask: bool,
}

impl LoweredTensor {
    /// A value whose type is known.
    pub(super) const fn of(node: Tensor) -> LoweredTensor {
        LoweredTensor { node, is_weak: false, is_mask: false }
    }
}

/// The form of a lowered node.
#[derive(Clone, Copy, Debug)]
pub(super) enum NodeForm {
    /// Not lowered: not needed, or a literal that only its users read.
    Nothing,
    /// A tensor.
    Tensor(LoweredTensor),
    /// An expression over labelled tensors; it is lowered when it is bound to labels.
    Labelled,
    /// An expression over labelled tensors that lacks labels of its target. An assignment repeats it along those labels.
    Unbound,
    /// The tuple that this node makes.
    Tuple(NodeId),
    /// A value that is not computed by tensors: a text, an optional value, an array.
    Apart,
}
