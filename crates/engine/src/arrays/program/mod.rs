//! Running array programs, which the crate `cembra_array` plans. `run.rs` runs the steps in order; `sweep.rs` runs a fused loop over elements block
//! by block; `shares.rs` divides such a loop among threads; `memory.rs` keeps memory for later runs. `../model.rs` compiles a program, and handles a
//! run that fails.

mod host;
mod memory;
mod place;
mod run;
mod runner;
mod shares;
mod staging;
mod strip;
mod sweep;

pub(crate) use host::{ArrayHost, CompiledPart};
pub(crate) use memory::{RunMemory, most_units};
pub(crate) use run::run;
pub(crate) use runner::SweepRunners;
