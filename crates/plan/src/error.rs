//! Why a plan could not be made.

use cembra_expr::NodeId;
use cembra_value::Diagnostic;

/// A plan could not be made.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// A limit was exceeded: of the frame, or of the time to compile.
    #[error("{0}")]
    Limit(Diagnostic),
    /// An operator is not compiled from its literal.
    #[error("{operator}: {reason}")]
    Compile {
        /// The operator.
        operator: &'static str,
        /// What is wrong with the literal.
        reason: String,
        /// The node of the model.
        origin: NodeId,
    },
    /// The model has values that live beside frames.
    #[error("the model has arrays")]
    Arrays,
    /// Rewrites of the user made something that the verifier refuses.
    #[error("the rewrites of the user made a plan that cannot run: {0}")]
    Unsound(String),
}

impl From<Diagnostic> for PlanError {
    fn from(limit: Diagnostic) -> Self {
        PlanError::Limit(limit)
    }
}
