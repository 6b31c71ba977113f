//! The native backend: the only crate that names Cranelift. A plan's straight lines are recorded as tapes and played into
//! a function builder, its conditionals become basic blocks; the code is free of relocations, lives in slots that are
//! given back with its last reference, and runs on the caller's structs in place.

mod blends;
mod cache;
mod call;
mod cancel;
mod cells;
mod code;
mod compile;
mod error;
mod homes;
mod instructions;
mod isa;
pub mod lanes;
mod lines;
mod lower;
mod notes;
mod object;
mod pairs;
mod pieces;
mod player;
mod reads;
mod store;
mod texts;

pub use cache::{CodeCache, CodeCacheCounts};
pub use cembra_runtime::RawFunction;
pub use code::Listings;
pub use compile::{Compiled, compile, listings};
pub use error::{Error, ErrorKind};
pub use isa::{Target, Tier};
pub use object::{Site, called_steps, object};
