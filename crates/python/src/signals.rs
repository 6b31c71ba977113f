//! Checks for signals while elements are converted with Python's global interpreter lock (GIL) held, so that Ctrl-C ends a long
//! conversion.

use pyo3::prelude::*;

/// The number of elements that are converted between two checks for signals.
pub(crate) const LOOK: usize = 1 << 16;

/// Runs Python's signal handlers if `at`, the index of the element that was converted last, completes a group of `LOOK` elements. The error is the
/// exception that a handler raised.
pub(crate) fn listen(py: Python<'_>, at: usize) -> PyResult<()> {
    if at % LOOK == LOOK - 1 { py.check_signals() } else { Ok(()) }
}
