//! The compiled functions of a tiered model, from the lowest tier to the highest. The functions form a ladder: each
//! function is a rung. A rung is added while the model runs, and is faster than the rung below. The ladder also records
//! which rung the model's calls run. The ladder does not depend on the compiler, or on the threads that compile.
//!
//! A rung stays until the ladder is dropped. So a call can finish with the function that it began with, even if rungs
//! are added or chosen during the call, and choosing a rung is one atomic store.

use super::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use super::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::process;
use std::sync::OnceLock;

/// The most rungs of a ladder, which is the number of tiers of machine code.
pub(crate) const RUNGS: usize = 2;

/// The progress of compiling a model's tiers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Progress {
    /// No thread has been asked to compile the model yet.
    Waiting,
    /// A thread of the process with this process ID was asked to compile the model.
    Queued(u32),
    /// A thread of the process with this process ID is compiling the model.
    Climbing(u32),
    /// The model is compiled in all its tiers, or compiling failed: no further functions will be added.
    Finished,
}

/// The compiled functions of one tiered model. A function is a rung of the ladder; rungs are numbered from 1. Until a rung is chosen, the interpreter
/// runs the model's calls.
#[derive(Debug)]
pub(crate) struct TierList<F> {
    rungs: [OnceLock<F>; RUNGS],
    chosen: AtomicUsize,
    /// The number of interpreted calls that are left before compiling is requested. It may fall below zero, at most by
    /// the number of threads.
    calls_left: AtomicI64,
    progress: Mutex<Progress>,
    finished: Condvar,
}

impl<F> TierList<F> {
    /// Makes a ladder without compiled functions. Compiling is due after `calls` calls.
    pub(crate) fn new(calls: u32) -> Self {
        TierList {
            rungs: [const { OnceLock::new() }; RUNGS],
            chosen: AtomicUsize::new(0),
            calls_left: AtomicI64::new(i64::from(calls)),
            progress: Mutex::new(Progress::Waiting),
            finished: Condvar::new(),
        }
    }

    /// The compiled function that the model's calls run, and the number of its rung; `None` while the interpreter runs
    /// the calls.
    #[inline]
    pub(crate) fn chosen(&self) -> Option<(usize, &F)> {
        // A rung is set before it is chosen: acquiring the choice makes the function visible.
        let rung = self.chosen.load(Ordering::Acquire);
        Some((rung, self.rungs.get(rung.wrapping_sub(1))?.get()?))
    }

    /// Counts a call that the interpreter runs. Returns true for the one call after which compiling must be requested.
    #[inline]
    pub(crate) fn count_call(&self) -> bool {
        self.calls_left.load(Ordering::Relaxed) > 0 && self.calls_left.fetch_sub(1, Ordering::Relaxed) == 1
    }

    /// Requests compiling by calling `ask`, unless compiling was already requested or has begun. If `ask` returns false, so does this function, and
    /// compiling is due again after `again` calls.
    pub(crate) fn request(&self, again: u32, ask: impl FnOnce() -> bool) -> bool {
        {
            let mut progress = self.progress();
            if *progress != Progress::Waiting {
                return true;
            }
            *progress = Progress::Queued(process::id());
        }
        let is_accepted = ask();
        if !is_accepted {
            let mut progress = self.progress();
            if matches!(*progress, Progress::Queued(_)) {
                *progress = Progress::Waiting;
                self.calls_left.store(i64::from(again), Ordering::Relaxed);
            }
        }
        is_accepted
    }

    /// Returns true for the one thread that must compile the model. That thread must call `finish` afterwards.
    pub(crate) fn start(&self) -> bool {
        let mut progress = self.progress();
        let process = process::id();
        let is_first = match *progress {
            Progress::Waiting | Progress::Queued(_) => true,
            // The thread that compiled does not exist in a process that was forked meanwhile.
            Progress::Climbing(of) => of != process,
            Progress::Finished => false,
        };
        if is_first {
            *progress = Progress::Climbing(process);
            self.calls_left.store(0, Ordering::Relaxed);
        }
        is_first
    }

    /// Adds to the ladder the compiled function of the rung `rung`. Calls do not run it until the rung is chosen.
    pub(crate) fn add(&self, rung: usize, function: F) {
        if let Some(place) = self.rungs.get(rung.wrapping_sub(1)) {
            // Only the one thread that compiles adds rungs, each once.
            let _ = place.set(function);
        }
    }

    /// Chooses the next rung that has a function, so that calls run it. Returns the chosen rung (0 for the interpreter), and whether it has changed.
    pub(crate) fn choose_next(&self) -> (usize, bool) {
        let before = self.chosen.load(Ordering::Acquire);
        let next = (before + 1..=RUNGS).find(|rung| self.rungs[rung - 1].get().is_some());
        let Some(next) = next else { return (before, false) };
        // If several threads choose at once, none undoes the choice of another.
        let found = self.chosen.fetch_max(next, Ordering::AcqRel);
        (found.max(next), found < next)
    }

    /// Records that no further compiled functions will be added.
    pub(crate) fn finish(&self) {
        *self.progress() = Progress::Finished;
        self.finished.notify_all();
    }

    /// Waits until no further compiled functions will be added.
    pub(crate) fn wait(&self) {
        let mut progress = self.progress();
        while *progress != Progress::Finished {
            progress = self.finished.wait(progress).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Returns true if no further compiled functions will be added. Also true in a process that was forked after its parent had requested compiling,
    /// because no thread of the forked process compiles.
    pub(crate) fn is_finished(&self) -> bool {
        match *self.progress() {
            Progress::Waiting => false,
            Progress::Queued(of) | Progress::Climbing(of) => of != process::id(),
            Progress::Finished => true,
        }
    }

    /// Returns all compiled functions so far.
    pub(crate) fn functions(&self) -> impl Iterator<Item = &F> {
        self.rungs.iter().filter_map(OnceLock::get)
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        // No code that can panic runs while it is locked.
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
