//! Scalar code generation: emits the code of a tape for one row.

mod blends;
mod pairs;
mod player;
mod playing;
mod reads;
mod texts;

pub(crate) use player::play;
pub(crate) use reads::remove_unused;
