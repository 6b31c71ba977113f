//! Errors of tensors as errors of the library: which code each kind has.

use crate::error::Error;
use cembra_tensor::ErrorKind;
use cembra_value::{Code, Diagnostic};

/// What is wrong with tensors as what is wrong with a model.
impl From<cembra_tensor::Error> for Error {
    fn from(error: cembra_tensor::Error) -> Error {
        let code = match error.kind() {
            ErrorKind::Broadcast
            | ErrorKind::EmptyReduction
            | ErrorKind::SizeMismatch
            | ErrorKind::RankMismatch
            | ErrorKind::Axis
            | ErrorKind::Index => Code::Shape,
            ErrorKind::BadLabel
            | ErrorKind::UnknownOutputLabel
            | ErrorKind::RepeatedOutputLabel
            | ErrorKind::FreeLabel
            | ErrorKind::ImplicitReduction
            | ErrorKind::AddendLabels
            | ErrorKind::RepeatedTargetLabel
            | ErrorKind::UnboundTargetLabel => Code::Labels,
            ErrorKind::ElementType => Code::TypeMismatch,
            ErrorKind::OperandCount => Code::Arguments,
            ErrorKind::UnknownName => Code::UnknownName,
            ErrorKind::NotDifferentiable => Code::Derivative,
            ErrorKind::Limit => Code::Limit,
            ErrorKind::Evaluation => Code::Evaluation,
            ErrorKind::Syntax => Code::Syntax,
            ErrorKind::Literal => Code::Literal,
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
