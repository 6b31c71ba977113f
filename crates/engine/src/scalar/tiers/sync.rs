//! What tiers synchronise with: the standard library's. Tests compile the files beside this one against a scheduler's own
//! in its place, and run their threads in every order that it comes to.

pub(crate) use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, atomic};
pub(crate) use std::thread;
