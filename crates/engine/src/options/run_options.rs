//! Options of a run, for sessions, executors of structs, batches, tensors and the tests of models: cancellation, deadline, threads, limits, and the
//! treatment of failed rows. `Options` has the options of compiling.

use cembra_runtime::{Cancellation, Context};
use cembra_value::{Limits, OnError, RunTerms};
use std::time::{Duration, Instant};

/// Options of a run: what ends it early, its number of threads, and its limits. By default nothing ends a run early, it has one thread, and it has
/// the limits that the model was compiled with.
///
/// ```
/// use cembra::{FaultKind, Limits, Model, Options, RunOptions, Value};
/// use std::time::{Duration, Instant};
///
/// let model = Model::parse("input n: i64; seq.reduce(fn(s, i) = s + i * i, seq.range(n), 0)")?;
/// let options = Options::default().limits(Limits::default().loop_iterations(u64::MAX));
/// let mut session = model.compile(&options)?.session();
/// // For an hour, if nothing ends it.
/// let forever = [Value::from(1_i64 << 45)];
/// session.set_run_options(&RunOptions::new().time_limit(Duration::from_millis(5)));
/// let error = session.evaluate(&forever).unwrap_err();
/// assert_eq!((error.fault_kind(), error.code()), (Some(FaultKind::Deadline), "deadline"));
///
/// let few = Limits::default().loop_iterations(1000);
/// session.set_run_options(&RunOptions::new().limits(few));
/// assert_eq!(session.evaluate(&forever).unwrap_err().code(), "iteration-limit");
/// # Ok::<(), cembra::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct RunOptions {
    cancellation: Option<Cancellation>,
    deadline: Option<Instant>,
    time_limit: Option<Duration>,
    threads: Option<usize>,
    limits: Option<Limits>,
    on_error: Option<OnError>,
    rows: Option<usize>,
    strip_rows: Option<usize>,
    keep_failures: Option<usize>,
}

impl Default for RunOptions {
    fn default() -> Self {
        RunOptions::new()
    }
}

impl RunOptions {
    /// The maximum number of row errors that a batch keeps by default.
    pub const KEPT_FAILURES: usize = 100;

    /// Makes the default options: a run has one thread, and nothing ends it early.
    #[must_use]
    pub const fn new() -> Self {
        RunOptions {
            cancellation: None,
            deadline: None,
            time_limit: None,
            threads: None,
            limits: None,
            on_error: None,
            rows: None,
            strip_rows: None,
            keep_failures: None,
        }
    }

    /// Ends runs with the fault `cancelled` once the token is cancelled; `None` removes an earlier token.
    #[must_use]
    pub fn cancellation(self, token: impl Into<Option<Cancellation>>) -> Self {
        RunOptions { cancellation: token.into(), ..self }
    }

    /// Ends all runs with the fault `deadline` at the moment `deadline`. No run begins after it.
    #[must_use]
    pub fn deadline(self, deadline: Instant) -> Self {
        RunOptions { deadline: Some(deadline), ..self }
    }

    /// Limits the time of each run that begins with these options: a run that takes longer ends with the fault `deadline`. The next run has the whole
    /// limit again. With a limit of zero no run begins. A run on many rows counts as one run, and so do all tests of a model together.
    ///
    /// No run is stopped before its limit. A run that takes longer is stopped at most 2 milliseconds after the limit, if a processor is free for the
    /// thread that stops it. The limit adds less than 10 nanoseconds to a run of a session or an executor of structs. The raw function of an executor
    /// has no time limit.
    ///
    /// ```
    /// use cembra::{Limits, Model, Options, RunOptions, Value};
    /// use std::time::Duration;
    ///
    /// let model = Model::parse("input n: i64; seq.reduce(fn(s, i) = s + i * i, seq.range(n), 0)")?;
    /// let options = Options::default().limits(Limits::default().loop_iterations(u64::MAX));
    /// let mut session = model.compile(&options)?.session();
    /// session.set_run_options(&RunOptions::new().time_limit(Duration::from_millis(20)));
    /// for _ in 0..2 {
    ///     assert_eq!(session.evaluate(&[Value::from(1_i64 << 45)]).unwrap_err().code(), "deadline");
    ///     assert_eq!(session.evaluate(&[Value::from(4_i64)])?, [Value::from(14_i64)]);
    /// }
    /// # Ok::<(), cembra::Error>(())
    /// ```
    #[must_use]
    pub fn time_limit(self, limit: Duration) -> Self {
        RunOptions { time_limit: Some(limit), ..self }
    }

    /// Lets a run use up to `threads` threads if it is long enough. The threads belong to rayon's pool for the process, or to the pool in which the
    /// caller runs (`pool.install(..)`). Results do not depend on the number of threads. In a forked process, a pool that the caller made before the
    /// fork has no threads, so the run would wait for ever.
    #[must_use]
    pub fn threads(self, threads: usize) -> Self {
        RunOptions { threads: Some(threads), ..self }
    }

