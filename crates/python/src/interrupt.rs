//! Evaluations and compilations that Ctrl-C ends. Python runs handlers of signals in its main thread and only between its own instructions, so work
//! that may be long is done in another thread, while this one asks for signals. Work of unknown length begins in this thread, is ended after
//! `PATIENCE`, and begins again in another one: most of it is over before, and starting a thread takes longer than a short evaluation.

use crate::errors;
use crate::lock::{released, taken};
use crate::user_operators;
use cembra::doors::compile_until;
use cembra::{Cancellation, RunOptions, ScalarValue, Value};
use pyo3::prelude::*;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The longest time that a handler of a signal waits until it runs, and the longest that work goes on in the main thread before it moves to another.
pub(crate) const PATIENCE: Duration = Duration::from_millis(20);

/// The fewest elements of one row's inputs, together, whose evaluation begins in a thread of its own.
const LONG_ELEMENTS: usize = 1 << 17;

/// The fewest rows times nodes whose evaluation gets a thread of its own where all columns are numbers, and where they are not. Starting the
/// thread takes as long as evaluating some thousands of numbers.
const LONG_NUMBERS: usize = 1 << 20;
const LONG_OTHERS: usize = 1 << 12;

/// Ends evaluations: `cancel` ends those that were given it, from any thread, and those to come.
#[pyclass(frozen, name = "Cancellation", module = "cembra")]
pub(crate) struct Token(pub(crate) Cancellation);

#[pymethods]
impl Token {
    #[new]
    fn new() -> Token {
        Token(Cancellation::new())
    }

    /// Ends the evaluations. It stays cancelled.
    fn cancel(&self) {
        self.0.cancel();
    }

    /// True once it is cancelled.
    #[getter]
    fn is_cancelled(&self) -> bool {
        self.0.is_cancelled()
    }
}

/// Returns an error if the handler of a signal raised, or the token is cancelled.
pub(crate) fn check(py: Python<'_>, token: Option<&Cancellation>) -> PyResult<()> {
    py.check_signals()?;
    match token {
        Some(token) if token.is_cancelled() => Err(errors::of_text(cembra::Error::ended_by(Some(token)), "", None)),
        _ => Ok(()),
    }
}

/// True if evaluating `rows` rows by a model of `nodes` nodes may take longer than a handler of a signal should wait.
pub(crate) fn is_long_batch(rows: usize, nodes: usize, are_numbers: bool) -> bool {
    let least = if are_numbers { LONG_NUMBERS } else { LONG_OTHERS };
    rows.saturating_mul(nodes) >= least || user_operators::is_long()
}

/// True if the inputs of one row have at least `LONG_ELEMENTS` elements and bytes of strings together.
pub(crate) fn is_long_row(row: &[Value]) -> bool {
    let elements = |value: &Value| match value {
        Value::Array(_, array) => array.len(),
        Value::Tensor(tensor) => tensor.extents().iter().product(),
        other => other.list_len().unwrap_or_else(|| text_len(other)),
    };
    row.iter().map(elements).fold(0, usize::saturating_add) >= LONG_ELEMENTS
}

/// The bytes of a text; 0 for other values.
fn text_len(value: &Value) -> usize {
    match value.as_scalar() {
        Some(ScalarValue::Text(text)) => text.len(),
        Some(ScalarValue::Bytes(bytes)) => bytes.len(),
        _ => 0,
    }
}

/// The token of a run with these options, which a handler of a signal may cancel: that of the caller goes on.
pub(crate) fn token_of(options: &RunOptions) -> Cancellation {
    options.token().map_or_else(Cancellation::new, |of_caller| of_caller.child())
}

/// Reads or compiles a model without the interpreter's lock: at first in this thread, and from the beginning again in another one if that takes
/// long. `compile` must keep nothing of what `compile_until` ended.
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

/// Does work without the interpreter's lock, in a thread of its own, while this one asks for signals. If a handler raises, the token is cancelled, and
/// the exception is the error. The token ends compilations, too.
pub(crate) fn detached<T: Send>(py: Python<'_>, token: &Cancellation, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    let run = user_operators::current();
    // A thread that cannot begin drops its closure: it takes the work from here.
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
                // There is no thread: signals wait until the end.
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
    made?.ok_or_else(|| errors::data("the work was taken twice"))
}
