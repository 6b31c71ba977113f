//! Array programs: the compiled form of a model with arrays. The steps of a program compute on whole arrays. An
//! elementwise computation such as `x * 2.0 + y` becomes a plan (the executable form of a model without arrays) that is
//! evaluated for each element. A computation between scalars becomes a plan that is evaluated once.
//!
//! This crate only plans: a program says which steps read and write which values, and how its sweeps (fused loops over
//! elements) are laid out. A program has no machine code and no memory; the engine (the crate `cembra-engine`) adds
//! both and runs the program.

mod fullness;
mod fuse;
mod joined;
mod lifetimes;
mod listing;
mod loops;
mod passes;
mod program;
mod recompute;
mod rows;
mod split;
mod struct_columns;
mod sweep;
mod verify;

pub use fullness::fullness;
pub use lifetimes::Lifetimes;
pub use loops::{Column, ColumnOrigin, InputPath, LoopFailure, LoopLeaf, LoopList, LoopModel, LoopOutput, loops};
pub use program::{
    Action, ArrayInput, ArrayProgram, Block, BlockId, PartId, ProgramId, Side, Stage, Step, SubPlan, Sweep, SweepId,
    ValueId,
};
pub use rows::{Obstacle, RowsLeaf, RowsModel, RowsOutput, over_rows};
pub use split::{Fusion, SplitFailure, split};
pub use struct_columns::{StructColumn, struct_columns};
pub use sweep::{
    AccumulatorSpec, FoldResult, GroupScope, Origin, PlanInput, ScannerSpec, Storage, SweepColumn, SweepLayout, Work,
    element_bits,
};
pub use verify::{Flaw, verify};
