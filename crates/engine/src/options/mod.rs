//! How a model is compiled and run, and who is told of it: the choice of backends, options of compiling, limits and terms of runs, the signature of a
//! model with what its inputs promise, and metrics.

pub(crate) mod choice;
pub(crate) mod compile_options;
pub(crate) mod metrics;
pub(crate) mod promises;
pub(crate) mod run_options;
pub(crate) mod signature;
