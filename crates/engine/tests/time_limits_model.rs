//! Tests of the synchronisation of runs with a time limit, under a scheduler that tries many orders of threads. The
//! tests compile the runtime's file, with atomics of the scheduler in place of those of the standard library. A run
//! must be ended by its own limit, and never by the limit of the previous run.

#[path = "../../../runtime/src/timed_runs.rs"]
mod timed_runs;

/// The atomics and threads that the file under test uses, taken from the scheduler.
mod sync {
    pub(crate) use shuttle::sync::atomic;
    pub(crate) use shuttle::thread;
}

/// A flag like that of the runtime, without the other flags that depend on it.
mod flag {
    use shuttle::sync::atomic::{AtomicU8, Ordering};

    pub(crate) const RUNS: u8 = 0;
    const OVERDUE: u8 = 2;
    const LATE: u8 = 4;

    #[derive(Debug, Default)]
    pub(crate) struct Flag(AtomicU8);

    impl Flag {
        pub(crate) fn end_by_time(&self) {
            self.0.fetch_or(OVERDUE, Ordering::SeqCst);
        }

        pub(crate) fn raise_late(&self) {
            self.0.fetch_or(LATE, Ordering::SeqCst);
        }

        pub(crate) fn lower(&self) {
            self.0.fetch_and(!LATE, Ordering::SeqCst);
        }

        pub(crate) fn is_late(&self) -> bool {
            self.0.load(Ordering::SeqCst) & LATE != 0
        }

        pub(crate) fn lasting(&self) -> u8 {
            self.0.load(Ordering::SeqCst) & !LATE
        }
    }
}

use flag::Flag;
use shuttle::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use shuttle::thread;
use std::sync::Arc;
use std::time::Duration;
use timed_runs::TimedRuns;

/// The number of thread orders that are tried.
const ORDERS: usize = 5_000;

/// The number of beats (ticks of the clock) that a run may take.
const LIMIT: u64 = 2;

/// A sequence of runs, and the clock that ends runs that are late.
struct Clocked {
    runs: TimedRuns,
    beat: AtomicU64,
    is_over: AtomicBool,
}

impl Clocked {
    fn new() -> Clocked {
        let runs = TimedRuns::new(Arc::new(Flag::default()), Duration::from_millis(LIMIT));
        Clocked { runs, beat: AtomicU64::new(0), is_over: AtomicBool::new(false) }
    }

    /// Ticks until no more runs follow, and raises the flag of a run that is late.
    fn tick(&self) {
        while !self.is_over.load(Ordering::SeqCst) {
            let beat = self.beat.fetch_add(1, Ordering::SeqCst) + 1;
            let run = self.runs.last();
            if run.is_running() && run.beat() + LIMIT < beat {
                self.runs.raise(run);
            }
            thread::yield_now();
        }
    }

    /// Runs until the run is late, or for a number of steps. No step may find the flag raised before the limit is over.
    fn run(&self, steps: Option<usize>) {
        let begun = self.beat.load(Ordering::SeqCst);
        self.runs.begin(begun);
        let mut step = 0;
        while steps != Some(step) {
            if self.runs.flag.is_late() {
                assert!(self.beat.load(Ordering::SeqCst) > begun + LIMIT, "the run before was late");
                break;
            }
            step += 1;
            thread::yield_now();
        }
        assert!(self.runs.last().is_running());
        self.runs.end();
        assert!(!self.runs.last().is_running() && !self.runs.is_ended());
    }
}

#[test]
fn no_run_is_ended_for_the_run_before() {
    let body = || {
        let clocked = Arc::new(Clocked::new());
        let clock = thread::spawn({
            let clocked = clocked.clone();
            move || clocked.tick()
        });
        for steps in [None, Some(0), Some(2), None, Some(5), Some(1), Some(8)] {
            clocked.run(steps);
        }
        clocked.is_over.store(true, Ordering::SeqCst);
        clock.join().expect("a clock");
        assert_eq!(clocked.runs.limit, Duration::from_millis(LIMIT));
        clocked.runs.end_all();
        assert!(clocked.runs.is_ended());
    };
    shuttle::check_random(body, ORDERS);
    shuttle::check_pct(body, ORDERS, 3);
}
