//! Products by labels (einsum of two operands), bound to the layouts of their operands. A product is computed in panels, which are ranges of its
//! first axis, in two cases: if maps follow it, so that they read elements that are still in the cache; and if it is large, so that several threads
//! can share it. The panels depend on extents alone, not on the number of threads.

use super::memory::{Memory, Operand, StridedView};
use crate::tensors::product::PlannedProduct;
use cembra_tensor::{DataMut, Elements, Labels, Node, TensorBytes, reference};
use cembra_value::Error;
use std::sync::Arc;

/// A panel of a product by labels (einsum of two operands). A panel is a range of the first axis of the product's result.
#[derive(Debug)]
pub(super) struct ProductPiece {
    /// The plan that computes the panel (a range of the result's first axis); `None` if the reference implementation
    /// computes it.
    pub(super) planned: Option<Arc<PlannedProduct>>,
    /// The two factors of the product, as they are read for the panel (a range of the result's first axis).
    pub(super) operands: [Operand; 2],
    pub(super) whole: Arc<FullProduct>,
}

/// The whole product to which a panel (a range of the first axis) belongs, for the reference implementation.
#[derive(Debug)]
pub(super) struct FullProduct {
    pub(super) product: Node,
    pub(super) labels: Arc<Labels>,
    pub(super) operands: [StridedView; 2],
}

impl ProductPiece {
    /// Adds to `held` the bytes of memory that the product takes besides its result.
    ///
    /// # Errors
    /// If the total exceeds the limit on bytes of `held`.
    pub(super) fn count_bytes(&self, held: &mut TensorBytes) -> Result<(), Error> {
        match &self.planned {
            Some(planned) => planned.temporaries().try_for_each(|(scalar, len)| held.take(scalar, &[len])),
            // The reference computes the whole product in memory of its own.
            None => held.take(self.whole.product.scalar, &self.whole.product.extents),
        }
    }

    /// Computes the panel (a range of the result's first axis) that begins at the index `starts`, and overwrites the
    /// elements of `to`.
    pub(super) fn run(&self, memory: &mut Memory<'_>, starts: &[usize], to: &mut DataMut<'_>) -> Result<(), Error> {
        let Some(planned) = &self.planned else {
            let FullProduct { product, labels, operands: [a, b] } = &*self.whole;
            let (a, b) = (memory.sources.tensor(a)?, memory.sources.tensor(b)?);
            return to
                .reborrow()
                .copy_from(&reference::contract(labels, &[&a, &b], product, &|| memory.sources.host.go_on())?);
        };
        let [a, b] = &self.operands;
        let (sources, locals) = (memory.sources, &*memory.locals);
        let factors = [a.begin(sources, locals, starts)?, b.begin(sources, locals, starts)?];
        planned.run_at(&factors, to, &|| sources.host.go_on(), memory.counters)
    }
}
