//! The native backend: the only crate that names Cranelift. A plan's straight lines are recorded as tapes and played into
//! a function builder, its conditionals become basic blocks; the code is free of relocations, lives in slots that are
//! given back with its last reference, and runs on the caller's structs in place.

mod call;
mod cancel;
mod cells;
mod compile;
mod copies;
mod error;
mod isa;
mod lower;
mod pairs;
mod player;
mod store;

pub use compile::{Compiled, Listings, RawFunction, Tier, compile, listings};
pub use error::{Error, ErrorKind};
