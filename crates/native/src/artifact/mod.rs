//! The products of compiling a plan: runnable functions, cache entries, object files.

mod cache;
mod code;
mod compile;
mod isa;
mod object;
mod rows;
mod store;

pub use cache::CodeCache;
pub(crate) use code::check_alone;
pub use code::{Listings, STACK_BYTES};
pub use compile::{Compiled, compile, listings};
pub(crate) use isa::host;
pub use isa::{Target, Tier};
pub use object::{Site, called_steps, object};
pub use rows::{CompiledRows, compile_rows};
pub(crate) use store::publish;
