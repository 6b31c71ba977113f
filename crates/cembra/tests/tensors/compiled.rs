//! Runs of executors, and the kinds of their errors.

use cembra::Executor;
use cembra::tensor::{Tensor, TensorErrorKind};

/// The kind of an error of tensors.
pub(crate) fn kind_of(error: &cembra::Error) -> TensorErrorKind {
    error.tensor_kind().unwrap_or_else(|| panic!("{error} is no error of tensors"))
}

/// The message of an error of tensors, without a hint.
pub(crate) fn message_of(error: &cembra::Error) -> String {
    error.diagnostics()[0].message().to_owned()
}

/// The outputs of a session that ran nothing before.
pub(crate) fn run(executor: &Executor, inputs: &[Tensor]) -> Result<Vec<Tensor>, cembra::Error> {
    Ok(executor.session().run_tensors(inputs)?.to_vec())
}
