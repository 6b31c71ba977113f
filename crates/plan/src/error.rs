//! The errors of making a plan.

use cembra_expr::NodeId;
use cembra_value::Diagnostic;

/// The reason why a plan could not be made.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// A limit was exceeded: the size of the frame, or the time to compile.
    #[error("{0}")]
    Limit(Diagnostic),
    /// An operator cannot be compiled from its literal.
    #[error("{operator}: {reason}")]
    Compile {
        /// The operator's name.
        operator: &'static str,
        /// The reason why the literal is refused.
        reason: String,
        /// The operator's node in the model.
        origin: NodeId,
    },
    /// The model has arrays, which are not stored in frames.
    #[error("the model has arrays")]
    Arrays,
    /// Rewrites of the user made a plan that the verifier refuses; the text gives the reason.
    #[error("the rewrites of the user made a plan that cannot run: {0}")]
    Unsound(String),
}

impl From<Diagnostic> for PlanError {
    fn from(limit: Diagnostic) -> Self {
        PlanError::Limit(limit)
    }
}
