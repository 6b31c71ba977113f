//! Errors of this crate as errors of DataFusion. The error of the library is kept inside: [`model_error`] finds it.

use cembra::errors::{Code, Diagnostic, Source};
use datafusion::error::DataFusionError;
use std::error::Error;
use std::fmt;

/// An error of a model, with the text that is shown for it.
#[derive(Debug)]
struct ModelError {
    error: cembra::Error,
    shown: String,
}

impl fmt::Display for ModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl Error for ModelError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.error)
    }
}

/// Returns the error of a model with which a query or a statement failed, with its code, span and hints. `None` if another part of the query failed.
#[must_use]
pub fn model_error(error: &DataFusionError) -> Option<&cembra::Error> {
    let mut next: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref::<ModelError>() {
            return Some(&found.error);
        }
        // An error that queries share is not the source of the error around it.
        next = match error.downcast_ref::<DataFusionError>() {
            Some(DataFusionError::External(inner)) => Some(inner.as_ref()),
            Some(DataFusionError::Shared(inner)) => Some(inner.as_ref()),
            _ => error.source(),
        };
    }
    None
}

fn external(error: cembra::Error, shown: String) -> DataFusionError {
    DataFusionError::External(Box::new(ModelError { error, shown }))
}

/// The error for a text that is not a valid model, shown with the lines of the text.
pub(crate) fn of_text<'s>(error: cembra::Error, text: impl Into<Source<'s>>) -> DataFusionError {
    let shown = format!("the model is not valid\n{}", error.render(text).trim_end());
    external(error, shown)
}

/// The error with which an evaluation of the function `name` failed, or for columns that do not fit its inputs.
pub(crate) fn of_function(name: &str, error: cembra_arrow::Error) -> DataFusionError {
    let error = match error {
        cembra_arrow::Error::Model(error) => error,
        cembra_arrow::Error::Arrow(error) => return error.into(),
        other => Diagnostic::new(Code::InputType, other.to_string()).into(),
    };
    let shown = format!("{name}: {error}");
    external(error, shown)
}

/// The error for a call or a statement that does not fit the function.
pub(crate) fn of_use(problem: Diagnostic) -> DataFusionError {
    let shown = problem.to_string();
    external(problem.into(), shown)
}
