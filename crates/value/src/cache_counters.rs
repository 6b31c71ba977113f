//! What a cache says of itself, wherever it is: compiled expressions and plans of an executor in memory, machine code in a folder. What is kept, and
//! how, is the caches' own.

use std::time::Duration;

/// How often a cache had what was asked of it, and what became of the rest. What a cache does not count is 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CacheCounters {
    /// How often it had what was asked for.
    pub hits: u64,
    /// How often it did not, or had nothing that could be used, so that it was made.
    pub misses: u64,
    /// Of files: the misses among them that found a file which could not be read or was damaged.
    pub damaged: u64,
    /// Of files: plans that were compiled without asking, because rules of user operators are part of their code.
    pub bypassed: u64,
    /// Of memory: how many were dropped, the one that was not asked for the longest each time, so that there was room for another.
    pub evictions: u64,
    /// Of memory: how many there are.
    pub kept: usize,
    /// Of memory: how long making them took. Of expressions, code that is compiled later for other strides is not in it.
    pub making_time: Duration,
}
