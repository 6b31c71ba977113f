//! Running sweeps: what they need is laid out once, the machine code of their plans is made for the columns that come, and then
//! strips of elements go through the stages. A sweep that meets anything that fails gives up: whoever asked for it has the
//! program run in another way, which says what failed.

mod layout;
mod place;
mod run;
mod shares;
mod staging;
mod written;

pub use layout::SweepRunner;
pub(crate) use layout::Workspace;
pub(crate) use run::Swept;
pub(crate) use written::{Written, element_bits};
