//! Events of models, reported to a host's metrics: compilations, fallbacks, tiers, executors, faults, reloads. A call of a model is too short to be
//! an event; calls are counted on request. If there are no metrics, events are not reported.

use crate::options::choice::RowPlayer;
use cembra_native::Tier;
use cembra_runtime::{Evaluations, FaultKind};
use cembra_value::{Diagnostic, Error, UNNAMED};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// An event that concerns one model or a folder of models, such as a compilation, a fallback or a fault.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event<'e> {
    /// An executor was made. Clones of an executor are not reported.
    ExecutorMade,
    /// The last clone of an executor and the last of its sessions were dropped.
    ExecutorDropped,
    /// The machine code of a model for one row was compiled.
    Compiled {
        /// The tier of the compiled code.
        tier: Tier,
        /// The number of steps in the model's plan.
        steps: usize,
        /// The size of the machine code in bytes, in whole pages of memory.
        code_bytes: usize,
        /// The time that the compilation took.
        time: Duration,
    },
    /// The machine code of a model for many rows was compiled, for a batch or for elements of arrays or tensors.
    CompiledRows {
        /// The backend for rows that the code was compiled for.
        player: RowPlayer,
        /// The number of steps in the model's plan.
        steps: usize,
        /// The size of the machine code in bytes, in whole pages of memory.
        code_bytes: usize,
        /// The time that the compilation took.
        time: Duration,
    },
    /// The machine code of a model was taken from a [`CodeCache`](cembra_native::CodeCache). No `Compiled` event is reported then.
    CacheHit {
        /// The tier of the cached code.
        tier: Tier,
        /// The number of steps in the model's plan.
        steps: usize,
        /// The size of the machine code in bytes, in whole pages of memory.
        code_bytes: usize,
        /// The time that it took to get the code from the cache.
        time: Duration,
    },
    /// The machine code of a model was not in its code cache, or could not be taken from there, so it was compiled.
    CacheMiss,
    /// Machine code, or code of a higher tier, is not available for a model. The model runs without it.
    Fallback {
        /// The reason why the code is not available.
        reason: &'e Diagnostic,
    },
    /// From now on, calls of a model run the code of the tier `tier`.
    TierSwapped {
        /// The tier whose code calls run from now on.
        tier: Tier,
    },
    /// A model could not be compiled.
    CompilationFailed {
        /// The error with which the compilation ended.
        error: &'e Error,
    },
    /// An evaluation ended with a fault: of an operator, by a deadline or a token, or at a limit. A batch that continues after failed rows reports
    /// one event for each row error that it keeps.
    Fault {
        /// The code of the fault's error, such as `div-by-zero` or `deadline`.
        code: &'static str,
    },
    /// A folder of models was read, for the first time or again. The event's model name is the name of the folder.
    Reloaded {
        /// The number of models in the folder that were added, replaced or removed.
        changed: usize,
        /// The number of files in the folder that are not valid models.
        failed: usize,
    },
    /// Too many models wait to be compiled in the background, so this model was not queued. The interpreter runs the
    /// model for now, and the model is queued again after further calls.
    QueueFull,
    /// A profile of machine code (a file for `perf`) could not be written and was closed.
    ProfileFailed {
        /// The error that the operating system reported.
        reason: &'e std::io::Error,
    },
}

