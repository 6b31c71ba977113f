//! Planned tensors, which have a shape and no tiles, for plans of evaluations (`graph/plan.rs`). Two facts replace the
//! tiles: whether the evaluation would compute them only when they are needed, and which other tensors would share
//! their memory.

use cembra_value::Error;
use cembra_value::tensor::TensorErrorKind as Kind;
use std::sync::Arc;

/// The facts that a planned tensor has instead of tiles: whether it would be lazy, and which tensors would share its memory.
#[derive(Clone, Debug)]
pub(crate) struct PlanTiles {
    /// True if an evaluation would compute the tiles only when they are needed.
    is_lazy: bool,
    /// A token that all tensors share whose tiles would be in the same memory. Only one of them counts its bytes.
    memory: Arc<()>,
}

impl PlanTiles {
    pub(crate) fn new(is_lazy: bool) -> PlanTiles {
        PlanTiles { is_lazy, memory: Arc::new(()) }
    }

    pub(crate) const fn is_lazy(&self) -> bool {
        self.is_lazy
    }

    pub(crate) fn shares_memory(&self, other: &PlanTiles) -> bool {
        Arc::ptr_eq(&self.memory, &other.memory)
    }
}

/// Returns the error for requesting a tile of a planned tensor, which has none.
#[cold]
pub(crate) fn without_tiles() -> Error {
    Error::tensors(Kind::Evaluation, "the tensor has no tiles, only a shape")
        .hint("use a tensor that has tiles: a tensor with only a shape is for plans")
}
