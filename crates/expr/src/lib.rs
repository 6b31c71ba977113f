//! Expressions: typed values, the untyped hash-consed graph with its source spans, and the text language.
//!
//! Operators are only names here; what they mean, which types they take and how they run is the registry's business
//! (`cembra-ops`). The one table of this crate maps infix tokens to operator names, for parser and printer alike.

mod diagnostic;
mod graph;
mod span;
mod value;

pub use diagnostic::{Code, Diagnostic, Diagnostics, Label};
pub use graph::{Graph, NameId, Node, NodeId};
pub use span::Span;
pub use value::{ScalarValue, Value};
