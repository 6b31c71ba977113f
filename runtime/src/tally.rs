//! Counters of evaluations. Each context has a counter of its own, so that counting is an addition in memory that no other thread writes.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A counter of the evaluations of one context.
#[derive(Debug, Default)]
pub struct Tally(AtomicU64);

impl Tally {
    /// Adds `evaluations` to the count. Only one thread at a time may add to a tally.
    #[inline]
    pub fn add(&self, evaluations: u64) {
        // A load and a store, which take a tenth of the time of an atomic addition.
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(evaluations), Ordering::Relaxed);
    }

    fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The total number of evaluations of sessions, executors and batches. It is exact at any time.
///
/// ```
/// use cembra_runtime::Evaluations;
///
/// let evaluations = Evaluations::default();
/// let (one, other) = (evaluations.tally(), evaluations.tally());
/// one.add(2);
/// other.add(3);
/// drop(one);
/// evaluations.add(100);
/// assert_eq!(evaluations.count(), 105);
/// ```
#[derive(Debug, Default)]
pub struct Evaluations(Mutex<Tallies>);

/// The tallies (counters) of contexts, and the number of evaluations that no live tally counts.
#[derive(Debug, Default)]
struct Tallies {
    /// The tallies (counters) of contexts. Dropped ones stay for a while: the list has at most twice as many as are alive, plus 64.
    live: Vec<Arc<Tally>>,
    /// The number of evaluations of batches, and of contexts whose tallies were dropped.
    ended: u64,
    /// The length of the list `live` at which dropped tallies are next removed from it.
    next_look: usize,
}

impl Tallies {
    fn drop_ended(&mut self) {
        let ended = &mut self.ended;
        // A tally that only this list references is not added to any more.
        self.live.retain(|tally| {
            let is_live = Arc::strong_count(tally) > 1;
            *ended = ended.wrapping_add(if is_live { 0 } else { tally.count() });
            is_live
        });
        self.next_look = 2 * self.live.len() + 64;
    }
}

impl Evaluations {
    /// Makes a tally (counter) for the evaluations of one context.
    #[must_use]
    pub fn tally(&self) -> Arc<Tally> {
        let mut tallies = self.tallies();
        if tallies.live.len() >= tallies.next_look {
            tallies.drop_ended();
        }
        let tally = Arc::<Tally>::default();
        tallies.live.push(tally.clone());
        tally
    }

    /// Adds `evaluations` evaluations that no context counts, such as those of a batch.
    pub fn add(&self, evaluations: u64) {
        let mut tallies = self.tallies();
        tallies.ended = tallies.ended.wrapping_add(evaluations);
    }

    /// The number of evaluations so far, of all tallies together.
    #[must_use]
    pub fn count(&self) -> u64 {
        let tallies = self.tallies();
        tallies.live.iter().fold(tallies.ended, |all, tally| all.wrapping_add(tally.count()))
    }

    fn tallies(&self) -> MutexGuard<'_, Tallies> {
        // No code panics while it holds the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
