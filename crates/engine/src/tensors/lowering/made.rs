//! The form of a node of a program once it is lowered: a tensor, an expression over labels, a tuple, or a value beside tensors.

use cembra_expr::NodeId;
use cembra_tensor::TensorNodeId as Tensor;

/// A tensor without labels: its node, and whether its type is still open, as the type of the literal `0.5` is.
#[derive(Clone, Copy, Debug)]
pub(super) struct LoweredTensor {
    pub(super) node: Tensor,
    pub(super) is_weak: bool,
    /// True for a mask: a number without axes that says whether something holds, as comparisons of scalars are. A tensor takes it as a truth
    /// value.
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
    /// Nothing that is needed, or what only calls look at: a literal.
    Nothing,
    /// A tensor.
    Tensor(LoweredTensor),
    /// An expression over labelled tensors, which is lowered where it gets labels of its own.
    Labelled,
    /// An expression over labelled tensors that lacks labels of what it is bound to. A line that changes a tensor repeats it along them.
    Unbound,
    /// The tuple that this node makes.
    Tuple(NodeId),
    /// A value that is computed beside tensors: a text, an optional value, an array.
    Apart,
}
