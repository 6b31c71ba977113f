//! Looks at signals while elements are read or made with the interpreter's lock: Ctrl-C ends long conversions.

use pyo3::prelude::*;

/// The count of elements that are read or made between two looks at signals.
pub(crate) const LOOK: usize = 1 << 16;

/// Runs the handlers of signals after every `LOOK` elements. The error is the exception that one of them raised.
pub(crate) fn listen(py: Python<'_>, at: usize) -> PyResult<()> {
    if at % LOOK == LOOK - 1 { py.check_signals() } else { Ok(()) }
}
