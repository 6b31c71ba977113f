//! The native backend: the only crate that names Cranelift. What `cembra-record` makes of a plan is played into a function
//! builder, line by line, between blocks for its conditionals and loops; the code is free of relocations, lives in slots that
//! are given back with its last reference, and runs on the caller's structs in place.
//!
//! * `scalar` plays a tape for one row, `lanes` for several; `emit` is what both share.
//! * `translate` puts lines, calls, branches and loops together to functions, of one row or of a loop over rows.
//! * `artifact` makes code that runs, is cached, or goes into object files.

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

/// The version of cembra, and a hash of the sources that machine code depends on: processes with the same text have the same code for a model.
pub const FINGERPRINT: &str = concat!(env!("CARGO_PKG_VERSION"), " (", env!("CEMBRA_CODE_SOURCES"), ")");
