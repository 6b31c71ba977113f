//! The tests of the C interface, in one program, because each program would link the whole library again. The heading of each file says what it
//! tests.

mod calls;
mod header;
mod hostile;
mod programs;
mod structs;
mod tables;
