//! The atomics and threads that runs with a time limit use. A test replaces them by those of a scheduler that tries orders of threads.

pub(crate) use std::sync::atomic;
pub(crate) use std::thread;
