//! The errors of compiling a plan or a tape.

use cembra_value::Diagnostic;

/// The reasons why the compilation of a plan or tape can fail, such as an exceeded limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ErrorKind {
    /// This machine or operating system cannot run code from this crate.
    Unsupported,
    /// The plan or its machine code exceeds a limit.
    Limit,
    /// The machine code needs more stack than a limit allows.
    Stack,
    /// The code generator rejected a function of the plan.
    CodeGenerator,
    /// There was no executable memory for the machine code.
    Memory,
    /// The number of columns or arrays differs from the number of inputs and outputs, or a column does not fit the type of its input or output.
    Columns,
}

/// The error of a plan or tape that could not be compiled.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    kind: ErrorKind,
    message: String,
    limit: Option<Box<Diagnostic>>,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Error { kind, message: message.into(), limit: None }
    }

    /// Returns the diagnostic of the exceeded limit; `None` if the compilation failed for another reason.
    #[must_use]
    pub fn limit(&self) -> Option<&Diagnostic> {
        self.limit.as_deref()
    }

    /// Returns the reason why the compilation failed.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
}

impl From<Diagnostic> for Error {
    fn from(limit: Diagnostic) -> Self {
        Error { kind: ErrorKind::Limit, message: limit.to_string(), limit: Some(Box::new(limit)) }
    }
}
