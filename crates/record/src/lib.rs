//! From a plan to tapes: which steps form a straight line and are recorded on one tape, where a large plan is cut into
//! several functions, what a step without a rule calls, and where values live between lines.
//!
//! No code generator is known here: an input of a tape is a part of a value, by whatever name its player has for it. What a
//! player adds are the blocks between the lines, and memory.

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
