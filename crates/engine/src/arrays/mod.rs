//! Models that contain arrays, such as `math.sum(x * 2)` of an input `x: [f64]`: how they are compiled, run on single
//! values, and run on many rows, each with its own arrays.

pub(crate) mod lists;
pub(crate) mod loops;
pub(crate) mod model;
mod program;
