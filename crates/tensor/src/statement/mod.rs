//! Turns expressions over labelled tensors, `a("i,k") * b("k,j")`, into graphs: determines the labels that are summed over, and builds the nodes.
//! This module does not parse: such an expression is parsed as a part of a model, by `crates/expr`.

mod expression;
mod labels;
mod lower;
mod tree;
mod whole;

pub use expression::{Expression, Subexpression};
pub use whole::FullReduction;
