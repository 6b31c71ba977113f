//! The parts that scalar and vector code generation share: emission of tape instructions, values in memory, the state of a
//! function that is being built, and properties of the machine.

mod expansion;
pub(crate) mod instructions;
pub(crate) mod machine;
pub(crate) mod memory;
mod state;

pub(crate) use memory::{EmittedValue, Memory, clif_type};
pub(crate) use state::{FunctionState, region};
