//! The failures inside this crate, before they become errors of C: an error of the library, wrong arguments, or values that the model rejects.

use std::fmt::Display;

/// The reason why a call fails.
#[derive(Debug)]
pub(crate) enum Failure {
    /// An error that the library returned.
    Model(compiler::Error),
    /// A wrong argument: a pointer, a size or a number of an enum.
    Argument(String),
    /// Values or columns that do not fit the model's inputs or outputs.
    Values(String),
}

impl Failure {
    /// Returns a failure for a wrong argument.
    #[cold]
    pub(crate) fn argument(message: impl Into<String>) -> Failure {
        Failure::Argument(message.into())
    }

    /// Returns a failure for values that do not fit the model.
    #[cold]
    pub(crate) fn values(message: impl Into<String>) -> Failure {
        Failure::Values(message.into())
    }

    /// Returns the failure that `what` is missing where a value is required.
    #[cold]
    pub(crate) fn missing(what: impl Display) -> Failure {
        Failure::Values(format!("{what} is missing"))
    }

    /// Returns the failure that the pointer to `what` is null.
    #[cold]
    pub(crate) fn null(what: impl Display) -> Failure {
        Failure::Argument(format!("{what} is null"))
    }

    /// Returns the failure that `number` is not a value of the enum `what`.
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

/// Returns the handle, or a failure that names `what` if it is null.
pub(crate) fn given<T>(handle: Option<T>, what: &str) -> Result<T, Failure> {
    handle.ok_or_else(|| Failure::null(what))
}
