//! The flag that ends evaluations: it is raised once, by a thread or by the clock, together with the flags that depend
//! on it. Only the flag of runs with a time limit is lowered again.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Instant;

/// The state of a flag that is never raised, for contexts without a token.
pub(crate) static NEVER: AtomicU8 = AtomicU8::new(RUNS);

/// The states of a flag. Generated code knows that the first is 0 and that no other is.
pub(crate) const RUNS: u8 = 0;
pub(crate) const CANCELLED: u8 = 1;
pub(crate) const OVERDUE: u8 = 2;
/// A bit beside these states: the time limit of the run is over. The next run clears it.
pub(crate) const LATE: u8 = 4;

/// A flag, and the flags that are raised with it.
#[derive(Debug, Default)]
pub(crate) struct Flag {
    pub(crate) state: AtomicU8,
    /// The flags that are raised with this one: at most one for each living token that was made of it, and as many dead
    /// ones until the next is added.
    pub(crate) others: Mutex<Vec<Weak<Flag>>>,
    /// The moment at which the clock raises the flag, if it does, and the flag without such a moment that this one was
    /// made of.
    pub(crate) until: Option<(Arc<Flag>, Instant)>,
    /// The flag with which this flag of runs is raised.
    #[expect(dead_code, reason = "the clock raises it only while it is alive")]
    pub(crate) of: Option<Arc<Flag>>,
}

impl Flag {
    /// Raises the flag and all flags that are raised with it, unless it is raised already.
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

    /// Adds a flag that is raised with this one.
    pub(crate) fn add(&self, other: &Arc<Flag>) {
        let mut others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        if others.len() == others.capacity() {
            others.retain(|other| other.strong_count() > 0);
        }
        others.push(Arc::downgrade(other));
    }

    /// Raises the flag because its time is over.
    pub(crate) fn end_by_time(&self) {
        self.raise(OVERDUE);
    }

    /// Raises the flag until [`lower`](Flag::lower), because the time limit of its run is over. Flags that were made of it are raised for good.
    pub(crate) fn raise_late(&self) {
        self.state.fetch_or(LATE, Ordering::Relaxed);
        Flag::raise_all(self.take_others(), OVERDUE);
    }

    /// Takes `raise_late` back.
    pub(crate) fn lower(&self) {
        self.state.fetch_and(!LATE, Ordering::Relaxed);
    }

    /// True after `raise_late`.
    #[inline]
    pub(crate) fn is_late(&self) -> bool {
        self.state.load(Ordering::Relaxed) & LATE != 0
    }

    /// The state without that of a run that was late.
    pub(crate) fn lasting(&self) -> u8 {
        self.state.load(Ordering::Relaxed) & !LATE
    }

    /// The state of a flag that is made of this one.
    pub(crate) fn inherited(&self) -> u8 {
        match self.state.load(Ordering::Relaxed) {
            LATE => OVERDUE,
            state => state & !LATE,
        }
    }
}
