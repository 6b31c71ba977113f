//! A time limit for each run of a context. Beginning a run takes a few nanoseconds: it records the tick of the clock (`timed_runs.rs`), whose thread
//! reads these records every millisecond (`timer.rs`).

use crate::Cancellation;
use crate::timed_runs::TimedRuns;
use crate::timer::{self, CLOCK};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The time limit for consecutive runs of one context. Dropping it makes the clock's thread stop checking the runs.
#[derive(Debug)]
pub struct TimeLimit(Arc<TimedRuns>);

impl TimeLimit {
    /// Makes a time limit: each run may take `limit`. Runs also end when `token` is cancelled.
    pub(crate) fn new(token: &Cancellation, limit: Duration) -> TimeLimit {
        let runs = Arc::new(TimedRuns::new(token.flag_of_runs(), limit));
        timer::watch(&runs);
        TimeLimit(runs)
    }

    /// The token that ends the runs.
    pub(crate) fn token(&self) -> Cancellation {
        Cancellation::of_flag(self.0.flag.clone())
    }

    /// Begins a run. The whole time limit of the run starts now.
    #[inline]
    pub fn begin(&self) {
        self.0.begin(CLOCK.beat.load(Ordering::Relaxed));
        // The clock clears `is_ticking`, then reads the marks of runs once more; all of this is in one order (SeqCst). So either the clock sees this
        // run, or the run sees that the clock does not tick.
        if !CLOCK.is_ticking.load(Ordering::SeqCst) {
            timer::start_ticking(&self.0);
        }
    }

    /// Ends the run.
    #[inline]
    pub fn end(&self) {
        self.0.end();
    }

    /// Returns true if no run may begin, because the token was cancelled. If the last run only exceeded its time limit, a new run may begin.
    pub(crate) fn is_ended(&self) -> bool {
        self.0.is_ended()
    }
}

