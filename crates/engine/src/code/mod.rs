//! Machine code in the engine: compiled in one place, kept in caches, and announced to profilers and tracers.

pub(crate) mod cache;
pub(crate) mod machine_code;
pub(crate) mod profiling;
pub(crate) mod spans;
