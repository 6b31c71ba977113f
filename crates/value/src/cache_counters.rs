//! Counters of a cache: of compiled expressions and plans in memory, or of machine code in a folder. What is cached, and how, is
//! described at the caches.

use std::time::Duration;

/// The hits, misses and evictions of a cache. Counters that do not apply to a cache are 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CacheCounters {
    /// The number of requests that the cache answered.
    pub hits: u64,
    /// The number of requests for which a result was made, because the cache had none that could be used.
    pub misses: u64,
    /// For caches in files: the number of misses that found a file which was damaged or could not be read.
    pub damaged: u64,
    /// For caches in files: the number of plans that were compiled without a request, because rules of user operators are part of
    /// their code.
    pub bypassed: u64,
    /// For caches in memory: the number of entries that were evicted for others, the least recently used first.
    pub evictions: u64,
    /// For caches in memory: the number of entries.
    pub kept: usize,
    /// For caches in memory: the total time of making entries. For expressions, it excludes code that is compiled later for other
    /// strides.
    pub making_time: Duration,
}
