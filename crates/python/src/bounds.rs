//! Limits for the data that one call imports from Python objects. Each import claims its bytes before it allocates them, and a signal or a
//! cancelled token ends a long import.

use crate::errors;
use crate::interrupt::check;
use crate::scalars::type_name;
use cembra::{Cancellation, Limits};
use pyo3::prelude::*;
use std::cell::Cell;

/// Limits that all imports of one call share: the most bytes that they may take together, and the cancellation token that ends them.
pub(crate) struct Bounds {
    /// The most bytes that all imports together may claim: `Limits::array_bytes` of the model.
    most_bytes: u64,
    /// The bytes that imports of the call have claimed so far.
    claimed: Cell<u64>,
    /// The token of the evaluation, which ends imports too; `None` if the evaluation has none.
    token: Option<Cancellation>,
}

impl Default for Bounds {
    fn default() -> Self {
        Bounds::new(Limits::default().array_bytes, None)
    }
}

impl Bounds {
    /// The limits for a call that has imported nothing yet: at most `most_bytes` bytes, and the token `token`.
    pub(crate) const fn new(most_bytes: u64, token: Option<Cancellation>) -> Self {
        Bounds { most_bytes, claimed: Cell::new(0), token }
    }

    /// Counts `bytes` that the import of `object` is about to allocate.
    ///
    /// # Errors
    /// If the imports of the call claim more than `most_bytes`.
    pub(crate) fn claim(&self, object: &Bound<'_, PyAny>, bytes: u64) -> PyResult<()> {
        let (claimed, most_bytes) = (self.claimed.get().saturating_add(bytes), self.most_bytes);
        if claimed > most_bytes {
            let found = type_name(object);
            return Err(errors::limit(format!(
                "{found} has more than {most_bytes} bytes, the limit `array_bytes`: compile the model with limits={{\"array_bytes\": ..}}, or give the data in parts"
            )));
        }
        self.claimed.set(claimed);
        Ok(())
    }

    /// Returns an error, which ends a long import, if a signal handler raises or the token is cancelled.
    pub(crate) fn check(&self, py: Python<'_>) -> PyResult<()> {
        check(py, self.token.as_ref())
    }
}
