//! The counters of a cache, such as the number of requests that it answered. There are caches in memory, of compiled
//! expressions and of plans, and a cache in a folder, of machine code.

use std::time::Duration;

/// The hits, misses and evictions of a cache. Counters that do not apply to a cache are 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CacheCounters {
    /// The number of requests that the cache answered with a stored result.
    pub hits: u64,
    /// The number of requests for which a new entry had to be made, because the cache had none that could be used.
    pub misses: u64,
    /// For caches in files: the number of misses that found a file which was damaged or could not be read.
    pub damaged: u64,
    /// For caches in files: the number of plans that were compiled without asking the cache. Code of these plans is not cached,
    /// because it contains rules of user operators.
    pub bypassed: u64,
    /// For caches in memory: the number of entries that were removed to make room for other entries, the least recently used first.
    pub evictions: u64,
    /// For caches in memory: the number of entries that are stored now.
    pub kept: usize,
    /// For caches in memory: the total time spent on making entries. For compiled expressions, the time excludes code
    /// that is compiled later for other strides of the data.
    pub making_time: Duration,
}
