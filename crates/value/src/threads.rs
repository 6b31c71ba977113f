//! The thread pool that shares the work of one run. A fork copies only the calling thread: in the child process, the
//! pool of the library rayon has no threads, and a job for it would wait for ever. So a forked process gets a pool of
//! its own.

use rayon::{ThreadPool, ThreadPoolBuilder};
use std::process;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

/// The id of the process that first compiled a model or shared work between threads; 0 before.
static FIRST: AtomicU32 = AtomicU32::new(0);

/// The pool of a forked process, with the id of the process. A pool that was inherited from the parent process is never
/// dropped, because its threads do not exist in this process.
static OWN: Mutex<Option<(u32, &'static ThreadPool)>> = Mutex::new(None);

/// The thread pool that runs the jobs of one run.
#[derive(Clone, Copy, Debug)]
pub enum ProcessPool<'p> {
    /// The jobs run on Rayon's pool: that of the process, or the one in which the calling thread runs.
    Rayons,
    /// The jobs run on this pool: the caller's own, or that of a forked process.
    Given(&'p ThreadPool),
    /// There is no pool, and the calling thread runs all jobs, because the process was forked and the system has no threads for a new pool.
    Absent,
}

impl ProcessPool<'_> {
    /// Returns the pool for the jobs of the calling thread, for callers that have no pool of their own. The function
    /// asks the system for the process id, so it should be called only if several threads can be used.
    ///
    /// ```
    /// use cembra_value::ProcessPool;
    ///
    /// assert!(matches!(ProcessPool::current(), ProcessPool::Rayons));
    /// ```
    #[must_use]
    pub fn current() -> ProcessPool<'static> {
        // Jobs of a pool's thread go to that pool, and the thread itself does the jobs that no other thread takes.
        if rayon::current_thread_index().is_some() {
            return ProcessPool::Rayons;
        }
        let process = process::id();
        match FIRST.compare_exchange(0, process, Ordering::Relaxed, Ordering::Relaxed) {
            Err(first) if first != process => own(process),
            _ => ProcessPool::Rayons,
        }
    }
}

/// The most threads that count as useful, per thread of a pool. More would not give any thread more work.
const SHARES: usize = 4;

/// Returns the number of threads `asked`, but at most 4 per thread of the pool. The pool is the one in which the caller
/// runs, or else that of the process. The number is bounded because memory is allocated for each of these threads.
#[must_use]
pub fn useful_threads(asked: usize) -> usize {
    if asked <= 1 {
        return 1;
    }
    asked.min(rayon::current_num_threads().saturating_mul(SHARES)).max(1)
}

/// Records the process id at the first call. A child that is forked later then gets a pool of its own.
pub(crate) fn note_process() {
    if FIRST.load(Ordering::Relaxed) == 0 {
        let _ = FIRST.compare_exchange(0, process::id(), Ordering::Relaxed, Ordering::Relaxed);
    }
}

/// The pool of a forked process, made at the first call.
#[cold]
fn own(process: u32) -> ProcessPool<'static> {
    // A thread that held the lock when this process was forked never releases it, so the lock is only tried.
    let Ok(mut own) = OWN.try_lock() else { return ProcessPool::Absent };
    if let Some((of, pool)) = *own
        && of == process
    {
        return ProcessPool::Given(pool);
    }
    // The same number of threads as rayon's pool has, or was configured to have.
    match ThreadPoolBuilder::new().num_threads(rayon::current_num_threads()).build() {
        Ok(pool) => {
            let pool: &'static ThreadPool = Box::leak(Box::new(pool));
            *own = Some((process, pool));
            ProcessPool::Given(pool)
        }
        Err(_) => ProcessPool::Absent,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_threads_count_than_are_of_use() {
        let pool = ThreadPoolBuilder::new().num_threads(3).build().unwrap();
        let useful = |asked| pool.install(|| useful_threads(asked));
        assert_eq!([0, 1, 2, 12, 13, 1 << 62, usize::MAX].map(useful), [1, 1, 2, 12, 12, 12, 12]);
        assert!((1..=4 * rayon::current_num_threads()).contains(&useful_threads(usize::MAX)));
    }
}
