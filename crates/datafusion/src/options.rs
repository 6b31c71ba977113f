//! Options of a function: the treatment of rows that fail, limits, and operators.

use cembra::operators::Registry;
use cembra::{Limits, OnError};

/// Options of a function: what happens to rows that fail, the limits of its evaluations, and the operators that its model may use.
#[derive(Clone, Debug)]
pub struct FunctionOptions {
    pub(crate) on_error: OnError,
    pub(crate) limits: Limits,
    pub(crate) registry: &'static Registry,
}

impl Default for FunctionOptions {
    /// A row that fails ends the query, limits are the library's, and operators the standard ones.
    fn default() -> Self {
        FunctionOptions { on_error: OnError::Fail, limits: Limits::default(), registry: Registry::standard() }
    }
}

impl FunctionOptions {
    /// Makes the outputs of rows that fail `NULL`; the query goes on.
    #[must_use]
    pub fn null_on_error(self) -> Self {
        FunctionOptions { on_error: OnError::Missing, ..self }
    }

    /// Sets the limits of compiling and of each batch of rows.
    #[must_use]
    pub fn limits(self, limits: Limits) -> Self {
        FunctionOptions { limits, ..self }
    }

    /// Sets the operators that the model may use. It must be the registry that the model was read with.
    #[must_use]
    pub fn registry(self, registry: &'static Registry) -> Self {
        FunctionOptions { registry, ..self }
    }
}
