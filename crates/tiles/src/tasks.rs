//! Tasks of one evaluation, run on several threads. Each task computes values of its own, in an order that follows from shapes alone. So
//! results depend neither on the number of threads nor on how work is divided into tasks. Shapes decide this division, and for products
//! also the number of threads. Errors do not depend on threads either: the error of the first task that fails is returned.

use crate::error::caught;
use crate::link::Ranks;
use crate::tiled::pool::Pool;
use crate::tiled::tile::{Float, TileMemory};
use crate::{Journal, Options, TileMap};
use cembra_runtime::Cancellation;
use cembra_value::tensor::{TensorErrorKind as Kind, check_room, index_count};
use cembra_value::{Error, ProcessPool, useful_threads};
use rayon::{Scope, ThreadPool};
use std::cmp::Reverse;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// The resources of an evaluation: threads, the token that cancels it, memory and its limit, and the ranks that share the evaluation.
#[derive(Clone, Debug)]
pub(crate) struct Workers {
    pub(crate) threads: usize,
    pub(crate) token: Option<Cancellation>,
    pub(crate) pool: Arc<Pool>,
    pub(crate) options: Options,
    pub(crate) journal: Option<Journal>,
    /// True if the evaluation only plans, so that it computes no tile.
    pub(crate) is_plan: bool,
    /// The bytes that values outside of the evaluation occupy while it runs.
    pub(crate) held_bytes: usize,
    /// The ranks that share the evaluation; `None` if only this process computes.
    pub(crate) ranks: Option<Arc<Ranks>>,
    /// The map that decides which rank owns which tile of a result; `None` if no map was given.
    pub(crate) map: Option<TileMap>,
}

/// A function that the thread waiting for tasks calls repeatedly. If the function returns an error, the tasks are stopped.
pub(crate) type Watch<'w> = &'w mut dyn FnMut() -> Result<(), Error>;

/// The longest time between two calls of a [`Watch`] function by the thread that waits for tasks.
const PAUSE: Duration = Duration::from_micros(200);

/// A task that no thread has begun, or the result of a task.
struct Slot<W, R> {
    work: Option<W>,
    result: Option<R>,
}

impl Workers {
    /// Makes workers with one thread of this process, without a cancellation token, and with the memory limit in `options`.
    pub(crate) fn alone(options: &Options) -> Workers {
        Workers {
            threads: 1,
            token: None,
            pool: Arc::new(Pool::new(options.pool_bytes.min(options.most_bytes))),
            options: options.clone(),
            journal: None,
            is_plan: false,
            held_bytes: 0,
            ranks: None,
            map: None,
        }
    }

    /// Returns the ranks that share the evaluation; `None` if there is only one rank, or the evaluation only plans.
    pub(crate) fn several(&self) -> Option<&Ranks> {
        self.ranks.as_deref().filter(|ranks| !self.is_plan && ranks.link().size() > 1)
    }

    /// Takes memory for a tile with these extents. The elements have arbitrary values.
    pub(crate) fn memory<T: Float>(&self, extents: &[usize]) -> Result<TileMemory<T>, Error> {
        TileMemory::pooled(index_count(extents)?, &self.pool)
    }

    /// Returns a copy of the workers in which `more` bytes, in addition to the bytes of elements, count against the
    /// memory limit. `what` returns the name of the things that take these bytes, for the error.
    ///
    /// # Errors
    /// If the memory limit does not suffice.
    pub(crate) fn counting(&self, more: usize, what: impl FnOnce() -> String) -> Result<Workers, Error> {
        let options = self.options.clone().counting(more, what)?;
        Ok(Workers { options, ..self.clone() })
    }

    /// Returns an error if a result with `tiles` tiles and `bytes` bytes would exceed the memory limit of an evaluation, or the memory of
    /// the system.
    pub(crate) fn check_result(&self, tiles: usize, bytes: usize) -> Result<(), Error> {
        self.check_bytes(bytes, || format!("a result of {tiles} tiles"))
    }

    /// Returns an error if `bytes` bytes exceed the memory limit of an evaluation, or the memory of the system. `what`
    /// returns the name of the things that take the bytes, for the error.
    pub(crate) fn check_bytes(&self, bytes: usize, what: impl FnOnce() -> String) -> Result<(), Error> {
        let most = self.options.most_bytes;
        if bytes > most {
            let missing = bytes - most;
            let message = format!(
                "{} takes {bytes} bytes; the limit is {most} bytes, which is exceeded by {missing} bytes",
                what()
            );
            return Err(Error::tensors(Kind::Limit, message).hint("raise the threshold, or `most_bytes`"));
        }
        // A plan may be made for a machine with other memory.
        if self.is_plan { Ok(()) } else { check_room(bytes) }
    }

