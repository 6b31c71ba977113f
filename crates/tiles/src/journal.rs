//! What evaluations did: for each step the tiles of its result, the products that they took, and the same of dense tensors, which is what
//! sparsity saves. And how far the step is that runs. Written only by evaluators that have a journal; nothing is decided by it.

use crate::tiled::Tiled;
use cembra_value::Span;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// What a step computed.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub enum StepKind {
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
    /// A part of a tensor that begins or ends within a tile: its elements are copied into tiles of its own. Or a lazy part that is stored, or what
    /// is copied to its place among zeros.
    Part,
}

/// A step that was computed, or is planned.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Step {
    /// What was computed.
    pub work: StepKind,
    /// The place of what was computed in the text of a graph, if it has one.
    pub span: Option<Span>,
    /// The tiles of the result that are present.
    pub tiles: usize,
    /// The tiles of its grid.
    pub of: f64,
    /// The bytes of these tiles, on whichever rank they are.
    pub bytes: usize,
    /// The bytes that were held beside the result at once: intermediate tensors, tiles of lazy operands and tiles that were turned as far as they
    /// are held together, and sums that were not added yet. What the functions of a user take is not counted. Of ranks it is what this one held.
    pub held_bytes: usize,
    /// The tasks that were shared out to threads.
    pub tasks: usize,
}

/// The steps of evaluations, in their order. Clones are one journal.
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
    /// At most as many as evaluations had steps.
    steps: Arc<Mutex<Vec<Step>>>,
    running: Arc<Running>,
}

/// How far the evaluation is that runs.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct Progress {
    /// The number of the step of the graph that runs, from 1 on; 0 before the first one.
    pub step: usize,
    /// The steps of the graph.
    pub steps: usize,
    /// The parts of the step that are done: products of tiles, or tiles.
    pub done: usize,
    /// The parts that the step has; 0 of a step that is not counted, as views are not.
    pub of: usize,
}

/// The counts of threads while a step runs. They are relaxed, so a reader may see counts of a moment before.
#[derive(Default, Debug)]
struct Running {
    step: AtomicUsize,
    steps: AtomicUsize,
    done: AtomicUsize,
    of: AtomicUsize,
    /// The most bytes that the step has at once, with those of its result and of other values.
    taken: AtomicUsize,
}

impl Journal {
    /// The steps up to now.
    #[must_use]
    pub fn steps(&self) -> Vec<Step> {
        self.with(|steps| steps.clone())
    }

    /// How far the evaluation is, which another thread may ask while it runs. A product of several tensors is a step that counts from the
    /// beginning for each product of two.
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
        // They are not looked at in one moment.
        Progress { step: step.min(steps), steps, done: done.min(of), of }
    }

    /// Begins a step of a graph.
    pub(crate) fn begin_step(&self, step: usize, steps: usize) {
        self.begin(0);
        self.running.taken.store(0, Ordering::Relaxed);
        self.running.steps.store(steps, Ordering::Relaxed);
        self.running.step.store(step, Ordering::Relaxed);
    }

    /// A step with this many parts begins.
    pub(crate) fn begin(&self, parts: usize) {
        self.running.done.store(0, Ordering::Relaxed);
        self.running.of.store(parts, Ordering::Relaxed);
    }

    /// So many parts are done.
    pub(crate) fn advance(&self, parts: usize) {
        self.running.done.fetch_add(parts, Ordering::Relaxed);
    }

    /// The running step has this number of bytes at once, with those of its result and of other values.
    pub(crate) fn take(&self, bytes: usize) {
        self.running.taken.fetch_max(bytes, Ordering::Relaxed);
    }

    pub(crate) fn len(&self) -> usize {
        self.with(|steps| steps.len())
    }

    /// Notes a step whose tasks are one for each tile, and which bytes other values had beside it.
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

    /// Says of all steps from a number on where they are from.
    pub(crate) fn place(&self, from: usize, span: Option<Span>) {
        self.with(|steps| steps.iter_mut().skip(from).for_each(|step| step.span = span));
    }

    fn with<T>(&self, of: impl FnOnce(&mut Vec<Step>) -> T) -> T {
        of(&mut self.steps.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
