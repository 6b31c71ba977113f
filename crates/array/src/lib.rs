//! Array programs: what becomes of a model with arrays. Its nodes compute on whole arrays; what is done to each element by
//! itself is one plan like any other, over as many rows as there are elements, and so are the parts between scalars.
//!
//! A program names no backend: whoever runs it says how its plans are run.

mod fullness;
mod fuse;
mod joined;
mod lifetimes;
mod listing;
mod memory;
mod passes;
mod program;
mod recompute;
mod rows;
mod run;
mod split;
mod sweep;
mod verify;

pub use fullness::fullness;
pub use memory::{RunMemory, most_units};
pub use program::{
    Action, ArrayInput, ArrayProgram, Block, BlockId, Part, PartId, Side, Stage, Step, Sweep, SweepId, SweepRunners,
    ValueId,
};
pub use rows::{Obstacle, RowsLeaf, RowsModel, RowsOutput, over_rows};
pub use run::{Parts, run};
pub use split::{Fusion, Unsplit, split};
pub use sweep::SweepRunner;
pub use verify::{Flaw, verify};
