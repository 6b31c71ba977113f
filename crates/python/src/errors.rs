//! Conversion of the library's errors to Python exceptions. An exception has the details of the error as attributes: its code, its place in the
//! model's text, and the row. Its `str()` is the rendered message with an excerpt of the text.

use cembra::errors::{Code, Diagnostic, Source, Span};
use cembra::{Error, FaultKind, Model};
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyOSError};
use pyo3::prelude::*;
use pyo3::types::PyType;
use std::path::Path;

create_exception!(
    cembra,
    CembraError,
    PyException,
    "The base class of all errors of cembra. It is raised itself only for a defect of the library."
);
create_exception!(
    cembra,
    TextError,
    CembraError,
    "Raised when the text of a model breaks the rules of the language, names something that does not exist, or cannot be compiled."
);
create_exception!(
    cembra,
    TypesError,
    CembraError,
    "Raised when the types, shapes or labels of operands do not match, or when an input or output has no type."
);
create_exception!(
    cembra,
    DataError,
    CembraError,
    "Raised when a value or column that is passed to a model does not fit its inputs, or when another argument of the call is not valid."
);
create_exception!(
    cembra,
    EvaluationError,
    CembraError,
    "Raised when an evaluation fails, is cancelled or exceeds its time limit, or when a test of the model fails."
);
create_exception!(cembra, LimitError, CembraError, "Raised when a model or an evaluation exceeds one of its limits.");

/// Adds the exception classes of the package to the Python module `module`, under their public names.
pub(crate) fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    let add = |name, class: Bound<'_, PyType>| {
        class.setattr("__name__", name)?;
        // Pickles find the class by this name.
        class.setattr("__qualname__", name)?;
        module.add(name, class)
    };
    add("Error", py.get_type::<CembraError>())?;
    add("TextError", py.get_type::<TextError>())?;
    add("TypesError", py.get_type::<TypesError>())?;
    add("DataError", py.get_type::<DataError>())?;
    add("EvaluationError", py.get_type::<EvaluationError>())?;
    add("LimitError", py.get_type::<LimitError>())
}

/// The exception class for an error, by its fault kind and code.
fn class<'py>(py: Python<'py>, error: &Error) -> Bound<'py, PyType> {
    match (error.fault_kind(), error.code()) {
        (Some(FaultKind::ArenaLimit | FaultKind::IterationLimit | FaultKind::WorkLimit), _) | (None, "limit") => {
            py.get_type::<LimitError>()
        }
        (Some(_), _) | (None, "evaluation" | "failed-test") => py.get_type::<EvaluationError>(),
        (None, "values" | "promise" | "binding" | "input-type") => py.get_type::<DataError>(),
        (
            None,
            "type-mismatch" | "missing-input-type" | "untyped-output" | "labels" | "shape" | "derivative" | "arrays"
            | "tensors",
        ) => py.get_type::<TypesError>(),
        _ => py.get_type::<TextError>(),
    }
}

/// The Python exception for `error`, with an excerpt of `source`.
pub(crate) fn of_source<'s>(error: Error, source: impl Into<Source<'s>>) -> PyErr {
    let source = source.into();
    let span = error.span().map(|span| source.place(span).characters());
    let rendered = error.render(source);
    Python::attach(|py| {
        made(py, &class(py, &error), &error.message(), error.code(), &rendered, |made| {
            made.setattr("span", span)?;
            made.setattr("row", error.row())?;
            made.setattr("element", error.element())?;
            made.setattr("operator", error.operator())
        })
    })
}

/// The Python exception for an error in the model text `text`. `name` is the name of the text's file, for the excerpt.
pub(crate) fn of_text(error: Error, text: &str, name: Option<&str>) -> PyErr {
    match name {
        Some(name) => of_source(error, Source::new(name, text)),
        None => of_source(error, text),
    }
}

/// Makes a `DataError` exception with the text `message`: a value that the caller passed does not fit.
pub(crate) fn data(message: impl Into<String>) -> PyErr {
    let message = message.into();
    Python::attach(|py| made(py, &py.get_type::<DataError>(), &message, "values", &message, |_| Ok(())))
}

/// Makes a `DataError` exception with the text `message`, for the Python code of this package.
#[pyfunction]
pub(crate) fn _data_error(message: String) -> Py<PyAny> {
    let error = data(message);
    Python::attach(|py| error.into_value(py).into_any())
}

/// Makes a `LimitError` exception with the text `message`: a value that the caller passed exceeds a limit.
pub(crate) fn limit(message: impl Into<String>) -> PyErr {
    let message = message.into();
    Python::attach(|py| made(py, &py.get_type::<LimitError>(), &message, "limit", &message, |_| Ok(())))
}

