//! Machine code in the engine: it is compiled in one place, kept in caches, and reported to profilers and tracers.

pub(crate) mod cache;
pub(crate) mod machine_code;
pub(crate) mod profiling;
pub(crate) mod spans;