    /// Sets the limits of runs on bytes of strings and arrays, loop iterations, and work on strings. If the model was compiled with a lower limit,
    /// the lower one holds. Limits on compiling and on texts are ignored.
    #[must_use]
    pub fn limits(self, limits: Limits) -> Self {
        RunOptions { limits: Some(limits), ..self }
    }

    /// Sets the number of rows of a batch. The number must be set if no column has it: if all inputs are shared values, or there are no inputs.
    #[must_use]
    pub fn rows(self, rows: usize) -> Self {
        RunOptions { rows: Some(rows), ..self }
    }

    /// Sets the maximum number of rows that a batch evaluates between two checks for cancellation, for models that take long per row. With a smaller
    /// number, a batch of fewer rows is already divided among several threads. The number is rounded down to a multiple of 64, and is at least 64.
    /// Results do not depend on this number.
    #[must_use]
    pub fn strip_rows(self, rows: usize) -> Self {
        RunOptions { strip_rows: Some(rows), ..self }
    }

    /// Sets the maximum number of row errors that a batch keeps: [`RunOptions::KEPT_FAILURES`] by default.
    #[must_use]
    pub fn keep_failures(self, keep: usize) -> Self {
        RunOptions { keep_failures: Some(keep), ..self }
    }

    /// Sets the treatment of failed rows, in batches and in the tests of models.
    #[must_use]
    pub fn on_error(self, on_error: OnError) -> Self {
        RunOptions { on_error: Some(on_error), ..self }
    }

    /// The treatment of failed rows; `None` if it is not set.
    pub const fn failed_rows(&self) -> Option<OnError> {
        self.on_error
    }

    /// Returns a token for a run that begins now. The token ends the run when it is cancelled, at the deadline, or when the time limit is over. Each
    /// run with a time limit needs a token of its own.
    pub fn token(&self) -> Option<Cancellation> {
        // A limit that the clock cannot represent never ends a run.
        let late = self.time_limit.and_then(|limit| Instant::now().checked_add(limit));
        self.token_until(self.deadline.into_iter().chain(late).min())
    }

    /// Returns the token of runs that end at `moment`; without a moment, the token of the options.
    fn token_until(&self, moment: Option<Instant>) -> Option<Cancellation> {
        match moment {
            None => self.cancellation.clone(),
            Some(moment) => Some(self.cancellation.clone().unwrap_or_default().until(moment)),
        }
    }

    /// Sets the token and the time limit of later runs in `context`, which has those of the options `before`.
    pub(crate) fn end_runs(&self, before: &RunOptions, context: &mut Context) {
        // A caller that sets the same time limit before each run keeps the record that the clock watches.
        let has_token = |options: &RunOptions| options.cancellation.is_some() || options.deadline.is_some();
        if self.time_limit == before.time_limit && !has_token(self) && !has_token(before) {
            return;
        }
        let token = self.token_until(self.deadline);
        match self.time_limit {
            None => context.set_cancellation(token),
            Some(limit) => context.set_time_limit(token, limit),
        }
    }

    /// The time limit of each run; `None` if there is none.
    pub const fn run_time_limit(&self) -> Option<Duration> {
        self.time_limit
    }

    /// The number of threads; `None` if it is not set.
    pub const fn thread_count(&self) -> Option<usize> {
        self.threads
    }

    /// The number of rows of a batch; `None` if it is not set.
    pub const fn row_count(&self) -> Option<usize> {
        self.rows
    }

    /// Converts these options to the terms of a run, with `token` and `limits`. `token` must be the [`token`](Self::token) of these options.
    pub(crate) fn terms<'r>(&self, token: Option<&'r Cancellation>, limits: Option<&'r Limits>) -> RunTerms<'r> {
        RunTerms {
            token,
            threads: self.threads.unwrap_or(0),
            limits,
            on_error: self.on_error.unwrap_or_default(),
            strip_rows: self.strip_rows.unwrap_or(usize::MAX),
            keep_failures: self.keep_failures.unwrap_or(Self::KEPT_FAILURES),
        }
    }

    /// Returns the options of a run on many rows that ends when `token` is cancelled, or at the first row that fails.
    pub(crate) fn of_rows(&self, token: Option<Cancellation>) -> Self {
        let of_row = self.clone();
        RunOptions {
            cancellation: token,
            deadline: None,
            time_limit: None,
            on_error: Some(OnError::Fail),
            rows: None,
            ..of_row
        }
    }

    /// Returns true if these options set several threads or limits for a run of tensors. Options that concern only runs on rows do not count.
    pub(crate) fn have_terms(&self) -> bool {
        let RunOptions {
            threads,
            limits,
            cancellation: _,
            deadline: _,
            time_limit: _,
            on_error: _,
            rows: _,
            strip_rows: _,
            keep_failures: _,
        } = self;
        *threads > Some(1) || limits.is_some()
    }

    /// The limits of a run; `None` if they are not set.
    pub const fn run_limits(&self) -> Option<&Limits> {
        self.limits.as_ref()
    }
}