    /// Begins a step with `parts` parts in the journal. A part is a tile, or a product of tiles.
    pub(crate) fn begin(&self, parts: usize) {
        if let Some(journal) = &self.journal {
            journal.begin(parts);
        }
    }

    /// Counts `parts` parts (tiles, or products of tiles) of the running step as done. Threads call this once per task.
    pub(crate) fn advance(&self, parts: usize) {
        if let Some(journal) = &self.journal {
            journal.advance(parts);
        }
    }

    /// Returns the workers for an evaluation that takes `bytes` bytes, and in addition `each` bytes per thread. They
    /// have as many threads as the memory limit allows, but at least one.
    ///
    /// # Errors
    /// If the memory limit does not suffice for one thread.
    pub(crate) fn within_bytes(
        &self,
        bytes: usize,
        each: usize,
        what: impl FnOnce() -> String,
    ) -> Result<Workers, Error> {
        let all = bytes.saturating_add(each);
        self.check_bytes(all, what)?;
        let more = (self.options.most_bytes - all).checked_div(each).unwrap_or(usize::MAX);
        let threads = self.threads.min(more.saturating_add(1));
        let all = bytes.saturating_add(each.saturating_mul(threads));
        // The bytes that the pool keeps count as taken, too.
        self.pool.shrink(self.options.most_bytes.saturating_sub(all));
        if let Some(journal) = &self.journal {
            journal.take(self.held_bytes.saturating_add(all));
        }
        Ok(Workers { threads, ..self.clone() })
    }

    /// Returns an error if the evaluation was cancelled.
    pub(crate) fn check(&self) -> Result<(), Error> {
        match &self.token {
            Some(token) if token.is_cancelled() => Err(Error::ended_by(Some(token))),
            _ => Ok(()),
        }
    }

    /// Runs a task for each item of `work`, and returns the results of the tasks in the order of `work`. Tasks with the largest weight
    /// are started first.
    ///
    /// # Errors
    /// The error of the first task, in the order of `work`, that fails or panics; or an error if the evaluation was cancelled between
    /// two tasks.
    pub(crate) fn run<W: Send, R: Send>(
        &self,
        work: Vec<W>,
        weight: impl Fn(&W) -> u64,
        task: impl Fn(W) -> Result<R, Error> + Sync,
    ) -> Result<Vec<R>, Error> {
        self.watched(work, weight, task, None)
    }

    /// Runs tasks as [`run`](Workers::run) does. The calling thread calls `watch` between two tasks, or while other threads run tasks.
    ///
    /// # Errors
    /// The errors of [`run`](Workers::run), or the error of `watch`, which takes precedence.
    pub(crate) fn watched<W: Send, R: Send>(
        &self,
        work: Vec<W>,
        weight: impl Fn(&W) -> u64,
        task: impl Fn(W) -> Result<R, Error> + Sync,
        mut watch: Option<Watch<'_>>,
    ) -> Result<Vec<R>, Error> {
        let task = |work: W| caught("a task", || task(work));
        let threads = useful_threads(self.threads.min(work.len()));
        let pool = if threads > 1 { ProcessPool::current() } else { ProcessPool::Absent };
        if matches!(pool, ProcessPool::Absent) {
            let one = |work: W| {
                if let Some(watch) = &mut watch {
                    watch()?;
                }
                self.check().and_then(|()| task(work))
            };
            return work.into_iter().map(one).collect();
        }
        let pool = if let ProcessPool::Given(pool) = pool { Some(pool) } else { None };
        let weights: Vec<u64> = work.iter().map(weight).collect();
        let mut order: Vec<usize> = (0..work.len()).collect();
        order.sort_by_key(|at| Reverse(weights[*at]));
        let slot = |work| Mutex::new(Slot { work: Some(work), result: None });
        let shared = Shared {
            workers: self,
            order,
            slots: work.into_iter().map(slot).collect(),
            next: AtomicUsize::new(0),
            failed: AtomicUsize::new(usize::MAX),
            error: Mutex::new(None),
            is_ended: AtomicBool::new(false),
            running: AtomicUsize::new(threads),
        };
        // A thread of the pool that watched would not run tasks.
        match watch.filter(|_| rayon::current_thread_index().is_none()) {
            None => scoped(pool, |scope| (0..threads).for_each(|_| scope.spawn(|_| shared.work(&task)))),
            Some(watch) => {
                let waiting = thread::current();
                let stopped: Result<(), Error> = scoped(pool, |scope| {
                    for _ in 0..threads {
                        scope.spawn(|_| {
                            shared.work(&task);
                            if shared.running.fetch_sub(1, Ordering::AcqRel) == 1 {
                                waiting.unpark();
                            }
                        });
                    }
                    while shared.running.load(Ordering::Acquire) > 0 {
                        watch().inspect_err(|_| shared.is_ended.store(true, Ordering::Relaxed))?;
                        thread::park_timeout(PAUSE);
                    }
                    Ok(())
                });
                stopped?;
            }
        }
        let Shared { slots, error, is_ended, .. } = shared;
        if is_ended.into_inner() {
            return Err(Error::ended_by(self.token.as_ref()));
        }
        if let Some((_, error)) = error.into_inner().unwrap_or_else(PoisonError::into_inner) {
            return Err(error);
        }
        let results =
            slots.into_iter().filter_map(|slot| slot.into_inner().unwrap_or_else(PoisonError::into_inner).result);
        Ok(results.collect())
    }
}

