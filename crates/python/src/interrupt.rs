//! Evaluations that Ctrl-C ends. Python runs handlers of signals in its main thread and only between its own instructions, so long evaluations
//! run in another thread, while this one asks for signals.

use cembra::Cancellation;
use pyo3::prelude::*;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// The row count from which an evaluation gets a thread of its own. Starting the thread would take as long as evaluating fewer rows.
const LONG_ROWS: usize = 1 << 17;

/// How long a handler waits at most until it runs.
const PATIENCE: Duration = Duration::from_millis(20);

/// The token that cancels an evaluation, if the row count is that of a long one.
pub(crate) fn token(rows: usize) -> Option<Cancellation> {
    (rows >= LONG_ROWS).then(Cancellation::new)
}

/// Evaluates rows without the interpreter's lock. If there is a token and a handler of a signal raises, the token is cancelled, and the exception is
/// the error.
pub(crate) fn detached<T: Send>(
    py: Python<'_>,
    token: Option<&Cancellation>,
    evaluate: impl FnOnce() -> T + Send,
) -> PyResult<T> {
    let Some(token) = token else { return Ok(py.detach(evaluate)) };
    py.detach(|| {
        std::thread::scope(|scope| {
            let (done, wait) = channel();
            let worker = scope.spawn(move || {
                let made = evaluate();
                // Sending fails only if the receiver is dropped, and then no one waits.
                let _nobody = done.send(());
                made
            });
            let mut raised = Ok(());
            while wait.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                if raised.is_ok() {
                    raised = Python::attach(|py| py.check_signals());
                    if raised.is_err() {
                        token.cancel();
                    }
                }
            }
            let made = worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            raised.map(|()| made)
        })
    })
}
