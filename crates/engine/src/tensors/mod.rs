//! Models with tensors: programs that are lowered to graphs, plans that are bound to tensors and run, products of matrices, and access to single
//! elements.

pub(crate) mod access;
pub(crate) mod bound;
pub(crate) mod evaluator;
mod kernels;
mod lines;
pub(crate) mod lowering;
#[cfg(feature = "matrix-library")]
pub(crate) mod matrices;
pub(crate) mod model;
pub(crate) mod plan;
pub(crate) mod product;
pub(crate) mod runs;
