//! Cancellation: a flag that a thread or a deadline raises, and that evaluations poll. `timer.rs` implements the deadlines.

use crate::FaultKind;
use crate::flag::{CANCELLED, Flag, OVERDUE, RUNS};
use crate::timer;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Instant;

/// A token that cancels evaluations. Clones are the same token. A token may be given to any number of evaluations on any threads. Once it is
/// cancelled, it stays cancelled.
///
/// ```
/// let token = cembra_runtime::Cancellation::new();
/// let same = token.clone();
/// std::thread::spawn(move || same.cancel()).join().unwrap();
/// assert!(token.is_cancelled());
/// ```
#[derive(Clone, Debug, Default)]
pub struct Cancellation(Arc<Flag>);

impl Cancellation {
    /// A token that is not cancelled.
    #[must_use]
    pub fn new() -> Self {
        Cancellation::default()
    }

    /// Makes a token with a deadline. The new token is cancelled together with this one, and by itself at `deadline`;
    /// then evaluations end with [`FaultKind::Deadline`]. One thread of the process waits for the deadlines of all
    /// tokens; the first deadline starts it. If the thread cannot be started, the new token is cancelled at once. A
    /// token that is dropped before its deadline costs nothing afterwards.
    ///
    /// ```
    /// use cembra_runtime::{Cancellation, FaultKind};
    /// use std::time::{Duration, Instant};
    ///
    /// let token = Cancellation::new();
    /// let late = token.until(Instant::now());
    /// assert_eq!((late.is_cancelled(), late.fault()), (true, FaultKind::Deadline));
    /// let early = token.until(Instant::now() + Duration::from_secs(3600));
    /// token.cancel();
    /// assert_eq!((early.is_cancelled(), early.fault()), (true, FaultKind::Cancelled));
    /// ```
    #[must_use]
    pub fn until(&self, deadline: Instant) -> Cancellation {
        // The new flag owns the root flag, so that stays alive; `self` may be dropped earlier.
        let (first, deadline) = match &self.0.until {
            Some((first, own)) => (first, deadline.min(*own)),
            None => (&self.0, deadline),
        };
        let made = Arc::new(Flag { until: Some((first.clone(), deadline)), ..Flag::default() });
        first.add(&made);
        if !Arc::ptr_eq(first, &self.0) {
            self.0.add(&made);
        }
        // One of the two flags may have been raised before the new one was added to it.
        let raised = [first, &self.0].map(|flag| flag.inherited()).into_iter().find(|state| *state != RUNS);
        match raised {
            Some(state) => made.raise(state),
            None if deadline <= Instant::now() || !timer::wait_for(deadline, &made) => made.end_by_time(),
            None => {}
        }
        Cancellation(made)
    }

    /// Makes a token that is cancelled together with this one. Cancelling the new token does not cancel this one.
    ///
    /// ```
    /// let token = cembra_runtime::Cancellation::new();
    /// let (first, second) = (token.child(), token.child());
    /// first.cancel();
    /// assert!(first.is_cancelled() && !second.is_cancelled() && !token.is_cancelled());
    /// token.cancel();
    /// assert!(second.is_cancelled());
    /// ```
    #[must_use]
    pub fn child(&self) -> Cancellation {
        Cancellation(self.flag_of_runs())
    }

    /// Makes a cancellation flag for runs with a time limit. Cancelling this token raises that flag too.
    pub(crate) fn flag_of_runs(&self) -> Arc<Flag> {
        let made = Arc::new(Flag { of: Some(self.0.clone()), ..Flag::default() });
        self.0.add(&made);
        // The token may have been cancelled before the flag was added.
        match self.0.inherited() {
            RUNS => {}
            state => made.raise(state),
        }
        made
    }

    /// Makes a token whose flag is `flag`.
    pub(crate) fn of_flag(flag: Arc<Flag>) -> Cancellation {
        Cancellation(flag)
    }

    /// Asks every evaluation with this token to end. Returns at once; an evaluation ends when it next polls the token.
    pub fn cancel(&self) {
        self.0.raise(CANCELLED);
    }

    /// Returns true once the token was cancelled or its deadline has passed. Only for a token of runs with a [time limit](crate::TimeLimit), the
    /// result becomes false again when the next run begins.
    #[inline]
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.state.load(Ordering::Relaxed) != RUNS
    }

    /// The fault of an evaluation that this token ended: [`FaultKind::Deadline`] if the token's deadline has passed, else [`FaultKind::Cancelled`].
    #[must_use]
    pub fn fault(&self) -> FaultKind {
        if self.0.inherited() == OVERDUE { FaultKind::Deadline } else { FaultKind::Cancelled }
    }

    /// The address of the token's flag, as a byte that is not 0 once the token is cancelled. The address is valid as long as the token lives.
    pub(crate) fn flag(&self) -> *const AtomicU8 {
        &raw const self.0.state
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_token_is_ended_by_its_time_or_by_another_whichever_is_first() {
        let far = Instant::now() + Duration::from_secs(3600);
        let (first, second) = (Cancellation::new(), Cancellation::new());
        let of_first = [first.until(far), first.until(far).until(far).until(far)];
        let of_second = second.until(far);
        first.cancel();
        assert!(of_first.iter().all(|token| token.is_cancelled() && token.fault() == FaultKind::Cancelled));
        assert!(!of_second.is_cancelled() && !second.is_cancelled());
        // A child of a token that is cancelled already.
        assert_eq!((first.until(far).is_cancelled(), first.until(far).fault()), (true, FaultKind::Cancelled));
        let over = second.until(Instant::now());
        over.cancel();
        assert_eq!((over.fault(), second.is_cancelled()), (FaultKind::Deadline, false));
    }

    #[test]
    fn the_clock_ends_tokens_in_the_order_of_their_moments() {
        let token = Cancellation::new();
        let now = Instant::now();
        let late = token.until(now + Duration::from_secs(3600));
        let soon: Vec<Cancellation> = (1..20).rev().map(|at| token.until(now + Duration::from_millis(at))).collect();
        while !soon.iter().all(Cancellation::is_cancelled) {
            std::thread::yield_now();
        }
        assert!(soon.iter().all(|token| token.fault() == FaultKind::Deadline));
        assert!(!late.is_cancelled() && !token.is_cancelled());
        assert!(Instant::now() >= now + Duration::from_millis(19));
    }

    #[test]
    fn tokens_that_were_dropped_are_forgotten() {
        let token = Cancellation::new();
        let far = Instant::now() + Duration::from_secs(3600);
        (0..10_000).for_each(|_| drop(token.until(far)));
        let others = token.0.others.lock().unwrap();
        assert!(others.len() < 100, "{}", others.len());
        drop(others);
        assert!(timer::waiting() < 5000, "{}", timer::waiting());
    }
}
