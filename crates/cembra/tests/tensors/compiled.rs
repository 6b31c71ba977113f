//! Helpers for tests of tensors: run an executor, and get the kind and message of an error.

use cembra::Executor;
use cembra::tensor::{Tensor, TensorErrorKind};

/// Returns the kind of an error in an operation on tensors. Panics for other errors.
pub(crate) fn kind_of(error: &cembra::Error) -> TensorErrorKind {
    error.tensor_kind().unwrap_or_else(|| panic!("{error} is no error of tensors"))
}

/// Returns the message of an error, without its hints.
pub(crate) fn message_of(error: &cembra::Error) -> String {
    error.diagnostics()[0].message().to_owned()
}

/// Returns the outputs for `inputs` in a new session.
pub(crate) fn run(executor: &Executor, inputs: &[Tensor]) -> Result<Vec<Tensor>, cembra::Error> {
    Ok(executor.session().run_tensors(inputs)?.to_vec())
}
