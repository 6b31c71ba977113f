//! The atomics and threads for runs with a time limit. A test replaces them by those of a scheduler that tries different
//! interleavings.

pub(crate) use std::sync::atomic;
pub(crate) use std::thread;
