//! The scalar player: a tape as code for one row.

mod blends;
mod pairs;
mod player;
mod playing;
mod reads;
mod texts;

pub(crate) use player::play;
pub(crate) use reads::remove_unused;
