//! Events of models for a host's metrics: compilations, fallbacks, tiers, executors, faults, reloads. A call of a model is no event, because it is too
//! short for one; calls are counted on request. Without metrics no event is made.

use crate::options::choice::RowPlayer;
use cembra_native::Tier;
use cembra_runtime::{Evaluations, FaultKind};
use cembra_value::{Diagnostic, Error, UNNAMED};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// Something that happened to a model.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event<'e> {
    /// An executor was made; clones of it are not told.
    ExecutorMade,
    /// The last clone of an executor and the last of its sessions went.
    ExecutorDropped,
    /// Machine code was made.
    Compiled {
        /// How much went into it.
        tier: Tier,
        /// The steps of the plan.
        steps: usize,
        /// What the machine code takes, in whole pages of memory.
        code_bytes: usize,
        /// How long it took.
        time: Duration,
    },
    /// Machine code for many rows was made: of a batch, or of the elements of arrays or tensors.
    CompiledRows {
        /// What plays the rows.
        player: RowPlayer,
        /// The steps of the plan.
        steps: usize,
        /// What the machine code takes, in whole pages of memory.
        code_bytes: usize,
        /// How long it took.
        time: Duration,
    },
    /// Machine code was taken from a [`CodeCache`](cembra_native::CodeCache): as for `Compiled`, which is not told then.
    CacheHit {
        /// How much went into it.
        tier: Tier,
        /// The steps of the plan.
        steps: usize,
        /// What the machine code takes, in whole pages of memory.
        code_bytes: usize,
        /// How long it took.
        time: Duration,
    },
    /// Machine code was not in the cache of the options, or could not be taken from there: it was compiled.
    CacheMiss,
    /// There is no machine code, or none of a higher tier; the model runs without it.
    Fallback {
        /// Why.
        reason: &'e Diagnostic,
    },
    /// Calls take the code of this tier from now on.
    TierSwapped {
        /// Which tier.
        tier: Tier,
    },
    /// A model could not be compiled.
    CompilationFailed {
        /// The error.
        error: &'e Error,
    },
    /// An evaluation ended with a fault: of an operator, by a deadline or a token, or at a limit. A batch in which rows may fail makes an
    /// event for each error that it keeps.
    Fault {
        /// The code of its error, such as `div-by-zero` or `deadline`.
        code: &'static str,
    },
    /// A folder of models was read. The first time is an event, too. The name of the model is that of the folder.
    Reloaded {
        /// The number of models that were added, replaced or removed.
        changed: usize,
        /// The number of files that are no models.
        failed: usize,
    },
    /// Too many models wait to be compiled in the background: this one stays interpreted for now, and asks again later.
    QueueFull,
    /// A profile of machine code could not be written to and ends here.
    ProfileFailed {
        /// What the system says.
        reason: &'e std::io::Error,
    },
}

/// Is told of events, on whatever thread they happen.
///
/// `record` must be quick and must not panic: it runs inside of compiling and dropping. [`Counters`] is an implementation; one
/// of your own passes events on to what a service has for metrics:
///
/// ```
/// use cembra::{Backend, Event, Metrics, Model, Options};
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
    /// Takes note of an event of a model that is called so (`Options::name`).
    fn record(&self, model: &str, event: &Event<'_>);

    /// The counter of a model's evaluations. It is `None` by default: then they are not counted, and that costs nothing. It is asked once for each
    /// session, executor of structs and batch. A counted evaluation takes up to 2 nanoseconds more. Runs of a raw function are not counted.
    fn evaluations(&self, _model: &str) -> Option<Arc<Evaluations>> {
        None
    }
}

/// Tells metrics, or those that are installed if there are none, of an event of `model`.
pub fn tell(metrics: Option<&Arc<dyn Metrics>>, model: &str, event: &Event<'_>) {
    if let Some(metrics) = metrics.or_else(|| INSTALLED.get()) {
        metrics.record(model, event);
    }
}

