//! The synchronisation types of the tiers: those of the standard library. Tests compile the neighbouring files against the types of a scheduler
//! instead, which runs their threads in every order that it reaches.

pub(crate) use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, atomic};
pub(crate) use std::thread;
