//! Products of two operands by labels, planned: what is copied, and which loops or products of matrices follow. The engine runs such plans.

mod places;
mod plan;

pub use places::Places;
pub use plan::{Kernel, Preparation, ProductPlan, Run};