/// Makes the `LimitError` exception for outputs that take more bytes as Python objects than the limit `array_bytes` allows.
#[cold]
pub(crate) fn too_large() -> PyErr {
    limit(
        "the outputs, as Python objects, take more bytes than the limit `array_bytes`: compile the model with limits={\"array_bytes\": ..}, or evaluate fewer elements",
    )
}

/// The Python exception for a panic, which is a defect of the library or of a Rust package that it called. `words` is the panic's message.
pub(crate) fn defect(py: Python<'_>, words: &str) -> PyErr {
    let message = format!("cembra has a defect, so there is no result: {words}");
    made(py, &py.get_type::<CembraError>(), &message, "internal", &message, |_| Ok(()))
}

/// Replaces a `PanicException` by an exception of this package whose cause is the original. Any other exception is returned unchanged.
pub(crate) fn without_panics(py: Python<'_>, error: PyErr) -> PyErr {
    if error.is_instance_of::<PyException>(py)
        || error.get_type(py).name().map_or(true, |name| name != "PanicException")
    {
        return error;
    }
    let made = defect(py, &error.value(py).to_string());
    made.set_cause(py, Some(error));
    made
}

/// The exception for a file or folder that cannot be read: an `OSError` with `filename` and `errno`, as Python's own functions raise it.
pub(crate) fn of_file(py: Python<'_>, error: std::io::Error, path: &Path) -> PyErr {
    /// `EISDIR` and `EINVAL`: the error numbers for a folder, and for a file that is not a text.
    const FOLDER: i32 = 21;
    const INVALID: i32 = 22;
    let name = path.as_os_str().to_owned();
    match error.raw_os_error().or_else(|| path.is_dir().then_some(FOLDER)) {
        Some(code) => {
            let said = py.import("os").and_then(|os| os.call_method1("strerror", (code,))).map(Bound::unbind);
            said.map_or_else(|error| error, |said| PyOSError::new_err((code, said, name)))
        }
        None => PyOSError::new_err((INVALID, error.to_string(), name)),
    }
}

/// Makes a `TypesError` exception with the text `message`: an input has no type.
pub(crate) fn types(message: impl Into<String>) -> PyErr {
    let message = message.into();
    Python::attach(|py| made(py, &py.get_type::<TypesError>(), &message, "missing-input-type", &message, |_| Ok(())))
}

/// Makes the Python exception for a call of a user's operator over columns whose Python function raised `raised`. The new exception has `raised` as
/// its cause. If `raised` asks to stop, such as `KeyboardInterrupt`, it is returned unchanged. `span` is the call's place in the text of `model`.
pub(crate) fn of_operator(py: Python<'_>, operator: &str, span: Option<Span>, raised: PyErr, model: &Model) -> PyErr {
    if !raised.is_instance_of::<PyException>(py) {
        return raised;
    }
    let message = format!("{operator}: {}", said_of(py, &raised));
    let error = of_source(Diagnostic::new(Code::Evaluation, message).at(span).into(), model);
    // An exception takes any attribute, so this cannot fail.
    let _told = error.value(py).setattr("operator", operator).and_then(|()| error.value(py).setattr("code", "invalid"));
    error.set_cause(py, Some(raised));
    error
}

/// The error message for a Python function that is not called, because the evaluation has ended: another call raised an exception, or the
/// evaluation's token was cancelled.
pub(crate) const RAISED: &str = "the Python function raised an exception";

/// The error message for an evaluation in which a Python function raised the exception `raised`: its class, and the first line of its text.
pub(crate) fn said_of(py: Python<'_>, raised: &PyErr) -> String {
    /// The most characters of the exception's text that the message repeats.
    const MOST: usize = 200;
    let class = raised.get_type(py).name().map_or_else(|_| "an exception".to_owned(), |name| name.to_string());
    // Turning the value into a text runs code of Python, which may raise.
    let text = raised.value(py).str().map(|text| text.to_string()).unwrap_or_default();
    let first = text.lines().next().unwrap_or_default();
    let shown: String = first.chars().take(MOST).collect();
    match shown.is_empty() {
        true => format!("the Python function raised {class}"),
        false => format!("the Python function raised {class}: {shown}"),
    }
}

/// Makes an exception of `class`, whose `str()` is `rendered`. Its attributes `message` and `code` are set here; `more` sets further ones. Attributes
/// that are not set are `None`.
fn made<'py>(
    py: Python<'py>,
    class: &Bound<'py, PyType>,
    message: &str,
    code: &str,
    rendered: &str,
    more: impl FnOnce(&Bound<'py, PyAny>) -> PyResult<()>,
) -> PyErr {
    let whole = || {
        let made = class.call1((rendered,))?;
        made.setattr("message", message)?;
        made.setattr("code", code)?;
        for name in ["span", "row", "element", "operator", "filename", "errno"] {
            made.setattr(name, py.None())?;
        }
        more(&made)?;
        Ok(made)
    };
    whole().map_or_else(|error: PyErr| error, PyErr::from_value)
}
