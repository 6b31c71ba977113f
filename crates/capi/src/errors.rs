//! Errors as C sees them, and the functions that stop errors and panics at the C boundary.

use crate::failure::Failure;
use crate::layouts::{Fault, Problem};
use crate::memory::Text;
use compiler::errors::{Diagnostic, Renderer, Source, Warnings};
use compiler::program::Sources;
use compiler::{FaultKind, Model};
use std::any::Any;
use std::borrow::Cow;
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// `cembra_error`: an error with its code, its message and its problems. All texts of the error are made when the failure happens, so the error has
/// no pointers to a program or session.
#[derive(Debug)]
pub struct Error {
    code: Cow<'static, str>,
    message: String,
    rendered: String,
    operator: Option<String>,
    row: Option<usize>,
    element: Option<usize>,
    fault: Option<FaultKind>,
    /// The problems found. The first is the main one, which `code` and `message` repeat.
    problems: Vec<ErrorProblem>,
}

#[derive(Debug)]
struct ErrorProblem {
    code: Cow<'static, str>,
    message: String,
    /// The place of the problem in the text: its start and end in bytes, and its line and column counted from 1. `None` if the problem has no place
    /// in a text.
    place: Option<[u32; 4]>,
}

/// The source text that the places of an error or a warning refer to. It is used for line numbers and for excerpts in messages.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Origin<'o> {
    /// The error's places refer to a text without a name.
    Text(&'o str),
    /// The error's places refer to a text, or to a file that this text uses.
    Sources(&'o Sources),
    /// The error's places refer to the text of a compiled model.
    Model(&'o Model),
}

impl Origin<'_> {
    fn source(&self) -> Source<'_> {
        match self {
            Origin::Text(text) => Source::from(*text),
            Origin::Sources(sources) => Source::from(*sources),
            Origin::Model(model) => Source::from(*model),
        }
    }

    /// Converts diagnostics to problems with their places in the source.
    fn problems(&self, found: &[Diagnostic]) -> Vec<ErrorProblem> {
        let alone;
        let sources = match self {
            Origin::Text(text) => {
                alone = Sources::alone("", *text);
                Some(&alone)
            }
            Origin::Sources(sources) => Some(*sources),
            Origin::Model(model) => model.sources(),
        };
        let problem = |one: &Diagnostic| {
            let place = one.span().zip(sources).map(|(span, sources)| {
                let (line, column) = sources.place(span).line_and_column();
                let short = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
                [span.start, span.end, short(line), short(column)]
            });
            ErrorProblem { code: one.code().as_str().into(), message: one.message().to_owned(), place }
        };
        found.iter().map(problem).collect()
    }
}

impl Error {
    /// Converts an error of the library to an error of the C interface, with places in `origin`.
    #[cold]
    pub(crate) fn of(error: &compiler::Error, origin: Origin<'_>) -> Box<Error> {
        let (code, message) = (Cow::Borrowed(error.code()), error.message());
        let mut problems = origin.problems(&error.diagnostics());
        match problems.first_mut() {
            Some(first) => (first.code, first.message) = (code.clone(), message.clone()),
            None => problems.push(ErrorProblem { code: code.clone(), message: message.clone(), place: None }),
        }
        Box::new(Error {
            code,
            message,
            rendered: error.render(origin.source()),
            operator: error.operator().map(ToOwned::to_owned),
            row: error.row(),
            element: error.element(),
            fault: error.fault_kind(),
            problems,
        })
    }

    /// Returns an error object that lists `warnings`: parts of the text that are valid but probably not meant. `None` if there are no warnings.
    pub(crate) fn of_warnings(warnings: &Warnings, origin: Origin<'_>) -> Option<Box<Error>> {
        let first = warnings.as_slice().first()?;
        let rendered = Renderer::plain().warnings(warnings.as_slice(), &[], origin.source());
        let problems = origin.problems(warnings.as_slice());
        let made = Error::new(first.code().as_str().into(), first.message().to_owned(), rendered, problems);
        Some(Box::new(made))
    }

    /// Returns an error without a place in a text.
    #[cold]
    fn plain(code: &'static str, message: String) -> Box<Error> {
        let problems = vec![ErrorProblem { code: code.into(), message: message.clone(), place: None }];
        let rendered = format!("error[{code}]: {message}");
        Box::new(Error::new(code.into(), message, rendered, problems))
    }

    fn new(code: Cow<'static, str>, message: String, rendered: String, problems: Vec<ErrorProblem>) -> Error {
        Error { code, message, rendered, operator: None, row: None, element: None, fault: None, problems }
    }

    /// Converts `failure` to an error of the C interface. `origin` is the source text that the failure's places refer to.
    #[cold]
    pub(crate) fn of_failure(failure: Failure, origin: Origin<'_>) -> Box<Error> {
        match failure {
            Failure::Model(error) => Error::of(&error, origin),
            Failure::Argument(message) => Error::plain("argument", message),
            Failure::Values(message) => Error::plain("values", message),
        }
    }

    /// Returns an error that reports a defect (bug) of the library, described by `what`.
    #[cold]
    pub(crate) fn internal(what: &str) -> Box<Error> {
        Error::plain("internal", format!("cembra has a defect, so there is no result: {what}"))
    }

