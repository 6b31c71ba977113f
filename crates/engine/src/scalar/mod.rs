//! Plans that run on one row: their functions, their tiers, and plans that run once during the run of another model.

pub(crate) mod backend;
pub(crate) mod frame_model;
pub(crate) mod once;
pub(crate) mod tiers;