static INSTALLED: OnceLock<Arc<dyn Metrics>> = OnceLock::new();

/// Has these told of all models compiled from now on whose `Options::metrics` are not set. True if they
/// are; false if others were installed before, which stay.
///
/// ```
/// use cembra::{Counters, Model, Options, install_metrics};
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

/// Metrics that count.
///
/// ```
/// use cembra::{Backend, Counters, Model, Options};
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
/// use cembra::{Counters, Model, Options, Value};
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
    /// The faults by code: at most one number for each code of the library and of the program's operators.
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

/// What [`Counters`] have counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Counts {
    /// Compilations to machine code that succeeded.
    pub compiles: u64,
    /// The time they took together.
    pub compile_nanoseconds: u64,
    /// The machine code they and the cache gave, in bytes of whole pages, whether or not it is still alive; for what is, see
    /// [`live_code_bytes`](cembra_runtime::live_code_bytes).
    pub code_bytes: u64,
    /// Models whose machine code came from a cache.
    pub cache_hits: u64,
    /// Models that had a cache and were compiled.
    pub cache_misses: u64,
    /// Models for which machine code could not be had.
    pub fallbacks: u64,
    /// Changes to a higher tier.
    pub tier_swaps: u64,
    /// How often a model found too many others waiting to be compiled.
    pub queue_full: u64,
    /// Executors that were made.
    pub executors_made: u64,
    /// Executors of which nothing is left.
    pub executors_dropped: u64,
    /// Profiles that could not be written to the end.
    pub profiles_failed: u64,
    /// Evaluations, rows of batches among them; 0 unless they are counted.
    pub evaluations: u64,
    /// Evaluations that ended with a fault; [`Counters::faults`] has them by code.
    pub faults: u64,
    /// The faults that are passed deadlines.
    pub deadlines: u64,
    /// Models that could not be compiled.
    pub failed_compilations: u64,
    /// The number of times that a folder of models was read.
    pub reloads: u64,
    /// The number of files in it that were no models.
    pub failed_files: u64,
}

impl Counts {
    /// Executors that are alive.
    #[must_use]
    pub fn live_executors(&self) -> u64 {
        // The two were not read at the same time.
        self.executors_made.saturating_sub(self.executors_dropped)
    }
}

impl Counters {
    /// Metrics that count the evaluations of models, too.
    #[must_use]
    pub fn with_evaluations() -> Counters {
        Counters { evaluations: Some(Arc::default()), ..Counters::default() }
    }

    /// The number of evaluations that ended with a fault, by the code of their error.
    #[must_use]
    pub fn faults(&self) -> BTreeMap<&'static str, u64> {
        self.lock_faults().clone()
    }

    fn lock_faults(&self) -> MutexGuard<'_, BTreeMap<&'static str, u64>> {
        // Nothing panics while they are locked.
        self.faults.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was counted so far. The numbers are read one after the other, while others may go on counting.
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

/// Who is told of one model, and what it is called.
#[derive(Clone, Debug)]
pub(crate) struct Watch {
    metrics: Option<Arc<dyn Metrics>>,
    model: Option<Arc<str>>,
}

impl Watch {
    /// These metrics, those of options; those of the process if the options have none.
    pub(crate) fn new(metrics: Option<&Arc<dyn Metrics>>, model: Option<Arc<str>>) -> Self {
        Watch { metrics: metrics.or_else(|| INSTALLED.get()).cloned(), model }
    }

    pub(crate) fn record(&self, event: &Event<'_>) {
        if let Some(metrics) = &self.metrics {
            metrics.record(self.model(), event);
        }
    }

    /// The counter of evaluations, if there is one.
    pub(crate) fn evaluations(&self) -> Option<Arc<Evaluations>> {
        self.metrics.as_ref()?.evaluations(self.model())
    }

    /// Tells of a fault that ended an evaluation; of another error nothing.
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
