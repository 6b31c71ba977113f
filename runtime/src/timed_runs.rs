//! Runs with a time limit: the data that they share with the clock's thread. A run records the beat of the clock (its
//! number of ticks) at which the run begins, and its end. The clock reads these records and raises the flag of a late
//! run. The next run lowers the flag.

use crate::flag::{Flag, RUNS};
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::thread;
use std::sync::Arc;
use std::time::Duration;

/// The runs of one context, one after the other, that each have a time limit: the state that the context shares with the clock's thread.
#[derive(Debug)]
pub(crate) struct TimedRuns {
    /// The flag that ends a run, because it exceeds its limit or because a token is cancelled. A cancelled token raises the flag permanently.
    pub(crate) flag: Arc<Flag>,
    pub(crate) limit: Duration,
    /// The [`RunMark`] (start and end) of the last run.
    last: AtomicU64,
    /// True while the clock's thread is raising the flag for a late run.
    is_raising: AtomicBool,
}

/// The record of a run: the beat of the clock (its number of ticks) at which the run began, and whether it has ended.
/// Runs that begin at the same beat have equal marks, and they become late at the same time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RunMark(u64);

impl RunMark {
    /// The mark of a run that begins.
    const fn begun(beat: u64) -> RunMark {
        RunMark(beat << 1 | 1)
    }

    /// Returns true if the run has not ended.
    pub(crate) const fn is_running(self) -> bool {
        self.0 & 1 == 1
    }

    /// The beat of the clock (its number of ticks) at which the run began.
    pub(crate) const fn beat(self) -> u64 {
        self.0 >> 1
    }
}

impl TimedRuns {
    /// Makes the state of runs that `flag` ends, each with the time limit `limit`.
    pub(crate) fn new(flag: Arc<Flag>, limit: Duration) -> TimedRuns {
        TimedRuns { flag, limit, last: AtomicU64::new(0), is_raising: AtomicBool::new(false) }
    }

    /// Begins a run at the beat `beat` of the clock (its number of ticks). Afterwards the caller must make sure that
    /// the clock ticks.
    #[inline]
    pub(crate) fn begin(&self, beat: u64) {
        // The clock sets `is_raising` before it reads the mark. All of these are in one order (SeqCst), so either the clock reads this mark, or its
        // `is_raising` is seen here.
        self.last.store(RunMark::begun(beat).0, Ordering::SeqCst);
        if self.is_raising.load(Ordering::SeqCst) || self.flag.is_late() {
            self.lower();
        }
    }

    /// Lowers the flag that was raised for an earlier run.
    #[cold]
    #[inline(never)]
    fn lower(&self) {
        // This wait is short, because the clock raises a flag in nanoseconds.
        while self.is_raising.load(Ordering::Acquire) {
            thread::yield_now();
        }
        self.flag.lower();
    }

    /// Records that the current run has ended.
    #[inline]
    pub(crate) fn end(&self) {
        // Only the running session writes the mark.
        self.last.store(self.last.load(Ordering::Relaxed) & !1, Ordering::Release);
    }

    /// The record of the last run.
    pub(crate) fn last(&self) -> RunMark {
        RunMark(self.last.load(Ordering::SeqCst))
    }

    /// Raises the flag that ends runs, if `run` is still the last run and has not ended. If the run ends after this
    /// check but before the flag is raised, the next run lowers the flag.
    pub(crate) fn raise(&self, run: RunMark) {
        self.is_raising.store(true, Ordering::SeqCst);
        if self.last() == run {
            self.flag.raise_late();
        }
        self.is_raising.store(false, Ordering::Release);
    }

    /// Ends the current run and all later ones, because there is no thread that could end late runs.
    pub(crate) fn end_all(&self) {
        self.flag.end_by_time();
    }

    /// Returns true if no run may begin, because the token was cancelled. If the last run only exceeded its time limit, a new run may begin.
    pub(crate) fn is_ended(&self) -> bool {
        self.flag.lasting() != RUNS
    }
}
