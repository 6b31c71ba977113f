//! Tapes of plans: straight lines and lane programs.

mod lanes;
mod lines;
