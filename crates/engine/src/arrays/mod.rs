//! Models that contain arrays: compiled, run on single values, and run on many rows with arrays of their own.

pub(crate) mod lists;
pub(crate) mod loops;
pub(crate) mod model;
mod program;
