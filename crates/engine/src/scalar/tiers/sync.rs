//! The synchronisation types that the tiered backend uses: those of the standard library. Tests compile the neighbouring files with the types of a
//! test scheduler instead, which runs their threads in every order that it reaches.

pub(crate) use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, atomic};
pub(crate) use std::thread;
