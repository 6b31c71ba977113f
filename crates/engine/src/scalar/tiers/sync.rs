//! The synchronisation types of the standard library that the tiered backend uses. Tests compile the neighbouring files with the types of a test
//! scheduler instead. The scheduler runs the threads of a test in as many orders as it can reach.

pub(crate) use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, atomic};
pub(crate) use std::thread;
