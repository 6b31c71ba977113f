//! What runs with a time limit synchronise with. A test puts a scheduler that tries orders of threads in its place.

pub(crate) use std::sync::atomic;
pub(crate) use std::thread;
