//! A planned tensor has a shape and no tiles. In place of its tiles it notes two facts: whether an evaluation would make them when they are needed,
//! and with which tensors it would share their memory. `graph/plan.rs` makes plans.

use cembra_value::Error;
use cembra_value::tensor::TensorErrorKind as Kind;
use std::sync::Arc;

/// What a planned tensor has in place of its tiles.
#[derive(Clone, Debug)]
pub(crate) struct Planned {
    /// True if tiles would be made when they are needed.
    is_lazy: bool,
    /// One for all tensors whose tiles would be in the memory of one of them: the others take no bytes.
    memory: Arc<()>,
}

impl Planned {
    pub(crate) fn new(is_lazy: bool) -> Planned {
        Planned { is_lazy, memory: Arc::new(()) }
    }

    pub(crate) const fn is_lazy(&self) -> bool {
        self.is_lazy
    }

    pub(crate) fn shares_memory(&self, other: &Planned) -> bool {
        Arc::ptr_eq(&self.memory, &other.memory)
    }
}

/// A tile was asked for where there are none.
#[cold]
pub(crate) fn without_tiles() -> Error {
    Error::tensors(Kind::Evaluation, "a tile of a tensor of which only the shape is known")
        .hint("such tensors are for plans: give one that has tiles")
}
