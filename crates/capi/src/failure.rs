//! The failures of this crate, before they become errors of C: an error of the library, or a call with wrong arguments. Nothing here knows of C.

use std::fmt::Display;

/// Why a call fails.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The library says so.
    Model(compiler::Error),
    /// The call itself is wrong: its pointers, sizes and numbers.
    Argument(String),
    /// The values or columns are not what the model takes.
    Values(String),
}

impl Failure {
    /// A call that is wrong.
    #[cold]
    pub(crate) fn argument(message: impl Into<String>) -> Failure {
        Failure::Argument(message.into())
    }

    /// Values that do not fit.
    #[cold]
    pub(crate) fn values(message: impl Into<String>) -> Failure {
        Failure::Values(message.into())
    }

    /// A value that must not be missing.
    #[cold]
    pub(crate) fn missing(what: impl Display) -> Failure {
        Failure::Values(format!("{what} is missing"))
    }

    /// A pointer that is null.
    #[cold]
    pub(crate) fn null(what: impl Display) -> Failure {
        Failure::Argument(format!("{what} is null"))
    }

    /// A number that is none of an enum's.
    #[cold]
    pub(crate) fn unknown(what: impl Display, number: u32) -> Failure {
        Failure::Argument(format!("{number} is no {what}"))
    }
}

impl From<compiler::Error> for Failure {
    fn from(error: compiler::Error) -> Self {
        Failure::Model(error)
    }
}

/// A handle that is there.
pub(crate) fn given<T>(handle: Option<T>, what: &str) -> Result<T, Failure> {
    handle.ok_or_else(|| Failure::null(what))
}
