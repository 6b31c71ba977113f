//! Why a plan was not compiled.

use std::fmt;

/// The kinds of failure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ErrorKind {
    /// This machine or operating system cannot run generated code of ours.
    Unsupported,
    /// The plan is larger than the backend takes.
    TooLarge,
    /// The code generator refused the function.
    CodeGenerator,
    /// There was no memory for the code.
    Memory,
}

/// A plan could not be compiled.
#[derive(Clone, Debug)]
pub struct Error {
    kind: ErrorKind,
    message: String,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Error { kind, message: message.into() }
    }

    /// The kind of failure.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}
