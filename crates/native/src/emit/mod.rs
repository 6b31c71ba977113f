//! What all players share: an instruction of a tape as instructions of the code generator, values in memory, the state of a
//! function being built, and what the machine has.

mod expansion;
pub(crate) mod instructions;
pub(crate) mod machine;
pub(crate) mod memory;
mod state;

pub(crate) use memory::{EmittedValue, Memory, clif_type};
pub(crate) use state::{FunctionState, region};
