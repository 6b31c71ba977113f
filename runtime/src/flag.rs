//! The flag that ends evaluations: it is raised once, by a thread or by the clock, together with the flags that depend
//! on it.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Instant;

/// The state of a flag that is never raised, for contexts without a token.
pub(crate) static NEVER: AtomicU8 = AtomicU8::new(RUNS);

/// The states of a flag. Generated code knows that the first is 0 and that no other is.
pub(crate) const RUNS: u8 = 0;
pub(crate) const CANCELLED: u8 = 1;
pub(crate) const OVERDUE: u8 = 2;

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
}

impl Flag {
    /// Raises the flag and all flags that are raised with it, unless it is raised already.
    pub(crate) fn raise(&self, state: u8) {
        let mut open = self.raise_alone(state);
        while let Some(other) = open.pop() {
            open.extend(other.upgrade().iter().flat_map(|other| other.raise_alone(state)));
        }
    }

    /// Raises the flag, unless it is raised already, and returns the flags that must be raised with it.
    fn raise_alone(&self, state: u8) -> Vec<Weak<Flag>> {
        // Relaxed: the flag publishes nothing but itself. A thread that adds another flag later looks at this one after
        // adding.
        let _ = self.state.compare_exchange(RUNS, state, Ordering::Relaxed, Ordering::Relaxed);
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
}