impl Drop for TimeLimit {
    fn drop(&mut self) {
        timer::forget(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Context, FaultKind};
    use std::time::Instant;

    const HOUR: Duration = Duration::from_secs(3600);

    fn with_limit(token: &Cancellation, limit: Duration) -> Context {
        let mut context = Context::new();
        context.set_time_limit(Some(token.clone()), limit);
        context
    }

    /// Runs until the evaluation is ended.
    fn run_to_the_end(context: &Context) -> FaultKind {
        context.begin_run();
        while !context.poll_cancelled() {
            std::thread::yield_now();
        }
        let fault = context.cancellation().expect("a token").fault();
        context.end_run();
        fault
    }

    #[test]
    fn each_run_has_the_whole_limit() {
        let (token, limit) = (Cancellation::new(), Duration::from_millis(3));
        let context = with_limit(&token, limit);
        for _ in 0..5 {
            let begun = Instant::now();
            assert_eq!(run_to_the_end(&context), FaultKind::Deadline);
            assert!(begun.elapsed() >= limit);
            // The next run begins as if none had been late.
            assert!(!context.is_run_refused());
            context.begin_run();
            assert!(!context.poll_cancelled() || begun.elapsed() >= limit * 2);
            context.end_run();
        }
        assert!(!token.is_cancelled());
    }

    /// Short runs beside late ones: a flag that was raised for one run does not end the next one.
    #[test]
    fn a_flag_that_is_raised_late_does_not_end_the_next_run() {
        let limit = Duration::from_micros(1500);
        let context = with_limit(&Cancellation::new(), limit);
        let mut ended = 0;
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_millis(300) {
            // Each run ends at about its limit, before or after the clock raises the flag.
            let begun = Instant::now();
            context.begin_run();
            while begun.elapsed() < limit && !context.poll_cancelled() {
                std::hint::spin_loop();
            }
            assert!(!context.poll_cancelled() || begun.elapsed() >= limit);
            context.end_run();
            ended += 1;
        }
        assert!(ended > 1);
    }

    #[test]
    fn tokens_end_runs_with_a_limit() {
        let token = Cancellation::new();
        let context = with_limit(&token, HOUR);
        (0..1000).for_each(|_| {
            context.begin_run();
            assert!(!context.poll_cancelled());
            context.end_run();
        });
        let same = token.clone();
        let canceller = std::thread::spawn(move || same.cancel());
        assert_eq!(run_to_the_end(&context), FaultKind::Cancelled);
        canceller.join().expect("a thread");
        assert!(context.is_run_refused());
        assert_eq!(run_to_the_end(&context), FaultKind::Cancelled);
        // A token that was cancelled before, and one whose own time is over.
        assert!(with_limit(&token, HOUR).is_run_refused());
        let soon = Cancellation::new().until(Instant::now() + Duration::from_millis(2));
        let context = with_limit(&soon, HOUR);
        drop(soon);
        assert_eq!(run_to_the_end(&context), FaultKind::Deadline);
        assert!(context.is_run_refused());
    }

    #[test]
    fn a_token_that_is_cancelled_while_a_run_is_late_stays_cancelled() {
        let token = Cancellation::new();
        let context = with_limit(&token, Duration::from_millis(1));
        context.begin_run();
        while !context.poll_cancelled() {
            std::thread::yield_now();
        }
        // A token that is derived from a late run's token remains late.
        let made = context.cancellation().expect("a token").until(Instant::now() + HOUR);
        token.cancel();
        context.end_run();
        context.begin_run();
        assert!(context.poll_cancelled() && context.is_run_refused());
        context.end_run();
        assert_eq!((made.is_cancelled(), made.fault()), (true, FaultKind::Deadline));
    }

    #[test]
    fn without_time_none_begins() {
        let context = with_limit(&Cancellation::new(), Duration::ZERO);
        for _ in 0..3 {
            assert!(context.is_run_refused());
            assert_eq!(run_to_the_end(&context), FaultKind::Deadline);
        }
        // The end of this run is later than any clock can show.
        let context = with_limit(&Cancellation::new(), Duration::MAX);
        context.begin_run();
        assert!(!context.poll_cancelled());
        context.end_run();
    }

    /// Contexts that are made during a run have its token, but not its limit, because their evaluations are part of the run.
    #[test]
    fn a_run_within_a_run_has_its_time() {
        let mut context = with_limit(&Cancellation::new(), Duration::from_millis(2));
        let begun = Instant::now();
        context.begin_run();
        let inner = context.like();
        assert_eq!(run_to_the_end(&inner), FaultKind::Deadline);
        assert!(begun.elapsed() >= Duration::from_millis(2) && inner.is_run_refused());
        context.end_run();
        // After the limit is taken out, runs are parts of one run.
        let limit = context.take_time_limit().expect("a limit");
        limit.begin();
        assert_eq!(run_to_the_end(&context), FaultKind::Deadline);
        assert!(context.is_run_refused());
        limit.end();
        context.put_time_limit(limit);
        assert!(!context.is_run_refused());
    }

    #[test]
    fn limits_that_are_dropped_are_forgotten() {
        let token = Cancellation::new();
        (0..10_000).for_each(|_| drop(with_limit(&token, HOUR)));
        let mut context = with_limit(&token, HOUR);
        (0..10_000).for_each(|_| context.set_time_limit(None, HOUR));
        context.set_cancellation(None);
        // The limits of other tests are alive.
        assert!(timer::watched() < 100, "{}", timer::watched());
    }

    /// The thread waits without a timeout if no run began for a while, and the next run wakes it.
    #[test]
    fn the_clock_stops_and_goes_on() {
        let context = with_limit(&Cancellation::new(), Duration::from_millis(1));
        for _ in 0..3 {
            assert_eq!(run_to_the_end(&context), FaultKind::Deadline);
            timer::stop_ticking();
        }
    }
}
