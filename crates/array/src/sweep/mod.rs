//! Sweeps laid out: which columns a sweep goes over, what its stages do with them, and what it writes to memory. The engine
//! runs them.

mod layout;
mod storage;
mod written;

pub use layout::{FoldResult, Gathering, Lane, Origin, Over, Port, Scanning, SweepLayout, Work};
pub use storage::Storage;
pub(crate) use written::MemoryEstimate;
pub use written::element_bits;
