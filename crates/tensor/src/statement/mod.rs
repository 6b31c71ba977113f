//! Turns expressions over labelled tensors, `a("i,k") * b("k,j")`, into graphs: determines the labels that are summed over, and builds
//! the nodes. Texts are parsed elsewhere, in the language of models.

mod expression;
mod labels;
mod lower;
mod tree;
mod whole;

pub use expression::{Expression, Subexpression};
pub use whole::FullReduction;
