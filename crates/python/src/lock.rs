//! Releases Python's global interpreter lock (GIL) while models run, and acquires it again afterwards. If a thread acquires the GIL while the
//! interpreter shuts down, Python ends the thread at once without running destructors, which aborts a process with Rust frames on that stack. So
//! before the shutdown all threads leave this package, and threads that return to it wait for the end of the process.

use crate::errors;
use pyo3::exceptions::PyMemoryError;
use pyo3::prelude::*;
use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering, fence};
use std::thread::{self, ThreadId};
use std::time::Duration;

/// The thread that shuts the interpreter down, once the shutdown has begun. It may use models until the end.
static ENDING: OnceLock<ThreadId> = OnceLock::new();

/// The number of threads that run code of this package and have the GIL, or are about to acquire it.
static INSIDE: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// True while this thread is counted in `INSIDE`.
    static IS_INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// The most times, a millisecond apart, that the shutdown checks whether other threads have left. It must not wait without end: a Python function
/// that a model calls may take long, and a forked process has counted threads that it does not have.
const LOOKS: usize = 1000;

/// Registers the function `end` with Python, which calls it before the interpreter shuts down.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let end = wrap_pyfunction!(end, module)?;
    module.py().import("atexit")?.call_method1("register", (end,))?;
    Ok(())
}

/// Keeps other threads out of this package from now on, and waits until those in it have left, for at most `LOOKS` milliseconds.
#[pyfunction]
fn end(py: Python<'_>) {
    if ENDING.set(thread::current().id()).is_err() {
        return;
    }
    fence(Ordering::SeqCst);
    py.detach(|| {
        for _ in 0..LOOKS {
            if INSIDE.load(Ordering::SeqCst) == 0 {
                break;
            }
            thread::sleep(Duration::from_millis(1));
        }
    });
}

/// A guard: as long as the value exists, `INSIDE` counts this thread as inside the package.
pub(crate) struct InsideGuard(());

impl InsideGuard {
    /// Counts this thread as inside. `None` if another thread is shutting the interpreter down.
    fn begin() -> Option<InsideGuard> {
        INSIDE.fetch_add(1, Ordering::SeqCst);
        IS_INSIDE.set(true);
        let inside = InsideGuard(());
        // Either the thread that shuts the interpreter down sees the count, or this thread sees the shutdown.
        fence(Ordering::SeqCst);
        let is_late = ENDING.get().is_some_and(|ending| *ending != thread::current().id());
        (!is_late).then_some(inside)
    }
}

impl Drop for InsideGuard {
    fn drop(&mut self) {
        IS_INSIDE.set(false);
        INSIDE.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Waits for the end of the process.
fn wait() -> ! {
    loop {
        thread::park();
    }
}

/// Counts this thread as inside the package until the result is dropped. `None` if an outer call has counted the thread already. Waits for the end
/// of the process if another thread is shutting the interpreter down.
pub(crate) fn enter(py: Python<'_>) -> Option<InsideGuard> {
    if IS_INSIDE.get() {
        return None;
    }
    let inside = InsideGuard::begin();
    if inside.is_none() {
        py.detach(|| wait());
    }
    inside
}

/// Runs `run`, the body of a function that Python calls, and counts this thread as inside the package. A panic, of this package or of another Rust
/// package that it calls, becomes an exception of this package, because pyo3's `PanicException` is not an `Exception` and would end the program.
pub(crate) fn entered<T>(py: Python<'_>, run: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    let _inside = enter(py);
    let made = catch_unwind(AssertUnwindSafe(|| run().map_err(|error| errors::without_panics(py, error))));
    made.unwrap_or_else(|panic| {
        let raised = match words_of(&*panic) {
            // The message of pyo3 if Python has no memory for an object: a number, a string, a list.
            "PyObject pointer is null" => PyMemoryError::new_err("there is no memory for a Python object"),
            words => errors::defect(py, words),
        };
        // The payload of a panic may panic itself when it is dropped.
        if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(panic))) {
            std::mem::forget(again);
        }
        Err(raised)
    })
}

/// The message of a panic.
fn words_of(panic: &(dyn Any + Send)) -> &str {
    let words = panic.downcast_ref::<&str>().copied();
    words.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("a panic without words")
}

/// Releases Python's global interpreter lock (GIL) while `run` runs.
pub(crate) fn released<T: Send>(py: Python<'_>, run: impl FnOnce() -> T + Send) -> T {
    let was_inside = IS_INSIDE.get();
    if was_inside {
        drop(InsideGuard(()));
    }
    let made = py.detach(|| {
        let _back = ReentryGuard;
        run()
    });
    if !was_inside {
        drop(InsideGuard(()));
    }
    made
}

/// A guard that counts this thread as inside the package again when it is dropped, also after a panic.
struct ReentryGuard;

impl Drop for ReentryGuard {
    fn drop(&mut self) {
        std::mem::forget(InsideGuard::begin().unwrap_or_else(|| wait()));
    }
}

/// Runs `run` with Python's global interpreter lock (GIL), whether this thread has the GIL, has released it, or never had it.
pub(crate) fn taken<T>(run: impl FnOnce(Python<'_>) -> T) -> T {
    if IS_INSIDE.get() {
        return Python::attach(run);
    }
    let inside = InsideGuard::begin().unwrap_or_else(|| wait());
    Python::attach(|py| {
        let made = run(py);
        drop(inside);
        made
    })
}
