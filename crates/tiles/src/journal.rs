//! A journal: the list of steps that evaluations computed. For each step, the journal has the number of tiles in the
//! result and the number of computed products of tiles, and for comparison the numbers for dense tensors. The journal
//! also has the progress of the running step. Evaluators write it; no result depends on it.

use crate::tiled::Tiled;
use cembra_value::Span;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The kind of a step in a journal or plan.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub enum StepKind {
    /// A product of two tensors by labels.
    Product {
        /// The number of products of two tiles that the step computed.
        products: u64,
        /// The number of products of two tiles that dense tensors would need.
        of: f64,
        /// The number of multiplications and additions of elements in the step.
        operations: f64,
    },
    /// The evaluation of an elementwise expression.
    Elements,
    /// The reduction of a tensor over some of its axes.
    Reduction,
    /// A view: a tensor with its axes in another arrangement, or with some of its tiles.
    View,
    /// A slice of a tensor that begins or ends within a tile, so that its elements are copied into new tiles. Also a
    /// slice of a lazy tensor, which is stored; or the gradient of a slice, which copies a tensor into zeros.
    Part,
}

/// A step that was computed, or that a plan lists.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Step {
    /// The kind of the step, with counts if it is a product.
    pub work: StepKind,
    /// The location of the step in the source text of its graph; `None` if the step has no location.
    pub span: Option<Span>,
    /// The number of present tiles in the step's result.
    pub tiles: usize,
    /// The number of tiles in the grid of the step's result, present or absent.
    pub of: f64,
    /// The size of the result's present tiles in bytes, on all ranks together.
    pub bytes: usize,
    /// The most bytes that the step used at once in addition to the result: intermediate tensors, tiles of lazy operands, repacked tiles,
    /// and sums that were not added yet. The memory of a user's functions is not counted. If ranks share the step, these are the bytes of
    /// this rank.
    pub held_bytes: usize,
    /// The number of tasks that the step distributed over threads.
    pub tasks: usize,
}

/// A list of the steps of evaluations, in their order. Clones share the same list.
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
    /// The recorded steps: at most one entry for each step of the evaluations that write this journal.
    steps: Arc<Mutex<Vec<Step>>>,
    running: Arc<Running>,
}

/// The progress of the running evaluation, counted in steps, and in parts (tiles, or products of tiles) of the running
/// step.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct Progress {
    /// The number of the running step of the graph, counted from 1; 0 before the first step.
    pub step: usize,
    /// The total number of steps of the graph.
    pub steps: usize,
    /// The number of parts of the running step that are done. A part is a product of tiles, or a tile.
    pub done: usize,
    /// The total number of parts of the running step; 0 if its parts are not counted, as for a view.
    pub of: usize,
}

/// The progress of the running step, counted by all threads. Reads are relaxed, so a count that is read may be slightly out of date.
#[derive(Default, Debug)]
struct Running {
    step: AtomicUsize,
    steps: AtomicUsize,
    done: AtomicUsize,
    of: AtomicUsize,
    /// The most bytes that the running step used at once, including its result and other values that the evaluation holds.
    taken: AtomicUsize,
}

impl Journal {
    /// Returns the steps that were recorded so far.
    #[must_use]
    pub fn steps(&self) -> Vec<Step> {
        self.with(|steps| steps.clone())
    }

    /// Returns the progress of the running evaluation; another thread may call this. A product of several tensors is one step, whose parts are
    /// counted from 0 again for each product of two tensors.
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

    /// Records in the journal that a step with `parts` parts begins. A part is a tile, or a product of tiles.
    pub(crate) fn begin(&self, parts: usize) {
        self.running.done.store(0, Ordering::Relaxed);
        self.running.of.store(parts, Ordering::Relaxed);
    }

    /// Counts `parts` more parts of the running step as done.
    pub(crate) fn advance(&self, parts: usize) {
        self.running.done.fetch_add(parts, Ordering::Relaxed);
    }

    /// Records that the running step uses `bytes` bytes at once, including its result.
    pub(crate) fn take(&self, bytes: usize) {
        self.running.taken.fetch_max(bytes, Ordering::Relaxed);
    }

    pub(crate) fn len(&self) -> usize {
        self.with(|steps| steps.len())
    }

    /// Adds a step that took one task per tile of `result`, and used at least `held_bytes` bytes in addition to the
    /// result.
    pub(crate) fn note(&self, work: StepKind, result: &Tiled, held_bytes: usize) {
        let taken = self.running.taken.load(Ordering::Relaxed);
        let held_bytes = held_bytes.max(taken.saturating_sub(result.present_bytes()));
        self.push(work, result, [result.shape().len(), held_bytes]);
    }

    /// Adds a step that took `tasks` tasks, and used `held_bytes` bytes in addition to its result.
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

    /// Sets the location in the source text for all recorded steps from number `from` on.
    pub(crate) fn place(&self, from: usize, span: Option<Span>) {
        self.with(|steps| steps.iter_mut().skip(from).for_each(|step| step.span = span));
    }

    fn with<T>(&self, of: impl FnOnce(&mut Vec<Step>) -> T) -> T {
        of(&mut self.steps.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
