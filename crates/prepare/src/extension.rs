//! Extensions: rewrites that a user of the library adds to preparation, run after the optimiser on the lowered graph.

use crate::{Id, TypedGraph};

/// A node transformation.
pub trait Extension: Send + Sync + std::fmt::Debug {
    /// The extension's name, for `explain`.
    fn name(&self) -> &str;

    /// What to put in place of a node whose operands are final; `None` keeps it. New nodes are added to the graph; they
    /// must have the type of the node they replace, and are not transformed again.
    fn transform(&self, graph: &mut TypedGraph, node: Id) -> Option<Id>;
}
