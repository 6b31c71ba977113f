//! Runs with a time limit, as they and the thread of the clock see them. A run notes the beat of the clock at which it begins, and that it ended; the
//! clock reads the notes, and raises the flag of a run that is late. The next run lowers the flag.

use crate::flag::{Flag, RUNS};
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::thread;
use std::sync::Arc;
use std::time::Duration;

/// Runs with a time limit that follow each other: those of one context.
#[derive(Debug)]
pub(crate) struct TimedRuns {
    /// The flag that ends a run. It is raised for good by the token that the runs have beside the limit.
    pub(crate) flag: Arc<Flag>,
    pub(crate) limit: Duration,
    /// The [`RunMark`] of the last run.
    last: AtomicU64,
    /// True while the clock raises the flag.
    is_raising: AtomicBool,
}

/// A run: the beat at which it began, and whether it has ended. Runs that begin at the same beat have equal marks, and the same moment at which they are
/// late.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RunMark(u64);

impl RunMark {
    /// The mark of a run that begins.
    const fn begun(beat: u64) -> RunMark {
        RunMark(beat << 1 | 1)
    }

    pub(crate) const fn is_running(self) -> bool {
        self.0 & 1 == 1
    }

    pub(crate) const fn beat(self) -> u64 {
        self.0 >> 1
    }
}

impl TimedRuns {
    /// Runs that `flag` ends, each of which may take `limit`.
    pub(crate) fn new(flag: Arc<Flag>, limit: Duration) -> TimedRuns {
        TimedRuns { flag, limit, last: AtomicU64::new(0), is_raising: AtomicBool::new(false) }
    }

    /// Begins a run at a beat of the clock. The clock must tick after that.
    #[inline]
    pub(crate) fn begin(&self, beat: u64) {
        // The clock sets `is_raising` before it reads the mark. All of these are in one order (SeqCst), so either the clock reads this mark, or what it
        // set is seen here.
        self.last.store(RunMark::begun(beat).0, Ordering::SeqCst);
        if self.is_raising.load(Ordering::SeqCst) || self.flag.is_late() {
            self.lower();
        }
    }

    /// Lowers the flag that was raised for a run before this one.
    #[cold]
    #[inline(never)]
    fn lower(&self) {
        // The clock raises a flag in nanoseconds.
        while self.is_raising.load(Ordering::Acquire) {
            thread::yield_now();
        }
        self.flag.lower();
    }

    /// Ends the run.
    #[inline]
    pub(crate) fn end(&self) {
        // Only the session that runs writes the mark.
        self.last.store(self.last.load(Ordering::Relaxed) & !1, Ordering::Release);
    }

    /// The last run.
    pub(crate) fn last(&self) -> RunMark {
        RunMark(self.last.load(Ordering::SeqCst))
    }

    /// Raises the flag, if `run` is still the last run and has not ended. The run after it lowers the flag if this came too late.
    pub(crate) fn raise(&self, run: RunMark) {
        self.is_raising.store(true, Ordering::SeqCst);
        if self.last() == run {
            self.flag.raise_late();
        }
        self.is_raising.store(false, Ordering::Release);
    }

    /// Ends this run and all to come, because there is no thread that could end a run that is late.
    pub(crate) fn end_all(&self) {
        self.flag.end_by_time();
    }

    /// True if no run may begin, because the token was cancelled. That the last run was late does not count.
    pub(crate) fn is_ended(&self) -> bool {
        self.flag.lasting() != RUNS
    }
}
