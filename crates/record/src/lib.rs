//! Turns a plan (the steps of a model in order, with conditionals and loops) into tapes (lists of instructions without
//! branches), which a backend compiles or interprets. To evaluate one row, consecutive steps without branches become
//! straight lines, each recorded on one tape; a large plan is cut into several functions; a step without a lowering
//! rule becomes the call of a kernel or a function; and values that several lines need are stored in registers or
//! memory. To evaluate many rows at once, [`record_lanes`] records the plan with both branches of each conditional.
//!
//! This crate does not depend on a code generator: the inputs of a tape are parts of values, in a type that the backend
//! chooses. The backend itself adds the branches and loops between the lines, and the accesses to memory.

mod callee;
mod lanes;
mod line;
mod lines;
mod locations;
mod outline;
mod pieces;
mod scoped;
mod value;

pub use callee::{Callee, callees};
pub use cembra_ops::MemoryAccess;
pub use lanes::{InputFact, NotLanes, record_lanes};
pub use line::{Line, Values};
pub use lines::Segment;
pub use locations::ValueLocations;
pub use outline::Outline;
pub use pieces::{FunctionPiece, FunctionPieces, inner_blocks};
pub use scoped::ScopedValueMap;
pub use value::{Datum, MachineValue, Presence, datum_types, gather, part_types};
