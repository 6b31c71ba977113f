//! A journal of evaluations: for each step the tiles of its result and the products that it took, beside the numbers for dense tensors,
//! which show what sparsity saves. It also has the progress of the running step. Evaluators write it, and nothing depends on it.

use crate::tiled::Tiled;
use cembra_value::Span;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The kind of a step.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub enum StepKind {
    /// A product of two tensors.
    Product {
        /// The number of products of tiles that were computed.
        products: u64,
        /// The number of products of tiles for dense tensors.
        of: f64,
        /// The number of multiplications and additions of elements.
        operations: f64,
    },
    /// An elementwise expression.
    Elements,
    /// A reduction over axes.
    Reduction,
    /// A view: a tensor with other axes, or some of its tiles.
    View,
    /// A part of a tensor that begins or ends within a tile, so that its elements are copied into tiles of its own. Also a lazy part that
    /// is stored, or a part that is copied to its place among zeros.
    Part,
}

/// A step that was computed, or is planned.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Step {
    /// The kind of the step.
    pub work: StepKind,
    /// The place of the step in the source text of a graph; `None` if it has none.
    pub span: Option<Span>,
    /// The number of present tiles of the result.
    pub tiles: usize,
    /// The number of tiles in the result's grid.
    pub of: f64,
    /// The bytes of the present tiles, on whichever rank they are.
    pub bytes: usize,
    /// The most bytes that were held at once besides the result: intermediate tensors, tiles of lazy operands and repacked tiles, and sums
    /// that were not added yet. The memory of a user's functions is not counted. If ranks share the step, these are the bytes of this rank.
    pub held_bytes: usize,
    /// The number of tasks that were shared out to threads.
    pub tasks: usize,
}

/// The steps of evaluations, in their order. Clones share one journal.
///
/// ```
/// use cembra_tiles::{Evaluator, Journal, Options, Screening, Shape, Tiled, Tiling, Tiling1, StepKind};
///
/// let axis = Tiling1::blocked(8, 2)?;
/// let shape = Shape::of_norms(&Tiling::new([&axis, &axis])?, [(0, 1.0), (5, 1.0)], &Screening::threshold(0.0))?;
/// let a = Tiled::from_fn(&shape, |_| 1.0)?;
/// let journal = Journal::default();
/// Evaluator::new(Options::default()).journal(journal.clone()).product("ij,jk->ik", &a, &a)?;
/// let steps = journal.steps();
/// assert_eq!((steps[0].tiles, steps[0].of), (2, 16.0));
/// assert_eq!(steps[0].work, StepKind::Product { products: 2, of: 64.0, operations: 32.0 });
/// # Ok::<(), cembra_value::Error>(())
/// ```
#[derive(Clone, Default, Debug)]
pub struct Journal {
    /// Has at most as many entries as evaluations had steps.
    steps: Arc<Mutex<Vec<Step>>>,
    running: Arc<Running>,
}

/// The progress of the running evaluation.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct Progress {
    /// The number of the running step of the graph, from 1 on; 0 before the first step.
    pub step: usize,
    /// The number of steps of the graph.
    pub steps: usize,
    /// The number of parts of the step that are done: products of tiles, or tiles.
    pub done: usize,
    /// The number of parts of the step; 0 if it is not counted, as a view is not.
    pub of: usize,
}

/// The progress of a step, counted by all threads. Reads are relaxed, so they may be a moment old.
#[derive(Default, Debug)]
struct Running {
    step: AtomicUsize,
    steps: AtomicUsize,
    done: AtomicUsize,
    of: AtomicUsize,
    /// The most bytes that the step has at once, including its result and other values.
    taken: AtomicUsize,
}

impl Journal {
    /// The steps so far.
    #[must_use]
    pub fn steps(&self) -> Vec<Step> {
        self.with(|steps| steps.clone())
    }

    /// The progress of the evaluation, which another thread may ask for while it runs. A product of several tensors is one step, which
    /// counts from 0 again for each product of two.
    ///
    /// ```
    /// use cembra_tiles::{Evaluator, Journal, MOST_TILES, Options, Shape, Tiled, Tiling, Tiling1};
    ///
    /// let axis = Tiling1::blocked(8, 2)?;
    /// let a = Tiled::random::<f64>(&Shape::dense(&Tiling::new([&axis, &axis])?, MOST_TILES)?, 1)?;
    /// let journal = Journal::default();
    /// Evaluator::new(Options::default()).journal(journal.clone()).product("ij,jk->ik", &a, &a)?;
    /// assert_eq!((journal.progress().done, journal.progress().of), (64, 64));
    /// # Ok::<(), cembra_value::Error>(())
    /// ```
    #[must_use]
    pub fn progress(&self) -> Progress {
        let Running { step, steps, done, of, .. } = &*self.running;
        let [step, steps, done, of] = [step, steps, done, of].map(|count| count.load(Ordering::Relaxed));
        // The counts are not read at one moment.
        Progress { step: step.min(steps), steps, done: done.min(of), of }
    }

    /// Records that step `step` of the `steps` steps of a graph begins.
    pub(crate) fn begin_step(&self, step: usize, steps: usize) {
        self.begin(0);
        self.running.taken.store(0, Ordering::Relaxed);
        self.running.steps.store(steps, Ordering::Relaxed);
        self.running.step.store(step, Ordering::Relaxed);
    }

    /// Begins a step with `parts` parts.
    pub(crate) fn begin(&self, parts: usize) {
        self.running.done.store(0, Ordering::Relaxed);
        self.running.of.store(parts, Ordering::Relaxed);
    }

    /// Counts `parts` more parts as done.
    pub(crate) fn advance(&self, parts: usize) {
        self.running.done.fetch_add(parts, Ordering::Relaxed);
    }

    /// Records that the running step has `bytes` bytes at once, including its result and other values.
    pub(crate) fn take(&self, bytes: usize) {
        self.running.taken.fetch_max(bytes, Ordering::Relaxed);
    }

    pub(crate) fn len(&self) -> usize {
        self.with(|steps| steps.len())
    }

    /// Adds a step with one task per tile. `held_bytes` are the bytes of other values beside it.
    pub(crate) fn note(&self, work: StepKind, result: &Tiled, held_bytes: usize) {
        let taken = self.running.taken.load(Ordering::Relaxed);
        let held_bytes = held_bytes.max(taken.saturating_sub(result.present_bytes()));
        self.push(work, result, [result.shape().len(), held_bytes]);
    }

    /// Adds a step that took `tasks` tasks, and held `held_bytes` bytes besides its result.
    pub(crate) fn push(&self, work: StepKind, result: &Tiled, [tasks, held_bytes]: [usize; 2]) {
        let shape = result.shape();
        let step = Step {
            work,
            span: None,
            tiles: shape.len(),
            of: shape.tiling().tiles() as f64,
            bytes: result.memory_bytes(),
            held_bytes,
            tasks,
        };
        self.with(|steps| steps.push(step));
    }

    /// Sets the place in the source text for all steps from number `from` on.
    pub(crate) fn place(&self, from: usize, span: Option<Span>) {
        self.with(|steps| steps.iter_mut().skip(from).for_each(|step| step.span = span));
    }

    fn with<T>(&self, of: impl FnOnce(&mut Vec<Step>) -> T) -> T {
        of(&mut self.steps.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
