//! What evaluations did: for each step the tiles of its result, the products that they took, and the same of dense tensors, which is what
//! sparsity saves. Written only by evaluators that have a journal; nothing is decided by it.

use crate::tiled::Tiled;
use crate::{SymbolicProduct, Tiling};
use cembra_value::Span;
use std::sync::{Arc, Mutex, PoisonError};

/// What a step computed.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub enum Work {
    /// A product of two tensors.
    Product {
        /// The products of tiles that were computed.
        products: u64,
        /// As many as there are of dense tensors.
        of: f64,
        /// The multiplications and additions of elements.
        operations: f64,
    },
    /// An expression of elements.
    Elements,
    /// A reduction over axes.
    Reduction,
    /// A tensor with other axes, or some of its tiles.
    View,
    /// A part of a tensor that begins or ends within a tile: its elements are copied into tiles of its own. Or a lazy part that is stored.
    Part,
}

/// A step that was computed.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Step {
    /// What was computed.
    pub work: Work,
    /// The place of what was computed in the text of a graph, if it has one.
    pub span: Option<Span>,
    /// The tiles of the result that are present.
    pub tiles: usize,
    /// The tiles of its grid.
    pub of: f64,
    /// The bytes of these tiles.
    pub bytes: usize,
    /// The bytes of the intermediate tensors that were held beside the result.
    pub held_bytes: usize,
    /// The tasks that were shared out to threads.
    pub tasks: usize,
}

/// The steps of evaluations, in their order. Clones are one journal.
///
/// ```
/// use cembra_tiles::{Evaluator, Journal, Options, Screening, Shape, Tiled, Tiling, Tiling1, Work};
///
/// let axis = Tiling1::blocked(8, 2)?;
/// let shape = Shape::of_norms(&Tiling::new([&axis, &axis])?, [(0, 1.0), (5, 1.0)], &Screening::threshold(0.0))?;
/// let a = Tiled::from_fn(&shape, |_| 1.0)?;
/// let journal = Journal::default();
/// Evaluator::new(Options::default()).journal(journal.clone()).product("ij,jk->ik", &a, &a)?;
/// let steps = journal.steps();
/// assert_eq!((steps[0].tiles, steps[0].of), (2, 16.0));
/// assert_eq!(steps[0].work, Work::Product { products: 2, of: 64.0, operations: 32.0 });
/// # Ok::<(), cembra_value::Error>(())
/// ```
#[derive(Clone, Default, Debug)]
pub struct Journal {
    /// At most as many as evaluations had steps.
    steps: Arc<Mutex<Vec<Step>>>,
}

impl Journal {
    /// The steps up to now.
    #[must_use]
    pub fn steps(&self) -> Vec<Step> {
        self.with(|steps| steps.clone())
    }

    pub(crate) fn len(&self) -> usize {
        self.with(|steps| steps.len())
    }

    /// Notes a step whose tasks are one for each tile.
    pub(crate) fn note(&self, work: Work, result: &Tiled) {
        self.push(work, result, result.shape().len());
    }

    /// Notes a product.
    pub(crate) fn note_product(&self, plan: &SymbolicProduct, operands: [&Tiled; 2], result: &Tiled, tasks: usize) {
        let tilings = operands.map(Tiled::tiling);
        let tiles = |tiling: &Tiling, is_counted: &dyn Fn(usize) -> bool| -> f64 {
            let axes = tiling.axes().iter().enumerate().filter(|(axis, _)| is_counted(*axis));
            axes.map(|(_, axis)| axis.tiles() as f64).product()
        };
        let [left, right] = &plan.roles.operands;
        let of = tiles(tilings[0], &|_| true) * tiles(tilings[1], &|axis| !left.contains(&right[axis]));
        let operations = 2.0 * plan.multiplications(operands[0].shape());
        self.push(Work::Product { products: plan.product_count() as u64, of, operations }, result, tasks);
    }

    fn push(&self, work: Work, result: &Tiled, tasks: usize) {
        let shape = result.shape();
        let step = Step {
            work,
            span: None,
            tiles: shape.len(),
            of: shape.tiling().tiles() as f64,
            bytes: result.present_bytes(),
            held_bytes: 0,
            tasks,
        };
        self.with(|steps| steps.push(step));
    }

    /// Says of all steps from a number on where they are from, and what was held beside them.
    pub(crate) fn place(&self, from: usize, span: Option<Span>, held_bytes: usize) {
        self.with(|steps| {
            for step in steps.iter_mut().skip(from) {
                (step.span, step.held_bytes) = (span, held_bytes);
            }
        });
    }

    fn with<T>(&self, of: impl FnOnce(&mut Vec<Step>) -> T) -> T {
        of(&mut self.steps.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
