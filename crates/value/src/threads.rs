//! The pool whose threads share the work of one run. A fork copies the calling thread alone: in the child rayon's pool has no threads, and a job
//! for it would wait for ever. A process that was forked gets a pool of its own.

use rayon::{ThreadPool, ThreadPoolBuilder};
use std::process;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

/// The number of the process that compiled a model, or shared work out, first; 0 before.
static FIRST: AtomicU32 = AtomicU32::new(0);

/// The pool of a process that was forked, with the number of the process. A pool that was inherited is never dropped: it has no threads that
/// could end.
static OWN: Mutex<Option<(u32, &'static ThreadPool)>> = Mutex::new(None);

/// The pool that jobs go to.
#[derive(Clone, Copy, Debug)]
pub enum ProcessPool<'p> {
    /// Rayon's: that of the process, or that in which the calling thread runs.
    Rayons,
    /// This one: the caller's, or that of a process that was forked.
    Given(&'p ThreadPool),
    /// There is none, so the calling thread does all jobs: the process was forked, and the system has no thread for it.
    Absent,
}

impl ProcessPool<'_> {
    /// The pool for jobs of the calling thread, which has none of its own. Asks the system which process this is, so it is called only where several threads are of use.
    ///
    /// ```
    /// use cembra_value::ProcessPool;
    ///
    /// assert!(matches!(ProcessPool::current(), ProcessPool::Rayons));
    /// ```
    #[must_use]
    pub fn current() -> ProcessPool<'static> {
        // Jobs of a thread of a pool go to that pool, and the thread does itself those that no other takes.
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

/// The most shares per thread of a pool: more shares would not give any thread more to do.
const SHARES: usize = 4;

/// Returns the number of threads that a caller asks for, but at most 4 per thread of the pool: that in which the caller runs, or else that of the
/// process. The number is bounded because memory is made for each of these threads.
#[must_use]
pub fn useful_threads(asked: usize) -> usize {
    if asked <= 1 {
        return 1;
    }
    asked.min(rayon::current_num_threads().saturating_mul(SHARES)).max(1)
}

/// Notes the process, unless one was noted: a child of it that is forked from now on has a pool of its own.
pub(crate) fn note_process() {
    if FIRST.load(Ordering::Relaxed) == 0 {
        let _ = FIRST.compare_exchange(0, process::id(), Ordering::Relaxed, Ordering::Relaxed);
    }
}

/// The pool of a process that was forked.
#[cold]
fn own(process: u32) -> ProcessPool<'static> {
    // A thread that held the lock when this process was forked never gives it back, so no thread waits for it.
    let Ok(mut own) = OWN.try_lock() else { return ProcessPool::Absent };
    if let Some((of, pool)) = *own
        && of == process
    {
        return ProcessPool::Given(pool);
    }
    // As many threads as rayon's pool has, or was told to have.
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