/// A receiver of events, called on the thread on which they happen.
///
/// `record` must be quick and must not panic, because it runs while models are compiled and dropped. [`Counters`] is an implementation. An
/// implementation of your own can pass events on to the metrics of a service:
///
/// ```
/// use cembra::metrics::{Event, Metrics};
/// use cembra::{Backend, Model, Options};
/// use std::sync::{Arc, Mutex};
///
/// #[derive(Debug, Default)]
/// struct Sizes(Mutex<Vec<(String, usize)>>);
///
/// impl Metrics for Sizes {
///     fn record(&self, model: &str, event: &Event<'_>) {
///         if let Event::Compiled { steps, .. } = event {
///             self.0.lock().unwrap().push((model.to_owned(), *steps));
///         }
///     }
/// }
///
/// let sizes = Arc::new(Sizes::default());
/// let options = Options::default().backend(Backend::Native).metrics(sizes.clone());
/// Model::parse("input x: f64; sqrt(x) + x")?.named("score").compile(&options)?;
/// assert_eq!(*sizes.0.lock().unwrap(), [("score".to_owned(), 2)]);
/// # Ok::<(), cembra::Error>(())
/// ```
pub trait Metrics: Send + Sync + Debug {
    /// Records `event`, which concerns the model with the name `model` (`Options::name`).
    fn record(&self, model: &str, event: &Event<'_>);

    /// Returns the counter for a model's evaluations. By default it is `None`: then evaluations are not counted, at no cost. This is called once for
    /// each session, executor of structs and batch. A counted evaluation takes up to 2 nanoseconds more. Runs of a raw function are not counted.
    fn evaluations(&self, _model: &str) -> Option<Arc<Evaluations>> {
        None
    }
}

/// Reports an event of `model` to `metrics`; if that is `None`, to the metrics installed for the process.
pub fn tell(metrics: Option<&Arc<dyn Metrics>>, model: &str, event: &Event<'_>) {
    if let Some(metrics) = metrics.or_else(|| INSTALLED.get()) {
        metrics.record(model, event);
    }
}

/// The metrics that `install_metrics` installed for the process.
static INSTALLED: OnceLock<Arc<dyn Metrics>> = OnceLock::new();

/// Installs metrics for all models compiled from now on whose `Options::metrics` are not set. Returns false, and changes nothing, if other metrics
/// were installed before.
///
/// ```
/// use cembra::metrics::{Counters, install_metrics};
/// use cembra::{Model, Options};
/// use std::sync::Arc;
///
/// let counters = Arc::new(Counters::default());
/// assert!(install_metrics(counters.clone()));
/// let executor = Model::parse("6 * 7")?.compile(&Options::default())?;
/// assert_eq!(counters.counts().live_executors(), 1);
/// assert!(!install_metrics(Arc::new(Counters::default())));
/// # Ok::<(), cembra::Error>(())
/// ```
pub fn install_metrics(metrics: Arc<dyn Metrics>) -> bool {
    INSTALLED.set(metrics).is_ok()
}

/// Metrics that count the events of all models.
///
/// ```
/// use cembra::metrics::Counters;
/// use cembra::{Backend, Model, Options};
/// use std::sync::Arc;
///
/// let counters = Arc::new(Counters::default());
/// let options = Options::default().backend(Backend::Native).metrics(counters.clone());
/// let executor = Model::parse("input x: f64; x * x")?.compile(&options)?;
/// let counts = counters.counts();
/// assert_eq!((counts.compiles, counts.fallbacks, counts.live_executors()), (1, 0, 1));
/// assert!(counts.code_bytes > 0);
/// # Ok::<(), cembra::Error>(())
/// ```
///
/// [`Counters::with_evaluations`] counts the evaluations, too:
///
/// ```
/// use cembra::metrics::Counters;
/// use cembra::{Model, Options, Value};
/// use std::sync::Arc;
///
/// let counters = Arc::new(Counters::with_evaluations());
/// let options = Options::default().metrics(counters.clone());
/// let mut session = Model::parse("input x: i64; 12 // x")?.compile(&options)?.session();
/// for x in [1_i64, 2, 0, 3] {
///     let _ = session.evaluate(&[Value::from(x)]);
/// }
/// let counts = counters.counts();
/// assert_eq!((counts.evaluations, counts.faults, counts.deadlines), (4, 1, 0));
/// assert_eq!(counters.faults().into_iter().collect::<Vec<_>>(), [("div-by-zero", 1)]);
/// # Ok::<(), cembra::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct Counters {
    evaluations: Option<Arc<Evaluations>>,
    /// The numbers of faults by code: at most one entry for each code of the library and of the program's operators.
    faults: Mutex<BTreeMap<&'static str, u64>>,
    failed_compilations: AtomicU64,
    reloads: AtomicU64,
    failed_files: AtomicU64,
    compiles: AtomicU64,
    compile_nanoseconds: AtomicU64,
    code_bytes: AtomicU64,
    cache_hits: AtomicU64,
    cache_misses: AtomicU64,
    fallbacks: AtomicU64,
    tier_swaps: AtomicU64,
    queue_full: AtomicU64,
    executors_made: AtomicU64,
    executors_dropped: AtomicU64,
    profiles_failed: AtomicU64,
}

/// The numbers of events that [`Counters`] have counted, such as compilations, cache hits and faults.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Counts {
    /// The number of compilations to machine code that succeeded.
    pub compiles: u64,
    /// The time that the compilations to machine code took together, in nanoseconds.
    pub compile_nanoseconds: u64,
    /// The bytes of machine code that was compiled or taken from caches, in whole pages, whether or not the code is still in memory. For the code
    /// that is in memory now, see [`live_code_bytes`](cembra_runtime::live_code_bytes).
    pub code_bytes: u64,
    /// The number of models whose machine code came from a code cache.
    pub cache_hits: u64,
    /// The number of models whose machine code was not in their code cache, and was compiled.
    pub cache_misses: u64,
    /// The number of models for which machine code, or a higher tier, was not available.
    pub fallbacks: u64,
    /// The number of times that a model changed to a higher tier.
    pub tier_swaps: u64,
    /// The number of times that a model could not be queued for compilation, because the queue was full of other models.
    pub queue_full: u64,
    /// The number of executors that were made.
    pub executors_made: u64,
    /// The number of executors that were dropped with all their clones and sessions.
    pub executors_dropped: u64,
    /// The number of profile files (for `perf`) that could not be written to the end.
    pub profiles_failed: u64,
    /// The number of evaluations, including rows of batches; 0 unless evaluations are counted.
    pub evaluations: u64,
    /// The number of evaluations that ended with a fault. [`Counters::faults`] has them by error code.
    pub faults: u64,
    /// The number of evaluations that ended because their deadline had passed.
    pub deadlines: u64,
    /// The number of models that could not be compiled.
    pub failed_compilations: u64,
    /// The number of times that folders of models were read.
    pub reloads: u64,
    /// The number of files in folders of models that were not valid models.
    pub failed_files: u64,
}

