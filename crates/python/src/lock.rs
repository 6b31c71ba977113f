//! The interpreter's lock, given away while models run and taken again. A thread that takes it while the interpreter ends is ended in its place by
//! Python, without its destructors, and a process with frames of Rust on that stack is aborted. So before the interpreter ends, threads leave this
//! package, and those that come back to it wait for the end of the process.

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

/// The thread that ends the interpreter, once one does. It may use models until the end.
static ENDING: OnceLock<ThreadId> = OnceLock::new();

/// How many threads are in this package and have the lock, or are about to take it.
static INSIDE: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// True while this thread is one of them.
    static IS_INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// How often the thread that ends the interpreter looks whether others have left, a millisecond apart. A function of Python that a model calls may
/// take long, and a process that was forked has counted threads that it has not.
const LOOKS: usize = 1000;

/// Registers what has to be done before the interpreter ends.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let end = wrap_pyfunction!(end, module)?;
    module.py().import("atexit")?.call_method1("register", (end,))?;
    Ok(())
}

/// From now on no other thread comes into the package; those that are in it leave first.
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

/// A thread in this package that has the lock, or is about to take it.
pub(crate) struct Inside(());

impl Inside {
    /// None if the interpreter ends, and another thread ends it.
    fn begin() -> Option<Inside> {
        INSIDE.fetch_add(1, Ordering::SeqCst);
        IS_INSIDE.set(true);
        let inside = Inside(());
        // Either the thread that ends the interpreter sees the count, or this one sees that it ends.
        fence(Ordering::SeqCst);
        let is_late = ENDING.get().is_some_and(|ending| *ending != thread::current().id());
        (!is_late).then_some(inside)
    }
}

impl Drop for Inside {
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

/// Counts this thread as inside until the result is dropped. None if an outer call has counted it already.
pub(crate) fn enter(py: Python<'_>) -> Option<Inside> {
    if IS_INSIDE.get() {
        return None;
    }
    let inside = Inside::begin();
    if inside.is_none() {
        py.detach(|| wait());
    }
    inside
}

/// Runs what Python calls, counted as inside. A panic, of this package or of another one in Rust that it calls, is an exception of this package:
/// `PanicException` is not an `Exception`, and ends the program.
pub(crate) fn entered<T>(py: Python<'_>, run: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    let _inside = enter(py);
    let made = catch_unwind(AssertUnwindSafe(|| run().map_err(|error| errors::without_panics(py, error))));
    made.unwrap_or_else(|panic| {
        let raised = match words_of(&*panic) {
            // Of pyo3, where Python has no memory for an object: a number, a string, a list.
            "PyObject pointer is null" => PyMemoryError::new_err("there is no memory for an object of Python"),
            words => errors::defect(py, words),
        };
        // What a panic carries may panic when it is dropped.
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

/// Runs code without the lock.
pub(crate) fn released<T: Send>(py: Python<'_>, run: impl FnOnce() -> T + Send) -> T {
    let was_inside = IS_INSIDE.get();
    if was_inside {
        drop(Inside(()));
    }
    let made = py.detach(|| {
        let _back = Back;
        run()
    });
    if !was_inside {
        drop(Inside(()));
    }
    made
}

/// Counts this thread as inside again when it is dropped, after a panic too.
struct Back;

impl Drop for Back {
    fn drop(&mut self) {
        std::mem::forget(Inside::begin().unwrap_or_else(|| wait()));
    }
}

/// Runs code with the lock, in a thread that has given it away or never had it, or has it.
pub(crate) fn taken<T>(run: impl FnOnce(Python<'_>) -> T) -> T {
    if IS_INSIDE.get() {
        return Python::attach(run);
    }
    let inside = Inside::begin().unwrap_or_else(|| wait());
    Python::attach(|py| {
        let made = run(py);
        drop(inside);
        made
    })
}
