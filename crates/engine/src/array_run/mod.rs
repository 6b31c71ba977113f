//! Running array programs, which `cembra_array` plans: steps in order (`run.rs`), sweeps strip by strip (`sweep.rs`), on one thread
//! or in shares on several (`shares.rs`), in memory that later runs find again (`memory.rs`). What is run when, and what becomes of
//! a run that fails, is decided in `arrays.rs`.

mod host;
mod memory;
mod place;
mod run;
mod runner;
mod shares;
mod staging;
mod strip;
mod sweep;

pub(crate) use host::{Host, Played};
pub(crate) use memory::{RunMemory, most_units};
pub(crate) use run::run;
pub(crate) use runner::SweepRunners;