    fn problem(&self, index: usize) -> Option<Problem<'_>> {
        let ErrorProblem { code, message, place } = self.problems.get(index)?;
        let [start, end, line, column] = place.unwrap_or_default();
        Some(Problem { code: Text::new(code), message: Text::new(message), start, end, line, column })
    }
}

impl From<Failure> for Box<Error> {
    /// Converts a failure without a place in a text.
    fn from(failure: Failure) -> Self {
        Error::of_failure(failure, Origin::Text(""))
    }
}

/// Returns the message of a panic.
fn words_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("a panic without words")
}

/// Runs `run`, the body of a function of the C interface. Returns its error to C, or null for success. A panic becomes an error with the code
/// `internal`. Every function of the interface that can fail runs its body through this function.
pub fn border(run: impl FnOnce() -> Result<(), Box<Error>>) -> Option<Box<Error>> {
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(done) => done.err(),
        Err(panic) => {
            let error = Error::internal(words_of(&*panic));
            drop_panic(panic);
            Some(error)
        }
    }
}

/// Runs `run`, the body of a function that has no error to return to C. Returns `instead` if it panics.
pub(crate) fn catch_panics<T>(instead: T, run: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
        drop_panic(panic);
        instead
    })
}

/// Drops the payload of a panic. If its destructor panics too, the second payload is leaked.
fn drop_panic(panic: Box<dyn Any + Send>) {
    if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(panic))) {
        std::mem::forget(again);
    }
}

/// Writes `value` to `place`, unless `value` or `place` is `None`. Returns true if `value` was written.
pub(crate) fn write_if_some<T>(value: Option<T>, place: Option<&mut MaybeUninit<T>>) -> bool {
    value.zip(place).map(|(value, place)| place.write(value)).is_some()
}

/// Frees an error object. Null is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn cembra_error_free(error: Option<Box<Error>>) {
    catch_panics((), || drop(error));
}

/// Returns the code of an error; empty for null.
#[unsafe(no_mangle)]
pub extern "C" fn cembra_error_code(error: Option<&Error>) -> Text<'_> {
    Text::new(error.map_or("", |error| &error.code))
}

/// Returns the message of an error; empty for null.
#[unsafe(no_mangle)]
pub extern "C" fn cembra_error_message(error: Option<&Error>) -> Text<'_> {
    Text::new(error.map_or("", |error| &error.message))
}

/// Returns the error as text for people to read, with an excerpt of the source; empty for null.
#[unsafe(no_mangle)]
pub extern "C" fn cembra_error_rendered(error: Option<&Error>) -> Text<'_> {
    Text::new(error.map_or("", |error| &error.rendered))
}

/// Returns the name of the operator that failed; empty if the error names none.
#[unsafe(no_mangle)]
pub extern "C" fn cembra_error_operator(error: Option<&Error>) -> Text<'_> {
    Text::new(error.and_then(|error| error.operator.as_deref()).unwrap_or(""))
}

/// Returns the number of problems that an error lists; 0 for null.
#[unsafe(no_mangle)]
pub extern "C" fn cembra_error_problem_count(error: Option<&Error>) -> usize {
    error.map_or(0, |error| error.problems.len())
}

/// Writes to `problem` the problem number `index` (counted from 0) of an error. Returns false and writes nothing if there is no such problem.
#[unsafe(no_mangle)]
pub extern "C" fn cembra_error_problem<'e>(
    error: Option<&'e Error>,
    index: usize,
    problem: Option<&mut MaybeUninit<Problem<'e>>>,
) -> bool {
    write_if_some(error.and_then(|error| error.problem(index)), problem)
}

/// Writes to `row` the index of the row that failed. Returns false and writes nothing if the error names no row.
#[unsafe(no_mangle)]
pub extern "C" fn cembra_error_row(error: Option<&Error>, row: Option<&mut MaybeUninit<usize>>) -> bool {
    write_if_some(error.and_then(|error| error.row), row)
}

/// Writes to `element` the index of the array element that failed. Returns false and writes nothing if the error names no element.
#[unsafe(no_mangle)]
pub extern "C" fn cembra_error_element(error: Option<&Error>, element: Option<&mut MaybeUninit<usize>>) -> bool {
    write_if_some(error.and_then(|error| error.element), element)
}

/// Writes to `fault` the fault that ended an evaluation. Its two `operands` are always 0. Returns false and writes nothing if the error is not a
/// fault.
#[unsafe(no_mangle)]
pub extern "C" fn cembra_error_fault<'e>(error: Option<&'e Error>, fault: Option<&mut MaybeUninit<Fault<'e>>>) -> bool {
    let found = error.and_then(|error| {
        let kind = error.fault? as u32;
        let [start, end, ..] = error.problems.first().and_then(|problem| problem.place).unwrap_or_default();
        let operator_name = Text::new(error.operator.as_deref().unwrap_or(""));
        Some(Fault { kind, start, end, unused: 0, operands: [0; 2], operator_name, message: Text::new(&error.message) })
    });
    write_if_some(found, fault)
}
