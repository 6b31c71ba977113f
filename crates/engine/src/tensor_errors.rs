//! Errors of tensors as errors of the library: which code each kind has.

use crate::error::Error;
use cembra_tensor::TensorErrorKind;
use cembra_value::{Code, Diagnostic};

/// What is wrong with tensors as what is wrong with a model.
impl From<cembra_tensor::TensorError> for Error {
    fn from(error: cembra_tensor::TensorError) -> Error {
        let code = match error.kind() {
            TensorErrorKind::Broadcast
            | TensorErrorKind::EmptyReduction
            | TensorErrorKind::SizeMismatch
            | TensorErrorKind::RankMismatch
            | TensorErrorKind::Axis
            | TensorErrorKind::Index => Code::Shape,
            TensorErrorKind::BadLabel
            | TensorErrorKind::UnknownOutputLabel
            | TensorErrorKind::RepeatedOutputLabel
            | TensorErrorKind::FreeLabel
            | TensorErrorKind::ImplicitReduction
            | TensorErrorKind::AddendLabels
            | TensorErrorKind::RepeatedTargetLabel
            | TensorErrorKind::UnboundTargetLabel => Code::Labels,
            TensorErrorKind::ElementType => Code::TypeMismatch,
            TensorErrorKind::OperandCount => Code::Arguments,
            TensorErrorKind::UnknownName => Code::UnknownName,
            TensorErrorKind::NotDifferentiable => Code::Derivative,
            TensorErrorKind::Limit => Code::Limit,
            TensorErrorKind::Evaluation => Code::Evaluation,
            TensorErrorKind::Syntax => Code::Syntax,
            TensorErrorKind::Literal => Code::Literal,
            _ => Code::Tensors,
        };
        let problem = Diagnostic::new(code, error.to_string()).at(error.span());
        let problem = match error.help() {
            Some(hint) => problem.hint(hint),
            None => problem,
        };
        Error::tensors(error, problem)
    }
}
