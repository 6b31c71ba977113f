//! The errors of compiling a plan or a tape.

use cembra_value::Diagnostic;

/// The reasons why a compilation can fail.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ErrorKind {
    /// This machine or operating system cannot run code from this crate.
    Unsupported,
    /// The plan or its code exceeds a limit.
    Limit,
    /// The code needs more stack than allowed.
    Stack,
    /// The code generator refused the function.
    CodeGenerator,
    /// There was no memory for the code.
    Memory,
    /// The number of columns or ports differs from that of inputs and outputs, or one of them does not fit the type
    /// of its values.
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

    /// The diagnostic of the exceeded limit; `None` if the reason is another one.
    #[must_use]
    pub fn limit(&self) -> Option<&Diagnostic> {
        self.limit.as_deref()
    }

    /// The reason for the failure.
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
