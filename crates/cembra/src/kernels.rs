//! What expressions of elements were compiled to, by what they mean: so many at the most, each compiled once where several threads ask for
//! it at the same time. Extents are no part of it, so a tensor of another size compiles nothing.

use cembra_tensor::{Body, Error};
use rustc_hash::FxHashMap;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// How often expressions of elements were found compiled, and how often not.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct KernelCounters {
    /// How often one was there already.
    pub hits: u64,
    /// How often one was compiled.
    pub misses: u64,
    /// How many were dropped, the one that was not asked for the longest each time, so that there was room for another.
    pub evictions: u64,
    /// How many there are.
    pub kept: usize,
    /// How long compiling took. What is compiled later for operands that lie otherwise in memory is not in it.
    pub compile_time: Duration,
}

/// An expression that is compiled, or is being compiled by the thread that asked for it first.
type Compiled<T> = Arc<OnceLock<Result<T, Error>>>;

struct Entry<T> {
    compiled: Compiled<T>,
    /// When it was asked for last.
    asked: u64,
}

struct Entries<T> {
    by_body: FxHashMap<Body, Entry<T>>,
    clock: u64,
    counters: KernelCounters,
}

/// Expressions that were compiled.
pub(crate) struct Kernels<T> {
    most: usize,
    entries: Mutex<Entries<T>>,
}

impl<T: Clone> Kernels<T> {
    /// Room for so many.
    pub(crate) fn new(most: usize) -> Kernels<T> {
        let entries = Entries { by_body: FxHashMap::default(), clock: 0, counters: KernelCounters::default() };
        Kernels { most: most.max(1), entries: Mutex::new(entries) }
    }

    /// What an expression is compiled to; it is compiled if it is not there.
    pub(crate) fn get(&self, body: &Body, compile: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
        let compiled = self.entry(body);
        let mut took = None;
        let made = compiled.get_or_init(|| {
            let before = Instant::now();
            let made = compile();
            took = Some(before.elapsed());
            made
        });
        if let Some(took) = took {
            let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
            entries.counters.misses += 1;
            entries.counters.compile_time += took;
        }
        made.clone()
    }

    fn entry(&self, body: &Body) -> Compiled<T> {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let Entries { by_body, clock, counters } = &mut *entries;
        *clock += 1;
        if let Some(entry) = by_body.get_mut(body) {
            counters.hits += 1;
            entry.asked = *clock;
            return entry.compiled.clone();
        }
        if by_body.len() >= self.most
            && let Some(oldest) = by_body.iter().min_by_key(|(_, entry)| entry.asked).map(|(body, _)| body.clone())
        {
            by_body.remove(&oldest);
            counters.evictions += 1;
        }
        let compiled: Compiled<T> = Arc::default();
        by_body.insert(body.clone(), Entry { compiled: compiled.clone(), asked: *clock });
        compiled
    }

    pub(crate) fn counters(&self) -> KernelCounters {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        KernelCounters { kept: entries.by_body.len(), ..entries.counters }
    }
}

impl<T: Clone> fmt::Debug for Kernels<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kernels").field("counters", &self.counters()).finish_non_exhaustive()
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
        let KernelCounters { hits, misses, evictions, kept, .. } = kernels.counters();
        assert_eq!((hits, misses, evictions, kept), (2, 4, 2, 2));
    }

    #[test]
    fn what_cannot_be_compiled_is_not_tried_again() {
        let kernels = Kernels::new(2);
        let refused = || Err(Error::new(cembra_tensor::ErrorKind::Evaluation, "no"));
        assert_eq!(kernels.get(&body(1), refused), refused());
        assert_eq!(kernels.get(&body(1), || Ok(1)), refused());
    }
}
