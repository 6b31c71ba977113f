//! The errors that can occur while a plan is made.

use cembra_expr::NodeId;
use cembra_value::Diagnostic;

/// The reason why a plan could not be made, such as a limit or an operator that cannot be compiled.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// The model exceeds a limit: on the size of the frame, or on the time to compile.
    #[error("{0}")]
    Limit(Diagnostic),
    /// An operator cannot be compiled from its literal, for example because the literal is not a valid regular
    /// expression.
    #[error("{operator}: {reason}")]
    Compile {
        /// The name of the operator that cannot be compiled.
        operator: &'static str,
        /// The reason why the operator rejects its literal, for the message.
        reason: String,
        /// The expression node that applies the operator.
        origin: NodeId,
    },
    /// The model has arrays. Plans cannot have them, because frames store only scalars, optionals and tuples.
    #[error("the model has arrays")]
    Arrays,
    /// A user's rewrites led to a plan that cannot run; the text gives the reason.
    #[error("the rewrites of an extension make a plan that cannot run: {0}")]
    Unsound(String),
}

impl From<Diagnostic> for PlanError {
    fn from(limit: Diagnostic) -> Self {
        PlanError::Limit(limit)
    }
}
