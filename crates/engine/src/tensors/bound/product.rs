//! Products by labels, bound to the layouts of their operands. A product is made in panels of its first axis in two cases. If maps follow it, they
//! read elements that are still in the cache. If it is large, several threads can share it. The panels depend on extents alone, not on the number of
//! threads.

use super::memory::{Memory, Operand, StridedView};
use crate::tensors::product::PlannedProduct;
use cembra_tensor::{DataMut, Elements, Labels, Node, TensorBytes, reference};
use cembra_value::Error;
use std::sync::Arc;

/// A panel of a product by labels.
#[derive(Debug)]
pub(super) struct ProductPiece {
    /// The plan of the product; `None` if the reference computes it.
    pub(super) planned: Option<Arc<PlannedProduct>>,
    /// The two factors, as the panel sees them.
    pub(super) operands: [Operand; 2],
    pub(super) whole: Arc<FullProduct>,
}

/// The whole product that a panel is a part of, for the reference.
#[derive(Debug)]
pub(super) struct FullProduct {
    pub(super) product: Node,
    pub(super) labels: Arc<Labels>,
    pub(super) operands: [StridedView; 2],
}

impl ProductPiece {
    /// Counts the memory that the product takes besides its result while it runs.
    ///
    /// # Errors
    /// If the memory exceeds the limit.
    pub(super) fn hold(&self, held: &mut TensorBytes) -> Result<(), Error> {
        match &self.planned {
            Some(planned) => planned.temporaries().try_for_each(|(scalar, len)| held.take(scalar, &[len])),
            // The reference computes the whole product in memory of its own.
            None => held.take(self.whole.product.scalar, &self.whole.product.extents),
        }
    }

    /// Computes the panel that begins at the index `starts`, and overwrites the elements of `to`.
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
