//! The engine: compiles plans (of scalars), array programs (for models with arrays) and tensor plans, caches and counts
//! the compiled code, and runs it. For every kind of model, the engine decides about compilation, caching, threads,
//! cancellation and errors of a run.
//!
//! The engine takes programs and values. Other crates decide how a model is read, and how its inputs and outputs are bound to the caller's data.

mod arrays;
mod batch;
mod code;
mod executor;
mod options;
pub mod rows;
mod scalar;
mod session;
mod stages;
mod tensors;

pub use arrays::lists::ListRows;
pub use arrays::loops::{LoopMemory, LoopPlan, LoopRoom};
pub use arrays::model::ArrayModel;
pub use batch::{Batch, BatchResult, RowFailure};
pub use cembra_array::{Column, ColumnOrigin, InputPath, LoopLeaf, LoopList, LoopOutput};
pub use cembra_ops::column::{InputsView, Lookup, MapView};
pub use cembra_prepare::{OnDemandLeaves, OnDemandValue};
#[doc(hidden)]
pub use code::cache::{Cache, NewValue, hash_of};
pub use code::machine_code::refusal;
pub use code::profiling::{Profile, profile_code, tier_name};
pub use executor::{Executable, Executor, LoadedRows, MixedModel, ModelPart, PartInput, WholeMemory, check_token};
pub use options::choice::{Backend, RowPlayer, Tiering};
pub use options::compile_options::{CompileOptions, TimedOptions};
pub use options::metrics::{Counters, Counts, Event, Metrics, install_metrics, tell};
pub use options::run_options::RunOptions;
pub use options::signature::{Field, Signature};
pub use rows::players::listing as lane_listing;
pub use session::Session;
pub use stages::sites::{Site, Sites, operator_name};
pub use stages::{only_sessions, plan, plan_of, prepare, prepare_asking};
pub use tensors::access::Reader;
pub use tensors::bound::BoundPlan;
pub use tensors::evaluator::{Evaluator, TensorHost, matrices};
pub use tensors::lowering::{MOST_MODEL_NODES, TensorProgram};
#[cfg(feature = "matrix-library")]
pub use tensors::matrices::LibraryProduct;
pub use tensors::plan::{TensorPlan, run_plan};
pub use tensors::product::{
    MatrixLayout, MatrixProduct, Multiplication, PlainProduct, PlannedProduct, ProductCounters, Products, contract,
};
pub use tensors::runs::OutputMemory;
