//! Evaluations that Ctrl-C ends. Python runs handlers of signals in its main thread and only between its own instructions, so long evaluations
//! run in another thread, while this one asks for signals.

use crate::errors;
use crate::lock::{released, taken};
use crate::user_operators;
use cembra::{Cancellation, RunOptions, Value};
use pyo3::prelude::*;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The row count from which an evaluation gets a thread of its own. Starting the thread would take as long as evaluating fewer rows.
const LONG_ROWS: usize = 1 << 17;

/// How long a handler waits at most until it runs.
const PATIENCE: Duration = Duration::from_millis(20);

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

/// The token that cancels an evaluation in a thread of its own, if it may be long: by the row count, or by its model.
pub(crate) fn token(rows: usize, options: &RunOptions) -> Option<Cancellation> {
    (rows >= LONG_ROWS || user_operators::is_long()).then(|| options.token().unwrap_or_default())
}

/// True for inputs of one row that have as many elements as a long evaluation has rows.
pub(crate) fn is_long(row: &[Value]) -> bool {
    let elements = |value: &Value| match value {
        Value::Array(_, array) => array.len(),
        Value::Tensor(tensor) => tensor.extents().iter().product(),
        other => other.list_len().unwrap_or(0),
    };
    row.iter().map(elements).fold(0, usize::saturating_add) >= LONG_ROWS
}

/// Evaluates rows without the interpreter's lock. If there is a token and a handler of a signal raises, the token is cancelled, and the exception is
/// the error.
pub(crate) fn detached<T: Send>(
    py: Python<'_>,
    token: Option<&Cancellation>,
    evaluate: impl FnOnce() -> T + Send,
) -> PyResult<T> {
    let Some(token) = token else { return Ok(released(py, evaluate)) };
    let run = user_operators::current();
    // A thread that cannot begin drops its closure: it takes the evaluation from here.
    let evaluate = Mutex::new(Some(evaluate));
    let evaluate = || evaluate.lock().unwrap_or_else(PoisonError::into_inner).take().map(|evaluate| evaluate());
    let made = released(py, || {
        std::thread::scope(|scope| {
            let (done, wait) = channel();
            let (run, evaluate) = (&run, &evaluate);
            let work = move || {
                let _run = user_operators::within(run.clone());
                let made = evaluate();
                let cause = user_operators::raised();
                // Sending fails only if the receiver is dropped, and then no one waits.
                let _nobody = done.send(());
                (made, cause)
            };
            let Ok(worker) = std::thread::Builder::new().spawn_scoped(scope, work) else {
                // There is no thread: signals wait until the end.
                return Ok(evaluate());
            };
            let mut raised = Ok(());
            while wait.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                if raised.is_ok() {
                    raised = taken(|py| py.check_signals());
                    if raised.is_err() {
                        token.cancel();
                    }
                }
            }
            let (made, cause) = worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            user_operators::keep(cause);
            raised.map(|()| made)
        })
    });
    made?.ok_or_else(|| errors::data("the evaluation was taken twice"))
}

/// Whether Ctrl-C ends an evaluation of one row that may take long.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Watch {
    /// It does, at the cost of a thread for the evaluation.
    Signals,
    /// What the session says ends it, and nothing else.
    Session,
}
