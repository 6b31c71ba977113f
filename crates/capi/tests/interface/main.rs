//! The tests of the C interface, one program: each would link the whole library again. What each file is about stands at its head.

mod calls;
mod header;
mod hostile;
mod programs;
mod structs;
mod tables;
