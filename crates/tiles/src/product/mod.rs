//! Products of two tiled tensors by labels, such as `ij,jk->ik`: planned from shapes alone (`symbolic.rs`), and
//! computed as planned (`numeric.rs`).
//!
//! * `roles.rs`, `segments.rs`, `factors.rs` and `gustavson.rs` are parts of the plan.
//! * `kernel.rs` multiplies two tiles; `supply.rs` computes the operand tiles that a product needs and that are not stored.
//! * `grids.rs` decides which rank computes which tile.
//!
//! Products of more than two tensors are in `graph/contraction.rs`.

pub(crate) mod factors;
pub(crate) mod grids;
pub(crate) mod gustavson;
pub(crate) mod kernel;
pub(crate) mod numeric;
pub(crate) mod roles;
pub(crate) mod segments;
pub(crate) mod supply;
pub(crate) mod symbolic;
