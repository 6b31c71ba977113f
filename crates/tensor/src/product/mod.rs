//! Plans of products of two operands by labels: the copies of operands that are made first, and the loops or matrix
//! products that compute the result. The engine runs these plans. The multiplication of two matrices is a trait, of
//! which the engine has the fast implementation.

mod matrix;
mod places;
mod plan;

pub use matrix::{MatrixLayout, MatrixProduct, Multiplication, PlainProduct, multiply_plainly};
pub use places::ProductPositions;
pub use plan::{FusedLabels, Kernel, Preparation, ProductPlan};
