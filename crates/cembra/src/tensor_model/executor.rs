//! A model with tensors that is evaluated many times: what was planned for tensors of some extents is kept. What the model means is said by
//! its lowering, and what is run is a plan of the evaluator.

use super::TensorModel;
use arc_swap::ArcSwapOption;
use cembra_engine::{Binds, CacheCounters, Evaluator, Kept, Planned, RunOptions, Runs, SessionOptions, TensorSession};
use cembra_runtime::Cancellation;
use cembra_tensor::{Elements, Error, KeptPlan, Tensor};
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The most lists of extents whose plans are kept.
const MOST_PLANS: usize = 64;

/// What evaluates a [`TensorModel`] on one tensor after the other: it plans once for tensors of the same extents, of up to 64 lists of extents,
/// and compiles once whatever they are. Shared between threads.
///
/// Plans keep memory for the next run. All that are kept have no more bytes together than the limit of bytes of arrays, as far as that is known
/// when another one was made and run: those that were not asked for the longest are dropped. The last one is kept, whatever it has.
///
/// ```
/// use cembra::Options;
/// use cembra::tensor::{Evaluator, Tensor, TensorModel};
///
/// let model = TensorModel::parse("input x: tensor[f64, 1], by: f64; output y = x / by; output sum = tensor.sum(x)")?;
/// let evaluator = Evaluator::new(&Options::default());
/// let executor = model.executor(&evaluator);
/// for at in 1..=100 {
///     let made = executor.run(&[Tensor::new(&[2], vec![1.0, f64::from(at)])?, Tensor::scalar(2.0)])?;
///     assert_eq!(made[0].to_vec::<f64>()?, [0.5, f64::from(at) / 2.0]);
/// }
/// let counters = executor.counters();
/// assert_eq!((counters.misses, counters.hits), (1, 99));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct TensorExecutor<'e> {
    model: &'e TensorModel,
    evaluator: &'e Evaluator,
    /// By the extents of all inputs, one after the other; the model says how many each has.
    plans: Kept<Vec<usize>, Arc<Planned<'e>>>,
    /// What was asked for last, which most calls ask for again: they take no lock.
    last: ArcSwapOption<Last<'e>>,
    /// How often it was asked for again.
    repeated: AtomicU64,
}

/// A plan, and the extents that it is for.
#[derive(Debug)]
struct Last<'e> {
    extents: Vec<usize>,
    planned: Arc<Planned<'e>>,
}

impl Last<'_> {
    /// True if inputs that have as many axes are of these extents.
    fn is_for(&self, inputs: &[Tensor]) -> bool {
        let mut rest = &self.extents[..];
        inputs.iter().all(|input| match rest.strip_prefix(input.extents()) {
            Some(others) => {
                rest = others;
                true
            }
            None => false,
        })
    }
}

