//! The synchronisation types of the standard library that the tiered backend uses. Tests compile the neighbouring files with the types of a test
//! scheduler instead, which runs their threads in every order that it reaches.

pub(crate) use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, atomic};
pub(crate) use std::thread;
