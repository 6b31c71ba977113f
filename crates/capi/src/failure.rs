//! The reasons why functions of the C interface fail: an error of the library, wrong arguments, or values that do not fit the model. The module
//! `errors` converts them to errors of C.

use std::fmt::Display;

/// The reason why a function of the C interface fails: an error of the library, a wrong argument, or values that do not fit the model.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The library returned this error.
    Model(compiler::Error),
    /// An argument is wrong: a pointer, a size or a number for an enum. The text is the message.
    Argument(String),
    /// Values or columns do not fit the model's inputs or outputs. The text is the message.
    Values(String),
}

impl Failure {
    /// Returns the failure that an argument is wrong.
    #[cold]
    pub(crate) fn argument(message: impl Into<String>) -> Failure {
        Failure::Argument(message.into())
    }

    /// Returns the failure that values do not fit the model.
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
        Failure::Argument(format!("{what} must not be null"))
    }

    /// Returns the failure that `number` is not a value of the enum `what`.
    #[cold]
    pub(crate) fn unknown(what: impl Display, number: u32) -> Failure {
        Failure::Argument(format!("{number} is not a {what}"))
    }
}

impl From<compiler::Error> for Failure {
    fn from(error: compiler::Error) -> Self {
        Failure::Model(error)
    }
}

/// Returns the value in `handle`. Fails with an error that names `what` if `handle` is null (`None`).
pub(crate) fn require_non_null<T>(handle: Option<T>, what: &str) -> Result<T, Failure> {
    handle.ok_or_else(|| Failure::null(what))
}
