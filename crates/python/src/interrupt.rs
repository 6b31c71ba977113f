//! Evaluations and compilations that Ctrl-C can end. Python runs signal handlers only in its main thread and between its own instructions, so work
//! that may take long runs in another thread, while the main thread checks for signals. Work of unknown length begins in the main thread, because
//! most work is short, and starting a thread takes longer than a short evaluation. After `PATIENCE`, such work is cancelled and begins again in
//! another thread.

use crate::errors;
use crate::lock::{released, taken};
use crate::user_operators;
use cembra::doors::compile_until;
use cembra::{Cancellation, RunOptions, ScalarValue, Value};
use pyo3::prelude::*;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The longest time for which a signal handler is delayed. Also the longest time for which work of unknown length runs in the main thread, before it
/// begins again in another thread.
pub(crate) const PATIENCE: Duration = Duration::from_millis(20);

/// The fewest elements in all inputs of a row, together, for which its evaluation begins in a thread of its own.
const LONG_ELEMENTS: usize = 1 << 17;

/// The smallest product of rows and graph nodes for which an evaluation gets a thread of its own: `LONG_NUMBERS` if all columns are numbers, else
/// `LONG_OTHERS`. Starting the thread takes as long as evaluating some thousands of numbers.
const LONG_NUMBERS: usize = 1 << 20;
const LONG_OTHERS: usize = 1 << 12;

/// A token that ends evaluations. Give it to evaluations as `cancellation`: `cancel()`, called in any thread, ends those that run and those that
/// begin later.
#[pyclass(frozen, name = "Cancellation", module = "cembra")]
pub(crate) struct Token(pub(crate) Cancellation);

#[pymethods]
impl Token {
    #[new]
    fn new() -> Token {
        Token(Cancellation::new())
    }

    /// Ends all evaluations that were given this token, now and later. It cannot be undone.
    fn cancel(&self) {
        self.0.cancel();
    }

    /// True once `cancel()` was called.
    #[getter]
    fn is_cancelled(&self) -> bool {
        self.0.is_cancelled()
    }
}

/// Returns an error if a Python signal handler raises an exception, or `token` is cancelled.
pub(crate) fn check(py: Python<'_>, token: Option<&Cancellation>) -> PyResult<()> {
    py.check_signals()?;
    match token {
        Some(token) if token.is_cancelled() => Err(errors::of_text(cembra::Error::ended_by(Some(token)), "", None)),
        _ => Ok(()),
    }
}

/// Returns true if evaluating `rows` rows may delay a signal handler for too long. The model has `nodes` nodes.
/// `are_numbers` is true if all its inputs and outputs are scalars other than strings.
pub(crate) fn is_long_batch(rows: usize, nodes: usize, are_numbers: bool) -> bool {
    let least = if are_numbers { LONG_NUMBERS } else { LONG_OTHERS };
    rows.saturating_mul(nodes) >= least || user_operators::is_long()
}

/// Returns true if the inputs of one row are long: the number of elements in arrays, tensors and lists, plus the bytes of strings, is at least
/// `LONG_ELEMENTS`.
pub(crate) fn is_long_row(row: &[Value]) -> bool {
    let elements = |value: &Value| match value {
        Value::Array(_, array) => array.len(),
        Value::Tensor(tensor) => tensor.extents().iter().product(),
        other => other.list_len().unwrap_or_else(|| text_len(other)),
    };
    row.iter().map(elements).fold(0, usize::saturating_add) >= LONG_ELEMENTS
}

/// The length of a text, or of bytes, in bytes; 0 for other values.
fn text_len(value: &Value) -> usize {
    match value.as_scalar() {
        Some(ScalarValue::Text(text)) => text.len(),
        Some(ScalarValue::Bytes(bytes)) => bytes.len(),
        _ => 0,
    }
}

/// Makes a token for a run with `options`, so that an exception of a signal handler can cancel the run. The new token is cancelled together with the
/// caller's token, but cancelling it does not cancel the caller's token.
pub(crate) fn token_of(options: &RunOptions) -> Cancellation {
    options.token().map_or_else(Cancellation::new, |of_caller| of_caller.child())
}

/// Runs `compile` without Python's global interpreter lock (GIL): first in this thread, and if that takes longer than `PATIENCE`, again from the
/// beginning in another thread. `compile` must not store the result of a run that was cancelled, because it is incomplete.
pub(crate) fn compiled<T: Send>(py: Python<'_>, compile: impl Fn() -> T + Send + Sync) -> PyResult<T> {
    let token = Cancellation::new();
    let brief = token.until(Instant::now() + PATIENCE);
    let made = released(py, || compile_until(&brief, &compile));
    if !brief.is_cancelled() {
        return Ok(made);
    }
    drop(made);
    detached(py, &token, compile)
}

/// Runs `work` in a thread of its own, without Python's global interpreter lock (GIL), while this thread checks for signals. If a signal handler
/// raises an exception, the token is cancelled, and the exception is returned as the error. The token also ends compilations in `work`.
pub(crate) fn detached<T: Send>(py: Python<'_>, token: &Cancellation, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    let run = user_operators::current();
    // If the thread cannot start, its closure is dropped. So the closure does not own the work, but takes it from here.
    let work = Mutex::new(Some(|| compile_until(token, work)));
    let work = || work.lock().unwrap_or_else(PoisonError::into_inner).take().map(|work| work());
    let made = released(py, || {
        std::thread::scope(|scope| {
            let (done, wait) = channel();
            let (run, work) = (&run, &work);
            let in_thread = move || {
                let _run = user_operators::within(run.clone());
                let made = work();
                let cause = user_operators::raised();
                // Sending fails only if the receiver is dropped, and then no one waits.
                let _nobody = done.send(());
                (made, cause)
            };
            let Ok(worker) = std::thread::Builder::new().spawn_scoped(scope, in_thread) else {
                // No thread could start: signals wait until the end.
                return Ok(work());
            };
            let mut raised = Ok(());
            while wait.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                if raised.is_ok() {
                    raised = taken(|py| py.check_signals());
                    if raised.is_err() {
                        token.cancel();
                        run.cancel();
                    }
                }
            }
            let (made, cause) = worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            user_operators::keep(cause);
            raised.map(|()| made)
        })
    });
    made?.ok_or_else(|| errors::data("the work for a call was taken twice"))
}
