//! A plan on one row: what runs it, in which tiers, and plans that are run once in a run of another model.

pub(crate) mod backend;
pub(crate) mod frame_model;
pub(crate) mod once;
pub(crate) mod tiers;
