//! The engine: compiles plans, array programs and plans of tensors, keeps and counts what it compiled, and runs it. Compiling, caching,
//! threads, cancellation and errors of a run are decided here, once for every kind of model.
//!
//! How a model is read, and how its inputs and outputs are bound to the caller's data, is decided elsewhere: the engine takes programs and
//! values.

// Examples name the library as its users do.
mod array_run;
mod arrays;
mod backend;
mod batch;
mod bodies;
mod body_session;
mod cache;
mod choice;
mod compile;
mod compile_options;
mod evaluation;
mod executor;
mod faults;
mod lists;
mod loaded;
mod machine_code;
#[cfg(feature = "matrix-library")]
mod matrices;
mod metrics;
mod mixed;
mod once;
mod plan_rows;
mod players;
mod profiling;
mod promises;
pub mod rows;
mod run_options;
mod session;
mod signature;
mod sites;
mod spans;
mod stages;
mod tensor_access;
mod tensor_bound;
mod tensor_doors;
mod tensor_kernels;
mod tensor_lines;
mod tensor_model;
mod tensor_plan;
mod tensor_product;
mod tensor_program;
mod tensor_session;
mod tensors;
mod threads;
mod tiers;
mod whole;

pub use arrays::ArrayModel;
pub use batch::{Batch, BatchResult, BatchRun, RowFailure};
#[doc(hidden)]
pub use cache::{Cache, Made, hash_of};
pub use choice::{Backend, RowPlayer, Tiering};
pub use compile_options::{CompileOptions, Started};
pub use executor::{Executable, Executor};
pub use lists::ListRows;
pub use loaded::LoadedRows;
pub use machine_code::refusal;
#[cfg(feature = "matrix-library")]
pub use matrices::LibraryProduct;
pub use metrics::{Counters, Counts, Event, Metrics, install_metrics};
pub use players::listing as lane_listing;
pub use profiling::{Profile, profile_code, tier_name};
pub use run_options::RunOptions;
pub use session::Session;
pub use signature::{Field, Signature};
pub use sites::{Site, Sites, operator_name};
pub use stages::{only_sessions, plan, plan_of, prepare};
pub use tensor_access::Reader;
pub use tensor_bound::BoundPlan;
pub use tensor_plan::{TensorPlan, run_plan};
pub use tensor_product::{
    MatrixLayout, MatrixProduct, Multiplication, PlainProduct, PlannedProduct, ProductCounters, Products, contract,
};
pub use tensor_program::{MOST_MODEL_NODES, TensorProgram};
pub use tensor_session::Written;
pub use tensors::{Evaluator, TensorHost, matrices};
pub use whole::WholeMemory;
