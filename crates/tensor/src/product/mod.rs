//! Products of two operands by labels, planned: what is copied, and which loops or products of matrices follow. The engine runs such plans.
//! What multiplies two matrices is a trait, which the engine has the fast implementation of.

mod matrix;
mod places;
mod plan;

pub use matrix::{MatrixLayout, MatrixProduct, Multiplication, PlainProduct, multiply_plainly};
pub use places::Places;
pub use plan::{FusedLabels, Kernel, Preparation, ProductPlan};
