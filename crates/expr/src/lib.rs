//! Expressions: typed values, the untyped hash-consed graph with its source spans, and the text language.
//!
//! Operators are only names here; what they mean, which types they take and how they run is the registry's business
//! (`cembra-ops`). The one table of this crate maps infix tokens to operator names, for parser and printer alike.

mod builder;
mod diagnostic;
mod graph;
mod infix;
mod limits;
mod near;
mod places;
mod program;
mod span;
mod text;
mod value;
mod value_ref;
mod value_run;
mod vocabulary;
mod wire;

pub use builder::{Builder, Expr, IntoExpr};
pub use diagnostic::{Code, Diagnostic, Diagnostics, Label};
pub use graph::{Graph, NameId, Node, NodeId};
pub use limits::{Budget, Limit, Limits};
pub use near::near_names;
pub use program::{Input, Output, Program};
pub use span::Span;
pub use text::{parse, parse_type, parse_value, print, print_expression, print_type, print_value};
pub use value::{ScalarValue, Value};
pub use value_ref::ValueRef;
pub use value_run::ValueRun;
pub use vocabulary::{Callable, Parameter, Vocabulary};
pub use wire::{read_binary, write_binary};
#[cfg(feature = "json")]
pub use wire::{read_json, write_json};
