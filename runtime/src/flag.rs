//! A flag that evaluations look at: raised once, by a thread or by the clock, together with those that hang on it.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Instant;

/// What a context without a token points to: a flag that is never raised.
pub(crate) static NEVER: AtomicU8 = AtomicU8::new(RUNS);

/// The states of a flag. Generated code knows that the first is 0 and no other is.
pub(crate) const RUNS: u8 = 0;
pub(crate) const CANCELLED: u8 = 1;
pub(crate) const OVERDUE: u8 = 2;

/// A flag, and those that are raised with it.
#[derive(Debug, Default)]
pub(crate) struct Flag {
    pub(crate) state: AtomicU8,
    /// At most one for each token that was made of it and is alive, and as many again until the next is added.
    pub(crate) others: Mutex<Vec<Weak<Flag>>>,
    /// Of a flag that the clock raises too, when that is, and the flag without such a moment that it goes back to.
    pub(crate) until: Option<(Arc<Flag>, Instant)>,
}

impl Flag {
    /// Raises the flag, unless it is, and all that are raised with it.
    pub(crate) fn raise(&self, state: u8) {
        let mut open = self.raise_alone(state);
        while let Some(other) = open.pop() {
            open.extend(other.upgrade().iter().flat_map(|other| other.raise_alone(state)));
        }
    }

    /// Raises the flag, unless it is, and says which others are to be raised.
    fn raise_alone(&self, state: u8) -> Vec<Weak<Flag>> {
        // Relaxed: the flag hands nothing over but itself. Who adds others later looks at it behind that.
        let _ = self.state.compare_exchange(RUNS, state, Ordering::Relaxed, Ordering::Relaxed);
        std::mem::take(&mut *self.others.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Raises another flag with this one.
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
