//! The rungs of a tiered model: functions that are added while it runs, each better than the one below, and which of them
//! calls take. Knows nothing of compiling, nor of threads that do it.
//!
//! A rung that was added stays until the ladder goes. So a call may go on with the function that it found, whatever is added
//! or chosen meanwhile, and choosing is one atomic store.

use super::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use super::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::process;
use std::sync::OnceLock;

/// How many rungs there are, the ground not counted.
pub(crate) const RUNGS: usize = 2;

/// How far the climb is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Progress {
    /// Nobody was asked to climb.
    Waiting,
    /// A thread of the process with this number was asked to.
    Queued(u32),
    /// A thread of the process with this number does.
    Climbing(u32),
    /// There will be no further rungs.
    Finished,
}

/// Functions of one model. Rungs are numbered from 1; where none is chosen yet, calls are on the ground.
#[derive(Debug)]
pub(crate) struct Ladder<F> {
    rungs: [OnceLock<F>; RUNGS],
    chosen: AtomicUsize,
    /// Calls on the ground until somebody is asked to climb. It may fall below zero, by as many as there are threads.
    calls_left: AtomicI64,
    progress: Mutex<Progress>,
    finished: Condvar,
}

impl<F> Ladder<F> {
    /// A ladder without rungs, which is climbed after this many calls.
    pub(crate) fn new(calls: u32) -> Self {
        Ladder {
            rungs: [const { OnceLock::new() }; RUNGS],
            chosen: AtomicUsize::new(0),
            calls_left: AtomicI64::new(i64::from(calls)),
            progress: Mutex::new(Progress::Waiting),
            finished: Condvar::new(),
        }
    }

    /// The function to call, and the number of its rung; none on the ground.
    #[inline]
    pub(crate) fn chosen(&self) -> Option<(usize, &F)> {
        // A rung is set before it is chosen: acquiring the choice makes the function visible.
        let rung = self.chosen.load(Ordering::Acquire);
        Some((rung, self.rungs.get(rung.wrapping_sub(1))?.get()?))
    }

    /// Counts a call on the ground; true for the one after which to ask for a climb.
    #[inline]
    pub(crate) fn count_call(&self) -> bool {
        self.calls_left.load(Ordering::Relaxed) > 0 && self.calls_left.fetch_sub(1, Ordering::Relaxed) == 1
    }

    /// Asks for a climb, unless somebody did or it was begun. If `ask` refuses, false is returned, and it is asked again
    /// after so many calls.
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

    /// True for the one thread that is to climb. It calls `finish` when it did.
    pub(crate) fn start(&self) -> bool {
        let mut progress = self.progress();
        let process = process::id();
        let is_first = match *progress {
            Progress::Waiting | Progress::Queued(_) => true,
            // The thread that climbed when this process was forked is not in it.
            Progress::Climbing(of) => of != process,
            Progress::Finished => false,
        };
        if is_first {
            *progress = Progress::Climbing(process);
            self.calls_left.store(0, Ordering::Relaxed);
        }
        is_first
    }

    /// Adds a rung; calls do not take it before it is chosen.
    pub(crate) fn add(&self, rung: usize, function: F) {
        if let Some(place) = self.rungs.get(rung.wrapping_sub(1)) {
            // Only the one thread that climbs adds rungs, each once.
            let _ = place.set(function);
        }
    }

    /// Lets calls take the lowest rung above the chosen one that there is. Returns the number of the chosen one, 0 on the
    /// ground, and whether it is another than before.
    pub(crate) fn choose_next(&self) -> (usize, bool) {
        let before = self.chosen.load(Ordering::Acquire);
        let next = (before + 1..=RUNGS).find(|rung| self.rungs[rung - 1].get().is_some());
        let Some(next) = next else { return (before, false) };
        // Of several threads that choose at once, none takes back what another chose.
        let found = self.chosen.fetch_max(next, Ordering::AcqRel);
        (found.max(next), found < next)
    }

    /// Says that there will be no further rungs.
    pub(crate) fn finish(&self) {
        *self.progress() = Progress::Finished;
        self.finished.notify_all();
    }

    /// Waits until there will be no further rungs.
    pub(crate) fn wait(&self) {
        let mut progress = self.progress();
        while *progress != Progress::Finished {
            progress = self.finished.wait(progress).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Whether there will be no further rungs. True in a process that was forked before they were all there, because no thread of it climbs.
    pub(crate) fn is_finished(&self) -> bool {
        match *self.progress() {
            Progress::Waiting => false,
            Progress::Queued(of) | Progress::Climbing(of) => of != process::id(),
            Progress::Finished => true,
        }
    }

    /// The functions that there are.
    pub(crate) fn functions(&self) -> impl Iterator<Item = &F> {
        self.rungs.iter().filter_map(OnceLock::get)
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        // Nothing that can panic runs while it is locked.
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
