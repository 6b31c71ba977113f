//! Options for compiling and running models: the choice of backends, limits and terms of runs, the signature of a model with the promises of its
//! inputs, and metrics.

pub(crate) mod choice;
pub(crate) mod compile_options;
pub(crate) mod metrics;
pub(crate) mod promises;
pub(crate) mod run_options;
pub(crate) mod signature;
