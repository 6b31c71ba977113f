//! Expressions over labelled tensors, `a("i,k") * b("k,j")`, as graphs: which labels are summed, and what the parts become. Texts are read
//! elsewhere, in the language of models.

mod expression;
mod labels;
mod lower;
mod tree;
mod whole;

pub use expression::{Expression, Subexpression};
pub use whole::FullReduction;