impl Counts {
    /// The number of executors that were made and not yet dropped.
    #[must_use]
    pub fn live_executors(&self) -> u64 {
        // The two numbers were not read at the same time.
        self.executors_made.saturating_sub(self.executors_dropped)
    }
}

impl Counters {
    /// Makes metrics that also count the evaluations of models.
    #[must_use]
    pub fn with_evaluations() -> Counters {
        Counters { evaluations: Some(Arc::default()), ..Counters::default() }
    }

    /// The number of evaluations that ended with a fault, by error code.
    #[must_use]
    pub fn faults(&self) -> BTreeMap<&'static str, u64> {
        self.lock_faults().clone()
    }

    fn lock_faults(&self) -> MutexGuard<'_, BTreeMap<&'static str, u64>> {
        // No code panics while the faults are locked.
        self.faults.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the numbers counted so far. The numbers are read one after the other, while other threads may go on counting.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let (faults, deadlines) = {
            let faults = self.lock_faults();
            (faults.values().sum::<u64>(), faults.get(FaultKind::Deadline.name()).copied().unwrap_or(0))
        };
        Counts {
            evaluations: self.evaluations.as_ref().map_or(0, |evaluations| evaluations.count()),
            faults,
            deadlines,
            failed_compilations: read(&self.failed_compilations),
            reloads: read(&self.reloads),
            failed_files: read(&self.failed_files),
            compiles: read(&self.compiles),
            compile_nanoseconds: read(&self.compile_nanoseconds),
            code_bytes: read(&self.code_bytes),
            cache_hits: read(&self.cache_hits),
            cache_misses: read(&self.cache_misses),
            fallbacks: read(&self.fallbacks),
            tier_swaps: read(&self.tier_swaps),
            queue_full: read(&self.queue_full),
            executors_made: read(&self.executors_made),
            executors_dropped: read(&self.executors_dropped),
            profiles_failed: read(&self.profiles_failed),
        }
    }
}

impl Metrics for Counters {
    fn record(&self, _model: &str, event: &Event<'_>) {
        let add = |counter: &AtomicU64, by: u64| {
            counter.fetch_add(by, Ordering::Relaxed);
        };
        match event {
            Event::ExecutorMade => add(&self.executors_made, 1),
            Event::ExecutorDropped => add(&self.executors_dropped, 1),
            Event::Compiled { code_bytes, time, .. } | Event::CompiledRows { code_bytes, time, .. } => {
                add(&self.compiles, 1);
                add(&self.compile_nanoseconds, u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
                add(&self.code_bytes, *code_bytes as u64);
            }
            Event::CacheHit { code_bytes, .. } => {
                add(&self.cache_hits, 1);
                add(&self.code_bytes, *code_bytes as u64);
            }
            Event::CacheMiss => add(&self.cache_misses, 1),
            Event::Fallback { .. } => add(&self.fallbacks, 1),
            Event::TierSwapped { .. } => add(&self.tier_swaps, 1),
            Event::CompilationFailed { .. } => add(&self.failed_compilations, 1),
            Event::Fault { code } => *self.lock_faults().entry(*code).or_default() += 1,
            Event::Reloaded { failed, .. } => {
                add(&self.reloads, 1);
                add(&self.failed_files, *failed as u64);
            }
            Event::QueueFull => add(&self.queue_full, 1),
            Event::ProfileFailed { .. } => add(&self.profiles_failed, 1),
        }
    }

    fn evaluations(&self, _model: &str) -> Option<Arc<Evaluations>> {
        self.evaluations.clone()
    }
}

/// The name of a model, and the metrics to which its events are reported.
#[derive(Clone, Debug)]
pub(crate) struct EventReporter {
    metrics: Option<Arc<dyn Metrics>>,
    model: Option<Arc<str>>,
}

impl EventReporter {
    /// Makes a reporter of events of `model` to `metrics`; if that is `None`, to the metrics installed for the process.
    pub(crate) fn new(metrics: Option<&Arc<dyn Metrics>>, model: Option<Arc<str>>) -> Self {
        EventReporter { metrics: metrics.or_else(|| INSTALLED.get()).cloned(), model }
    }

    /// Reports an event of the model to the metrics, if there are any.
    pub(crate) fn record(&self, event: &Event<'_>) {
        if let Some(metrics) = &self.metrics {
            metrics.record(self.model(), event);
        }
    }

    /// The counter of the model's evaluations; `None` if they are not counted.
    pub(crate) fn evaluations(&self) -> Option<Arc<Evaluations>> {
        self.metrics.as_ref()?.evaluations(self.model())
    }

    /// Reports a fault that ended an evaluation. Other errors are not reported.
    #[cold]
    pub(crate) fn record_fault(&self, error: &Error) {
        if error.is_fault() {
            self.record(&Event::Fault { code: error.code() });
        }
    }

    pub(crate) fn model(&self) -> &str {
        self.model.as_deref().unwrap_or(UNNAMED)
    }
}
