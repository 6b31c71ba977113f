//! Turns a plan into tapes: finds the straight lines, runs of steps that are recorded on one tape; cuts a large plan into
//! several functions; finds the kernel or function that a step without a lowering rule calls; and decides where values are
//! stored between lines.
//!
//! This crate does not depend on a code generator: the inputs of a tape are the parts of values, in a type that the backend
//! chooses. The backend adds the blocks between the lines, and memory.

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
pub use pieces::{Piece, Pieces, inner_blocks};
pub use scoped::ScopedValueMap;
pub use value::{Datum, MachineValue, Presence, datum_types, gather, part_types};
