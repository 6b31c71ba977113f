//! Options for compiling and running models: the choice of backends, the limits of runs, the inputs and outputs of a model with the promises about
//! their values, and metrics.

pub(crate) mod choice;
pub(crate) mod compile_options;
pub(crate) mod metrics;
pub(crate) mod promises;
pub(crate) mod run_options;
pub(crate) mod signature;
