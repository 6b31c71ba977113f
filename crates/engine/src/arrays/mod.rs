//! Models with arrays: compiled, run as a whole, and run on many rows whose lists are arrays.

pub(crate) mod lists;
pub(crate) mod loops;
pub(crate) mod model;
mod program;