/// Runs code in this thread. The jobs that it spawns run in `pool`, or in rayon's current pool if `pool` is `None`.
/// Returns when all jobs are done.
fn scoped<'s, R>(pool: Option<&ThreadPool>, code: impl FnOnce(&Scope<'s>) -> R) -> R {
    match pool {
        Some(pool) => pool.in_place_scope(code),
        None => rayon::in_place_scope(code),
    }
}

/// The state that the threads share while they run a list of tasks.
struct Shared<'w, W, R> {
    workers: &'w Workers,
    /// The positions of the tasks in the order in which they are begun.
    order: Vec<usize>,
    /// For each task, a lock with the task until it is begun, and its result when it is done.
    slots: Vec<Mutex<Slot<W, R>>>,
    /// The number of tasks that were begun.
    next: AtomicUsize,
    /// The position of the first task, in the order of the work, that has failed so far. Tasks after it need not run.
    failed: AtomicUsize,
    /// The error of the first task, in the order of the work, that failed, and the task's position; `None` if no task failed.
    error: Mutex<Option<(usize, Error)>>,
    is_ended: AtomicBool,
    /// The number of threads that run tasks.
    running: AtomicUsize,
}

impl<W, R> Shared<'_, W, R> {
    /// Runs tasks until none are left, or the evaluation was cancelled.
    fn work(&self, task: &impl Fn(W) -> Result<R, Error>) {
        // Relaxed: locks guard the values that tasks hand over.
        while let Some(at) = self.order.get(self.next.fetch_add(1, Ordering::Relaxed)).copied() {
            if self.is_ended.load(Ordering::Relaxed) {
                return;
            }
            if self.workers.check().is_err() {
                self.is_ended.store(true, Ordering::Relaxed);
                return;
            }
            // Tasks before the one that failed still run, because one of them may fail too.
            if at > self.failed.load(Ordering::Relaxed) {
                continue;
            }
            let slot = || self.slots[at].lock().unwrap_or_else(PoisonError::into_inner);
            let work = slot().work.take();
            match work.map(task) {
                Some(Ok(result)) => slot().result = Some(result),
                Some(Err(error)) => self.fail(at, error),
                None => {}
            }
        }
    }

    fn fail(&self, at: usize, error: Error) {
        let mut known = self.error.lock().unwrap_or_else(PoisonError::into_inner);
        if known.as_ref().is_none_or(|(first, _)| at < *first) {
            *known = Some((at, error));
            self.failed.fetch_min(at, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workers(threads: usize) -> Workers {
        Workers { threads, ..Workers::alone(&Options::default()) }
    }

    #[test]
    fn the_error_is_that_of_the_first_task_that_fails() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(5).build().expect("threads");
        for threads in [1, 2, 5] {
            // The last ones weigh the most, so they are begun first.
            let run = |first: u64| {
                workers(threads).run(
                    (0..200).collect(),
                    |at| *at,
                    |at: u64| {
                        let message = || format!("task {at}");
                        match at {
                            _ if at < first => Ok(at),
                            _ if at.is_multiple_of(3) => panic!("{}", message()),
                            _ => Err(Error::tensors(Kind::Evaluation, message())),
                        }
                    },
                )
            };
            assert_eq!(pool.install(|| run(200)).expect("no error"), (0..200).collect::<Vec<u64>>());
            assert_eq!(pool.install(|| run(17)).expect_err("an error").to_string(), "task 17");
            assert_eq!(pool.install(|| run(18)).expect_err("an error").to_string(), "a task panicked: task 18");
        }
    }

    #[test]
    fn no_task_is_begun_after_the_end() {
        for threads in [1, 3] {
            let token = Cancellation::new();
            let run = Workers { token: Some(token.clone()), ..workers(threads) };
            let begun = AtomicUsize::new(0);
            let made = run.run(
                (0..1000).collect(),
                |_| 1,
                |_: usize| {
                    begun.fetch_add(1, Ordering::Relaxed);
                    token.cancel();
                    Ok(())
                },
            );
            assert_eq!(made.expect_err("an error").fault_kind(), Some(cembra_runtime::FaultKind::Cancelled));
            assert!(begun.into_inner() <= threads);
        }
    }
}
