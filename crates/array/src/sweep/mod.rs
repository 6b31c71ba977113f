//! The layouts of sweeps (fused loops over elements), which the engine runs: the columns that a sweep reads and writes, the
//! work of its stages, and the memory that it writes.

mod layout;
mod storage;
mod written;

pub use layout::{
    AccumulatorSpec, FoldResult, GroupScope, Origin, PlanInput, ScannerSpec, SweepColumn, SweepLayout, Work,
};
pub use storage::Storage;
pub(crate) use written::MemoryEstimate;
pub use written::element_bits;
