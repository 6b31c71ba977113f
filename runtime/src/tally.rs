//! Counting of evaluations. Each context has a tally of its own, so that counting is an addition in memory that no other thread writes to.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The number of evaluations of one context.
#[derive(Debug, Default)]
pub struct Tally(AtomicU64);

impl Tally {
    /// Adds evaluations. Only one thread may add to a tally at a time.
    #[inline]
    pub fn add(&self, evaluations: u64) {
        // A read and a write, which are a tenth of an addition that others could interrupt.
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(evaluations), Ordering::Relaxed);
    }

    fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The number of evaluations of sessions, executors and batches, which is right at any time.
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

#[derive(Debug, Default)]
struct Tallies {
    /// The tallies of contexts: at most twice as many as are alive, and 64.
    live: Vec<Arc<Tally>>,
    /// The evaluations of tallies that are gone, and those of batches.
    ended: u64,
    /// The number of live tallies at which those that are gone are looked for.
    next_look: usize,
}

impl Tallies {
    fn drop_ended(&mut self) {
        let ended = &mut self.ended;
        // A tally that only this list holds is added to no more.
        self.live.retain(|tally| {
            let is_live = Arc::strong_count(tally) > 1;
            *ended = ended.wrapping_add(if is_live { 0 } else { tally.count() });
            is_live
        });
        self.next_look = 2 * self.live.len() + 64;
    }
}

impl Evaluations {
    /// A tally for one context.
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

    /// Adds evaluations of no context, as those of a batch are.
    pub fn add(&self, evaluations: u64) {
        let mut tallies = self.tallies();
        tallies.ended = tallies.ended.wrapping_add(evaluations);
    }

    /// All evaluations so far.
    #[must_use]
    pub fn count(&self) -> u64 {
        let tallies = self.tallies();
        tallies.live.iter().fold(tallies.ended, |all, tally| all.wrapping_add(tally.count()))
    }

    fn tallies(&self) -> MutexGuard<'_, Tallies> {
        // Nothing panics while they are locked.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
