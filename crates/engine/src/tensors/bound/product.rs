//! Products by labels, bound to how their operands lie. A product is made in panels of its first axis: where maps follow, so that these read
//! what is still in the cache, and where it is large, so that several threads can share it. How it is cut depends on extents
//! alone, whatever threads a run has.

use super::memory::{Memory, Operand, StridedView};
use crate::tensors::product::PlannedProduct;
use cembra_tensor::{DataMut, Elements, Labels, Node, TensorBytes, reference};
use cembra_value::Error;
use std::sync::Arc;

/// A product by labels for a panel.
#[derive(Debug)]
pub(super) struct ProductPiece {
    /// How it is planned; `None` where the reference makes it.
    pub(super) planned: Option<Arc<PlannedProduct>>,
    /// What it multiplies, as the panel sees it.
    pub(super) operands: [Operand; 2],
    pub(super) whole: Arc<FullProduct>,
}

/// All of a product.
#[derive(Debug)]
pub(super) struct FullProduct {
    pub(super) product: Node,
    pub(super) labels: Arc<Labels>,
    pub(super) operands: [StridedView; 2],
}

impl ProductPiece {
    /// What it makes beside its result, while it runs, is there.
    ///
    /// # Errors
    /// That is more than there may be.
    pub(super) fn hold(&self, held: &mut TensorBytes) -> Result<(), Error> {
        match &self.planned {
            Some(planned) => planned.temporaries().try_for_each(|(scalar, len)| held.take(scalar, &[len])),
            // The reference makes it elsewhere.
            None => held.take(self.whole.product.scalar, &self.whole.product.extents),
        }
    }

    /// Computes the panel that begins at this index, and writes its elements over what is in memory.
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
