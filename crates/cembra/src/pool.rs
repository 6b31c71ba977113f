//! Pools of sessions or model executors. Threads borrow an evaluator and return it, so there are only as many evaluators as threads that
//! evaluate at the same time.

use crate::{ModelExecutor, RunOptions, Session};
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A value that runs a model in memory of its own: a [`Session`] or a [`ModelExecutor`].
pub trait Evaluator: Clone {
    /// Sets the token, deadline, threads and limits of later evaluations. A clone starts without them.
    fn set_run_options(&mut self, options: &RunOptions);
}

impl Evaluator for Session {
    fn set_run_options(&mut self, options: &RunOptions) {
        Session::set_run_options(self, options);
    }
}

impl<I, O, S> Evaluator for ModelExecutor<I, O, S> {
    fn set_run_options(&mut self, options: &RunOptions) {
        ModelExecutor::set_run_options(self, options);
    }
}

thread_local! {
    /// A byte whose address identifies the thread.
    static THREAD: u8 = const { 0 };
}

/// The most idle evaluators that a thread searches for the one it used before, from the latest.
const LOOKED_AT: usize = 16;

/// A pool of evaluators for threads to borrow. The pool grows when all evaluators are in use, and keeps a limited number of idle ones.
///
/// ```
/// use cembra::{Model, Options, Pool, Value};
///
/// let executor = Model::parse("input x: i64; x * x")?.compile(&Options::default())?;
/// let pool = Pool::new(executor.session());
/// std::thread::scope(|scope| {
///     for x in 0..4_i64 {
///         let pool = &pool;
///         scope.spawn(move || {
///             let found = pool.with(|session| session.evaluate(&[Value::from(x)])).unwrap();
///             assert_eq!(found, [Value::from(x * x)]);
///         });
///     }
/// });
/// assert!((1..=4).contains(&pool.idle()));
/// # Ok::<(), cembra::Error>(())
/// ```
pub struct Pool<T> {
    evaluators: Mutex<Evaluators<T>>,
    most: usize,
    options: RunOptions,
}

/// Formats one line for a log: the evaluator that is cloned, and the number of idle ones.
impl<T: Evaluator + fmt::Debug> fmt::Debug for Pool<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let evaluators = self.evaluators();
        let mut line = f.debug_struct("Pool");
        line.field("of", &evaluators.first).field("idle", &evaluators.idle.len()).field("most", &self.most).finish()
    }
}

/// The evaluators of a pool that are not in use.
struct Evaluators<T> {
    /// The evaluator that is cloned when no idle one is left.
    first: T,
    /// The idle evaluators, each with the thread that used it last.
    idle: Vec<(usize, Box<T>)>,
}

impl<T: Evaluator> Pool<T> {
    /// The most idle evaluators that a pool stores by default; further idle ones are dropped.
    pub const MOST: usize = 400;

    /// Returns a pool that makes its evaluators by cloning `first`.
    #[must_use]
    pub const fn new(first: T) -> Self {
        Pool::with_most(first, Pool::<T>::MOST)
    }

    /// Returns a pool that keeps up to `most` idle evaluators. More evaluators may be in use at once; surplus ones are dropped when they are
    /// returned.
    #[must_use]
    pub const fn with_most(first: T, most: usize) -> Self {
        Pool { evaluators: Mutex::new(Evaluators { first, idle: Vec::new() }), most, options: RunOptions::new() }
    }

    /// Sets the run options that evaluators have when they are lent, such as a time limit: the default options if this is not called. A time limit that
    /// is set here costs nothing per use; one that each use sets costs about a microsecond.
    ///
    /// ```
    /// use cembra::{Limits, Model, Options, Pool, RunOptions, Value};
    /// use std::time::Duration;
    ///
    /// let model = Model::parse("input n: i64; seq.reduce(fn(s, i) = s + i, seq.range(n), 0)")?;
    /// let options = Options::default().limits(Limits::default().loop_iterations(u64::MAX));
    /// let limit = RunOptions::new().time_limit(Duration::from_millis(5));
    /// let pool = Pool::new(model.compile(&options)?.session()).run_options(limit);
    /// for _ in 0..2 {
    ///     let error = pool.with(|session| session.evaluate(&[Value::from(1_i64 << 45)])).unwrap_err();
    ///     assert_eq!(error.code(), "deadline");
    /// }
    /// # Ok::<(), cembra::Error>(())
    /// ```
    #[must_use]
    pub fn run_options(self, options: RunOptions) -> Self {
        Pool { options, ..self }
    }

    /// Lends an evaluator to `run` and takes it back afterwards, without the run options that `run` set. If the evaluator that this thread used
    /// last is idle, it is chosen.
    pub fn with<A>(&self, run: impl FnOnce(&mut T) -> A) -> A {
        let thread = THREAD.with(|mark| std::ptr::from_ref(mark).addr());
        let mut evaluator = {
            let Evaluators { first, idle } = &mut *self.evaluators();
            // The memory of the evaluator that this thread used before is in its processor's cache; that of others may be in another's.
            let last = idle.len().saturating_sub(LOOKED_AT);
            let own = idle[last..].iter().rposition(|(of, _)| *of == thread);
            let taken = own.map(|at| idle.swap_remove(last + at)).or_else(|| idle.pop());
            match taken {
                Some((_, evaluator)) => evaluator,
                None => {
                    let mut evaluator = Box::new(first.clone());
                    evaluator.set_run_options(&self.options);
                    evaluator
                }
            }
        };
        let result = run(&mut evaluator);
        evaluator.set_run_options(&self.options);
        let mut evaluators = self.evaluators();
        if evaluators.idle.len() < self.most {
            evaluators.idle.push((thread, evaluator));
        }
        result
    }

    fn evaluators(&self) -> MutexGuard<'_, Evaluators<T>> {
        // A panic under the lock, in a clone, leaves the list consistent.
        self.evaluators.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of idle evaluators in the pool.
    #[must_use]
    pub fn idle(&self) -> usize {
        self.evaluators().idle.len()
    }
}
