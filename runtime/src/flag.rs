//! The flag that ends evaluations. A thread or the clock (`timer.rs`) raises it once, together with the flags that depend on it. Only a flag of runs
//! with a time limit is lowered again.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Instant;

/// The state of a flag that is never raised, for contexts without a cancellation token.
pub(crate) static NEVER: AtomicU8 = AtomicU8::new(RUNS);

/// The state of a cancellation flag that is not raised. It must be 0, because generated code tests for 0.
pub(crate) const RUNS: u8 = 0;
/// The state of a cancellation flag that was raised by a cancellation.
pub(crate) const CANCELLED: u8 = 1;
/// The state of a cancellation flag that was raised by a deadline.
pub(crate) const OVERDUE: u8 = 2;
/// A bit that is added to a flag's state while the time limit of a run is exceeded. The next run clears it.
pub(crate) const LATE: u8 = 4;

/// A flag that cancels evaluations, and the list of flags that are raised together with it.
#[derive(Debug, Default)]
pub(crate) struct Flag {
    pub(crate) state: AtomicU8,
    /// The flags that are raised together with this one: at most one per living token derived from it, and at most as many of dropped tokens. Flags
    /// of dropped tokens are removed when the list would have to grow.
    pub(crate) others: Mutex<Vec<Weak<Flag>>>,
    /// The root flag, which has no deadline and from which this one was derived, and the deadline at which the clock raises this flag. `None`
    /// without a deadline.
    pub(crate) until: Option<(Arc<Flag>, Instant)>,
    /// For a flag of runs with a time limit, the flag of the token that also ends these runs. Else `None`.
    #[expect(dead_code, reason = "the clock raises the flag only while the flag is alive")]
    pub(crate) of: Option<Arc<Flag>>,
}

impl Flag {
    /// Raises this flag and all flags that depend on it: gives each of them the state `state`, unless it is raised already.
    pub(crate) fn raise(&self, state: u8) {
        let open = self.raise_alone(state);
        Flag::raise_all(open, state);
    }

    /// Raises flags and all flags that are raised with them.
    fn raise_all(mut open: Vec<Weak<Flag>>, state: u8) {
        while let Some(other) = open.pop() {
            open.extend(other.upgrade().iter().flat_map(|other| other.raise_alone(state)));
        }
    }

    /// Raises the flag, unless it is raised already, and returns the flags that must be raised with it.
    fn raise_alone(&self, state: u8) -> Vec<Weak<Flag>> {
        // Relaxed: the flag publishes nothing but itself. A thread that adds another flag later looks at this one after
        // adding.
        let raised = |now: u8| (now & !LATE == RUNS).then_some(now | state);
        let _ = self.state.fetch_update(Ordering::Relaxed, Ordering::Relaxed, raised);
        self.take_others()
    }

    fn take_others(&self) -> Vec<Weak<Flag>> {
        std::mem::take(&mut *self.others.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Adds `other` to the flags that are raised with this one.
    pub(crate) fn add(&self, other: &Arc<Flag>) {
        let mut others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        if others.len() == others.capacity() {
            others.retain(|other| other.strong_count() > 0);
        }
        others.push(Arc::downgrade(other));
    }

    /// Raises the flag because its deadline has passed.
    pub(crate) fn end_by_time(&self) {
        self.raise(OVERDUE);
    }

    /// Raises the flag until [`lower`](Flag::lower), because its run has exceeded the time limit. Flags that depend on it are raised
    /// permanently.
    pub(crate) fn raise_late(&self) {
        self.state.fetch_or(LATE, Ordering::Relaxed);
        Flag::raise_all(self.take_others(), OVERDUE);
    }

    /// Clears the bit that `raise_late` has set.
    pub(crate) fn lower(&self) {
        self.state.fetch_and(!LATE, Ordering::Relaxed);
    }

    /// Returns true after `raise_late`, until `lower`.
    #[inline]
    pub(crate) fn is_late(&self) -> bool {
        self.state.load(Ordering::Relaxed) & LATE != 0
    }

    /// The flag's state without the bit `LATE`.
    pub(crate) fn lasting(&self) -> u8 {
        self.state.load(Ordering::Relaxed) & !LATE
    }

    /// The initial state of a flag that is derived from this one.
    pub(crate) fn inherited(&self) -> u8 {
        match self.state.load(Ordering::Relaxed) {
            LATE => OVERDUE,
            state => state & !LATE,
        }
    }
}
