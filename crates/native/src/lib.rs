//! The native backend, and the only crate that uses Cranelift. It emits machine code for a plan from the outline that `cembra-record` makes: tapes
//! (straight-line programs), connected by basic blocks for conditionals and loops. The code needs no relocations, is in memory that is freed with its
//! last reference, and works on the caller's structs in place.
//!
//! * `scalar` emits the code of a tape for one row, `lanes` for several rows at once; `emit` has the parts that both share.
//! * `translate` combines tapes, calls, branches and loops to functions, for one row or for a loop over rows.
//! * `artifact` makes machine code that is run, is cached, or goes into object files.

mod artifact;
mod emit;
mod error;
pub mod lanes;
mod scalar;
mod translate;

pub use artifact::{
    CodeCache, Compiled, CompiledRows, Listings, STACK_BYTES, Site, Target, Tier, called_steps, compile, compile_rows,
    listings, object,
};
pub use cembra_runtime::RawFunction;
pub use error::{Error, ErrorKind};

/// The version of cembra, and a hash of the sources that machine code depends on. Processes with the same fingerprint compile a model to the
/// same machine code.
pub const FINGERPRINT: &str = concat!(env!("CARGO_PKG_VERSION"), " (", env!("CEMBRA_CODE_SOURCES"), ")");
