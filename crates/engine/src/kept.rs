//! What is made once and kept, by what it is made for: expressions of elements that are compiled, plans for tensors of some extents. So many
//! at the most, each made once where several threads ask for it at the same time. No lock is held while something is made: whoever asks for
//! something else goes on, whoever asks for the same waits for it.

use cembra_tensor::{Body, Error, ErrorKind};
use rustc_hash::FxHashMap;
use std::borrow::Borrow;
use std::fmt;
use std::hash::Hash;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// How often something was found that is kept, a compiled expression or a plan, and how often it was not.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct CacheCounters {
    /// How often it was there already.
    pub hits: u64,
    /// How often it was made.
    pub misses: u64,
    /// How many were dropped, the one that was not asked for the longest each time, so that there was room for another.
    pub evictions: u64,
    /// How many there are.
    pub kept: usize,
    /// How long making them took. Of expressions, what is compiled later for operands that lie otherwise in memory is not in it.
    pub making_time: Duration,
}

/// What is made, or is being made by the thread that asked for it first.
type Made<T> = Arc<OnceLock<Result<T, Error>>>;

struct Entry<T> {
    made: Made<T>,
    /// When it was asked for last.
    asked: u64,
}

struct Entries<K, T> {
    by_key: FxHashMap<K, Entry<T>>,
    clock: u64,
    counters: CacheCounters,
}

/// What was made, by what it was made for.
pub(crate) struct Kept<K, T> {
    most: usize,
    /// At most `most`.
    entries: Mutex<Entries<K, T>>,
}

/// What expressions were compiled to, by what they mean. Extents are no part of that, so a tensor of another size compiles nothing.
pub(crate) type Kernels<T> = Kept<Body, T>;

impl<K: Eq + Hash + Clone, T: Clone> Kept<K, T> {
    /// Room for so many.
    pub(crate) fn new(most: usize) -> Kept<K, T> {
        let entries = Entries { by_key: FxHashMap::default(), clock: 0, counters: CacheCounters::default() };
        Kept { most: most.max(1), entries: Mutex::new(entries) }
    }

    /// What is kept for a key; it is made if it is not there. What could not be made is not tried again.
    pub(crate) fn get<Q>(&self, key: &Q, make: impl FnOnce() -> Result<T, Error>) -> Result<T, Error>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ToOwned<Owned = K> + ?Sized,
    {
        let entry = self.entry(key);
        let mut took = None;
        let made = entry.get_or_init(|| {
            let before = Instant::now();
            let made = make();
            took = Some(before.elapsed());
            made
        });
        if let Some(took) = took {
            let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
            entries.counters.misses += 1;
            entries.counters.making_time += took;
            // What took too long this time may not the next: the machine may have been busy.
            if matches!(made, Err(error) if error.kind() == ErrorKind::Limit)
                && entries.by_key.get(key).is_some_and(|kept| Arc::ptr_eq(&kept.made, &entry))
            {
                entries.by_key.remove(key);
            }
        }
        made.clone()
    }

    fn entry<Q>(&self, key: &Q) -> Made<T>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ToOwned<Owned = K> + ?Sized,
    {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let Entries { by_key, clock, counters } = &mut *entries;
        *clock += 1;
        if let Some(entry) = by_key.get_mut(key) {
            counters.hits += 1;
            entry.asked = *clock;
            return entry.made.clone();
        }
        if by_key.len() >= self.most
            && let Some(oldest) = by_key.iter().min_by_key(|(_, entry)| entry.asked).map(|(key, _)| key.clone())
        {
            by_key.remove::<K>(&oldest);
            counters.evictions += 1;
        }
        let made: Made<T> = Arc::default();
        by_key.insert(key.to_owned(), Entry { made: made.clone(), asked: *clock });
        made
    }

    /// Drops what was not asked for the longest, as long as all together hold more bytes; but not what was asked for last.
    pub(crate) fn shrink(&self, most: u64, held: impl Fn(&T) -> u64) {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let Entries { by_key, counters, .. } = &mut *entries;
        let bytes = |entry: &Entry<T>| match entry.made.get() {
            Some(Ok(made)) => held(made),
            _ => 0,
        };
        let mut all: Vec<(u64, u64, K)> =
            by_key.iter().map(|(key, entry)| (entry.asked, bytes(entry), key.clone())).collect();
        all.sort_unstable_by_key(|(asked, ..)| *asked);
        let mut left = all.iter().fold(0, |left: u64, (_, bytes, _)| left.saturating_add(*bytes));
        all.pop();
        for (_, bytes, key) in all {
            if left <= most {
                break;
            }
            left -= bytes;
            by_key.remove(&key);
            counters.evictions += 1;
        }
    }

    /// The sum of a number of each value that is kept.
    pub(crate) fn sum(&self, of: impl Fn(&T) -> u64) -> u64 {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let made = entries.by_key.values().filter_map(|entry| entry.made.get()?.as_ref().ok());
        made.map(of).fold(0, u64::saturating_add)
    }

    /// How often there was what was asked for.
    pub(crate) fn counters(&self) -> CacheCounters {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        CacheCounters { kept: entries.by_key.len(), ..entries.counters }
    }
}

impl<K: Eq + Hash + Clone, T: Clone> fmt::Debug for Kept<K, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kept").field("counters", &self.counters()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cembra_runtime::Scalar;

    fn body(inputs: usize) -> Body {
        Body { inputs: vec![Scalar::Float64; inputs], ..Body::default() }
    }

    #[test]
    fn what_was_not_asked_for_the_longest_makes_room() {
        let kernels = Kernels::new(2);
        for inputs in [1, 2, 1, 3, 1, 2] {
            assert_eq!(kernels.get(&body(inputs), || Ok(inputs)), Ok(inputs));
        }
        let CacheCounters { hits, misses, evictions, kept, .. } = kernels.counters();
        assert_eq!((hits, misses, evictions, kept), (2, 4, 2, 2));
    }

    #[test]
    fn what_holds_too_much_together_goes() {
        let kernels = Kernels::new(10);
        let kept = |kernels: &Kernels<usize>| {
            let entries = kernels.entries.lock().expect("no panic");
            let mut kept: Vec<usize> = entries.by_key.keys().map(|body| body.inputs.len()).collect();
            kept.sort_unstable();
            kept
        };
        for inputs in [4, 1, 2, 3, 4] {
            assert_eq!(kernels.get(&body(inputs), || Ok(inputs)), Ok(inputs));
        }
        let error = Error::new(ErrorKind::Evaluation, "no");
        assert_eq!(kernels.get(&body(5), || Err(error.clone())), Err(error));
        let bytes = |inputs: &usize| *inputs as u64 * 100;
        kernels.shrink(1000, bytes);
        assert_eq!(kept(&kernels), [1, 2, 3, 4, 5]);
        kernels.shrink(999, bytes);
        assert_eq!(kept(&kernels), [2, 3, 4, 5]);
        kernels.shrink(400, bytes);
        assert_eq!((kept(&kernels), kernels.counters().evictions), (vec![4, 5], 3));
        // What was asked for last stays, whatever it holds.
        assert_eq!(kernels.get(&body(4), || Ok(0)), Ok(4));
        kernels.shrink(0, bytes);
        assert_eq!(kept(&kernels), [4]);
    }

    #[test]
    fn what_cannot_be_compiled_is_not_tried_again() {
        let kernels = Kernels::new(2);
        let refused = || Err(Error::new(ErrorKind::Evaluation, "no"));
        assert_eq!(kernels.get(&body(1), refused), refused());
        assert_eq!(kernels.get(&body(1), || Ok(1)), refused());
    }
}
