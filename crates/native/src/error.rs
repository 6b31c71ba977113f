//! Why a plan was not compiled.

use cembra_value::Diagnostic;

/// The kinds of failure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ErrorKind {
    /// This machine or operating system cannot run generated code of ours.
    Unsupported,
    /// The plan or its code exceeds a limit.
    Limit,
    /// The code needs more stack than it may take.
    Stack,
    /// The code generator refused the function.
    CodeGenerator,
    /// There was no memory for the code.
    Memory,
    /// The columns or ports are not as many as there are inputs and outputs, or one cannot hold values of its type.
    Columns,
}

/// A plan could not be compiled.
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

    /// The limit that was exceeded, if that is the reason.
    #[must_use]
    pub fn limit(&self) -> Option<&Diagnostic> {
        self.limit.as_deref()
    }

    /// The kind of failure.
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