impl<'e> TensorExecutor<'e> {
    pub(super) fn new(model: &'e TensorModel, evaluator: &'e Evaluator) -> TensorExecutor<'e> {
        let (last, repeated) = (ArcSwapOption::empty(), AtomicU64::new(0));
        TensorExecutor { model, evaluator, plans: Kept::new(MOST_PLANS), last, repeated }
    }

    /// The model.
    #[must_use]
    pub const fn model(&self) -> &'e TensorModel {
        self.model
    }

    /// The outputs in their order, on tensors for the inputs in theirs. A scalar is a tensor without axes.
    ///
    /// # Errors
    /// Another number of tensors than of inputs, or one of another type; extents that do not fit, an element that fails, or an output that has
    /// more elements than the limit of bytes of arrays allows.
    pub fn run(&self, inputs: &[Tensor]) -> Result<Vec<Tensor>, Error> {
        self.by_plan(inputs, |planned| planned.run(inputs)).map_err(|error| self.model.placed(error))
    }

    /// The outputs likewise, until a token is cancelled: see [`Planned::run_until`].
    ///
    /// # Errors
    /// As for [`run`](TensorExecutor::run); or that the token was cancelled.
    pub fn run_until(&self, inputs: &[Tensor], token: &Cancellation) -> Result<Vec<Tensor>, Error> {
        self.by_plan(inputs, |planned| planned.run_until(inputs, token)).map_err(|error| self.model.placed(error))
    }

    /// The outputs likewise, within run options: see [`Planned::run_with`].
    ///
    /// # Errors
    /// As for [`run`](TensorExecutor::run); or that the token was cancelled, or the time is over.
    pub fn run_with(&self, inputs: &[Tensor], options: &RunOptions) -> Result<Vec<Tensor>, Error> {
        self.by_plan(inputs, |planned| planned.run_with(inputs, options)).map_err(|error| self.model.placed(error))
    }

    /// Runs of the model by one who makes many of them and looks at the outputs of each before the next, as for
    /// [`Planned::session`]: with memory of his own, which is kept. While inputs are of the same extents and strides as in the run before,
    /// nothing is looked up.
    ///
    /// ```
    /// use cembra::Options;
    /// use cembra::tensor::{Evaluator, Tensor, TensorModel};
    ///
    /// let model = TensorModel::parse("input x: tensor[f64, 1]; output twice = 2.0 * x")?;
    /// let evaluator = Evaluator::new(&Options::default());
    /// let executor = model.executor(&evaluator);
    /// let mut session = executor.session();
    /// for at in [1.0, 2.0, 3.0] {
    ///     assert_eq!(session.run(&[Tensor::new(&[2], vec![at, -at])?])?[0].to_vec::<f64>()?, [2.0 * at, -2.0 * at]);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub const fn session(&self) -> TensorSession<'_> {
        TensorSession::new(self)
    }

    /// The outputs with their names, on tensors for the inputs by name.
    ///
    /// # Errors
    /// As for [`run`](TensorExecutor::run); or an input that there is no tensor for.
    pub fn evaluate(&self, tensors: &BTreeMap<String, Tensor>) -> Result<Vec<(Arc<str>, Tensor)>, Error> {
        let made = self.run(&self.model.given(tensors)?)?;
        Ok(self.model.named(made))
    }

    /// How often there was a plan for the extents of the inputs, and how often one was made.
    #[must_use]
    pub fn counters(&self) -> CacheCounters {
        let mut counters = self.plans.counters();
        counters.hits += self.repeated.load(Ordering::Relaxed);
        counters
    }

    /// Does something with the plan for such inputs.
    fn by_plan<T>(&self, inputs: &[Tensor], run: impl FnOnce(&Planned<'e>) -> Result<T, Error>) -> Result<T, Error> {
        self.model.check(inputs)?;
        if let Some(last) = self.last.load().as_ref().filter(|last| last.is_for(inputs)) {
            // Nothing else was asked for meanwhile, so it is the one that was asked for last without being told.
            self.repeated.fetch_add(1, Ordering::Relaxed);
            return run(&last.planned);
        }
        let all: SmallVec<[usize; 16]> = inputs.iter().flat_map(Tensor::extents).copied().collect();
        let mut is_new = false;
        let planned = self.plans.get(&all[..], || {
            is_new = true;
            let extents: Vec<&[usize]> = inputs.iter().map(Tensor::extents).collect();
            let (graph, nodes) = self.model.graph(&extents)?;
            self.model.check_outputs(&graph, &nodes, self.evaluator)?;
            Ok(Arc::new(self.evaluator.plan(&graph, &nodes)?))
        })?;
        self.last.store(Some(Arc::new(Last { extents: all.to_vec(), planned: planned.clone() })));
        let made = run(&planned);
        if is_new {
            // It has its memory now.
            self.plans.shrink(self.evaluator.most_bytes(), |planned| planned.held_bytes());
        }
        made
    }
}

impl Binds for TensorExecutor<'_> {
    fn on(&self, options: Option<&SessionOptions>, run: &mut Runs<'_>) -> Result<(), Error> {
        self.evaluator.on(options, run)
    }

    fn kept(&self, inputs: &[Tensor], elements: &dyn Elements) -> Result<KeptPlan, Error> {
        self.by_plan(inputs, |planned| planned.kept(inputs, elements))
    }

    fn placed(&self, error: Error) -> Error {
        self.model.placed(error)
    }
}
