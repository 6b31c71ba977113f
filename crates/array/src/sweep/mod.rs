//! Sweeps laid out: which columns a sweep goes over, what its stages do with them, and what it writes to memory. The engine
//! runs them.

mod layout;
mod storage;
mod written;

pub use layout::{Gathering, Lane, Origin, Over, Port, Scanning, SweepLayout, Wanted, Work};
pub use storage::Storage;
pub(crate) use written::Written;
pub use written::element_bits;
