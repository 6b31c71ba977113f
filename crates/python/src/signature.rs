//! A model that is compiled for given types of its inputs. These types are a signature of the model; each call searches for the signature of its
//! arguments.

use crate::columns::{Column, RowsCost, is_column};
use crate::errors;
use crate::interrupt::{PATIENCE, compiled, detached, is_long_row, token_of};
use crate::lock::released;
use crate::packages::Imports;
use crate::phases::Phases;
use crate::scalars::{is_absent_in, scalar_of, type_name};
use crate::terms::CallTerms;
use crate::user_operators;
use cembra::operators::Registry;
use cembra::program::Graph;
use cembra::{Executor, FaultKind, Field, QType, RunOptions, Session, Value};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt, PyString, PyTuple};
use std::sync::{Mutex, OnceLock, PoisonError, TryLockError};
use std::time::Instant;

/// A model that is compiled for inputs of given types: one signature of the model.
pub(crate) struct Compiled {
    /// The type of each input in the model's text; `None` for an input that is left out in calls with this signature.
    pub(crate) types: Vec<Option<QType>>,
    pub(crate) executor: Executor,
    /// The position of each of the executor's inputs among the inputs in the model's text.
    pub(crate) places: Vec<usize>,
    /// The positions of those inputs in the model's text that the executor does not read.
    pub(crate) unread: Vec<usize>,
    /// The position of this signature in the model's list of signatures.
    pub(crate) place: usize,
    /// The memory that an evaluation uses if it is free. Another evaluation at the same time does not wait, but takes memory from `idle`.
    first: Mutex<Option<Memory>>,
    /// The memory of evaluations that found `first` in use, for later ones: at most as many as ran at the same time.
    idle: Mutex<Vec<Memory>>,
    /// The model compiled for many rows; empty until many rows are first evaluated.
    pub(crate) phases: OnceLock<Phases>,
    /// The Python class of the named tuple that has the outputs; `None` if there is only one output.
    pub(crate) class: Option<Py<PyAny>>,
    /// True if all inputs and outputs are scalars and the model has no loop. Then an evaluation is over before another Python thread could begin.
    pub(crate) is_short: bool,
    pub(crate) pace: RowsCost,
    /// True if an output is or contains an array, whose elements become Python objects.
    pub(crate) makes_arrays: bool,
    /// True if the model has a loop, so that an evaluation may take long for any inputs.
    pub(crate) has_loops: bool,
    /// True if an input of the model is a tensor.
    pub(crate) has_tensors: bool,
}

/// The memory for evaluating one row of a compiled model.
#[derive(Default)]
pub(crate) struct Memory {
    /// The session; `None` until a row is first evaluated, because before that the model may have no code for one row.
    session: Option<Session>,
    /// The values of the model's inputs for the row.
    pub(crate) row: Vec<Value>,
    /// The values of the model's outputs for the row.
    pub(crate) made: Vec<Value>,
    /// The time limit that is set in the session's options; `None` if the limit must be set again before the next evaluation.
    end: Option<TimeLimit>,
    /// True if the last evaluation in this memory took at least `PATIENCE`, or if there was no evaluation yet.
    was_long: bool,
}

/// The time limit of a session's evaluations: the caller's, or a shorter one that finds evaluations that take long, which are then repeated in
/// another thread.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TimeLimit {
    /// The evaluation ends at the caller's time limit.
    Caller,
    /// The evaluation ends at the caller's time limit, or `PATIENCE` after it began, whichever is first.
    Brief,
}

impl Memory {
    /// Returns the session of this memory, and makes it if there is none. The first session of a model compiles the code for one row.
    pub(crate) fn session(&mut self, py: Python<'_>, compiled: &Compiled) -> PyResult<&mut Session> {
        if self.session.is_none() {
            self.session = Some(compiled.session(py)?);
            (self.end, self.was_long) = (None, true);
        }
        Ok(self.session.get_or_insert_with(|| compiled.executor.session()))
    }

    /// The bytes of memory that the session in this memory holds.
    pub(crate) fn session_bytes(&self) -> usize {
        self.session.as_ref().map_or(0, Session::memory_bytes)
    }

    /// Evaluates the row in `row` and stores the outputs in `made`. The outer error is the exception of a signal handler; the inner error is that of
    /// the evaluation.
    pub(crate) fn evaluate(
        &mut self,
        py: Python<'_>,
        compiled: &Compiled,
        terms: &CallTerms,
    ) -> PyResult<Result<(), cembra::Error>> {
        self.session(py, compiled)?;
        let Memory { session, row, made, end, was_long } = self;
        let session = session.get_or_insert_with(|| compiled.executor.session());
        let mut set = |session: &mut Session, wanted| {
            if *end != Some(wanted) || !terms.stay {
                let brief = (wanted == TimeLimit::Brief).then_some(PATIENCE);
                session.set_run_options(&brief.into_iter().fold(terms.options.clone(), RunOptions::time_limit));
                *end = Some(wanted);
            }
        };
        let is_long = is_long_row(row);
        if compiled.is_short && !is_long {
            set(session, TimeLimit::Caller);
            return Ok(session.evaluate_into(row, made));
        }
        if compiled.pace.calls_python && !compiled.has_loops {
            // Python functions check for signals, and must be called once, so the evaluation does not move to another thread.
            set(session, TimeLimit::Caller);
            return Ok(released(py, || session.evaluate_into(row, made)));
        }
        if !is_long && !*was_long && !compiled.pace.calls_python {
            set(session, TimeLimit::Brief);
            let evaluated = released(py, || session.evaluate_into(row, made));
            let was_ended = evaluated.as_ref().is_err_and(|error| error.fault_kind() == Some(FaultKind::Deadline));
            if !was_ended || terms.options.token().is_some_and(|token| token.is_cancelled()) {
                return Ok(evaluated);
            }
        }
        let token = token_of(&terms.options);
        session.set_run_options(&terms.options.clone().cancellation(token.clone()));
        *end = None;
        let begun = Instant::now();
        let evaluated = detached(py, &token, || session.evaluate_into(row, made))?;
        *was_long = begun.elapsed() >= PATIENCE;
        Ok(evaluated)
    }
}

/// Returns true if a graph has a loop.
fn has_loops(graph: &Graph) -> bool {
    let is_loop = |name: &str| name == "core.while_loop" || name.starts_with("seq.");
    Registry::standard().iter().any(|(_, def)| is_loop(def.name) && graph.find_name(def.name).is_some())
}

/// The largest product of graph nodes and rows of numbers that is evaluated while this thread holds the interpreter's lock. Such an evaluation takes
/// microseconds; releasing the lock and taking it again takes some hundred nanoseconds.
const BRIEF_NODES: usize = 1 << 13;

/// The most rows with texts that are evaluated while this thread holds the interpreter's lock, for any graph: one strip (a block of rows), which one
/// thread evaluates.
const BRIEF_TEXTS: usize = 64;

/// The most rows of a model of scalars without loops that are evaluated while this thread holds the interpreter's lock. `nodes` is the number of the
/// graph's nodes.
fn brief_rows(nodes: usize, are_numbers: bool) -> usize {
    let numbers = BRIEF_NODES / nodes.max(1);
    if are_numbers { numbers } else { numbers.min(BRIEF_TEXTS) }
}

/// Returns true if a value of the type may have an array.
const fn may_have_arrays(qtype: &QType) -> bool {
    matches!(qtype, QType::Tuple(_) | QType::Array(..))
}

impl Compiled {
    /// Makes the record of the signature `types` of `model`. `executor` evaluates the model for inputs of these types.
    pub(crate) fn of(
        py: Python<'_>,
        model: &cembra::Model,
        types: Vec<Option<QType>>,
        executor: Executor,
    ) -> PyResult<Compiled> {
        let place = |field: &Field| model.program().inputs.iter().position(|input| input.name == field.name);
        let places: Vec<usize> = executor.inputs().iter().filter_map(place).collect();
        let unread = (0..types.len()).filter(|place| !places.contains(place)).collect();
        let class = match executor.outputs() {
            [_] => None,
            outputs => {
                let names: Vec<&str> = outputs.iter().map(|output| &*output.name).collect();
                let names = PyTuple::new(py, names)?;
                Some(py.import("cembra.outputs")?.getattr("class_of")?.call1((names,))?.unbind())
            }
        };
        let is_scalar = |field: &Field| field.qtype.scalar().is_some();
        let has_loops = has_loops(&model.program().graph);
        let is_short = !has_loops && executor.inputs().iter().chain(executor.outputs()).all(is_scalar);
        let nodes = executor.step_count().unwrap_or_else(|| model.program().graph.len());
        let is_number = |field: &Field| field.qtype.scalar().is_some_and(|scalar| !scalar.is_string());
        let are_numbers = executor.inputs().iter().chain(executor.outputs()).all(is_number);
        let calls_python = user_operators::are_called(&model.program().graph);
        let brief_rows = if is_short { brief_rows(nodes, are_numbers) } else { 0 };
        let makes_arrays = executor.outputs().iter().any(|output| may_have_arrays(&output.qtype));
        let has_tensors = executor.inputs().iter().any(|field| matches!(field.qtype, QType::Tensor(..)));
        Ok(Compiled {
            types,
            executor,
            places,
            unread,
            place: 0,
            first: Mutex::default(),
            idle: Mutex::default(),
            phases: OnceLock::new(),
            class,
            is_short,
            pace: RowsCost { brief_rows, nodes, are_numbers, calls_python },
            makes_arrays,
            has_loops,
            has_tensors,
        })
    }

    /// Makes a session that evaluates the model. The code for one row is compiled when the first session is made.
    pub(crate) fn session(&self, py: Python<'_>) -> PyResult<Session> {
        compiled(py, || self.executor.compile_session())?;
        Ok(released(py, || self.executor.session()))
    }

    /// Calls `evaluate` with memory that is reused for later calls. The memory includes the lists of input and output values, which a pool of
    /// sessions would allocate anew for each call.
    pub(crate) fn with_memory<A>(&self, evaluate: impl FnOnce(&mut Memory) -> A) -> A {
        let first = match self.first.try_lock() {
            Ok(first) => Some(first),
            // The last evaluation panicked: its memory may be half changed.
            Err(TryLockError::Poisoned(poisoned)) => {
                self.first.clear_poison();
                let mut first = poisoned.into_inner();
                *first = None;
                Some(first)
            }
            // Another thread evaluates, or an operator of Python calls the model that calls it.
            Err(TryLockError::WouldBlock) => None,
        };
        if let Some(mut first) = first {
            return evaluate(first.get_or_insert_default());
        }
        let idle = || self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = idle().pop();
        let mut memory = kept.unwrap_or_default();
        let made = evaluate(&mut memory);
        idle().push(memory);
        made
    }

    /// Prepares a run of many rows so that signals can end it, if its rows may take long: if the model has a loop or calls Python functions. Returns
    /// options with a token, and the run that the token ends. For other models, the options are returned unchanged and the run is `None`. Python
    /// functions check for signals themselves, but only in the main thread.
    pub(crate) fn watched(&self, options: RunOptions) -> (RunOptions, Option<user_operators::RowsRun>) {
        let (has_loops, calls_python) = (self.has_loops, self.pace.calls_python);
        if !has_loops && !calls_python {
            return (options, None);
        }
        let token = token_of(&options);
        let is_long = has_loops || options.thread_count().is_some_and(|threads| threads > 1);
        let run = user_operators::RowsRun::begin(token.clone(), calls_python, is_long);
        (options.cancellation(token), Some(run))
    }

    /// Returns true if arguments of the types `given` fit this signature.
    pub(crate) fn takes(&self, given: &[ArgumentType]) -> bool {
        self.types.iter().zip(given).all(|(qtype, given)| match (qtype, given) {
            (_, ArgumentType::Declared) | (None, ArgumentType::Nothing) => true,
            (Some(qtype), ArgumentType::Missing) => qtype.is_optional(),
            (Some(QType::Optional(scalar)), ArgumentType::Type(QType::Scalar(given))) => scalar == given,
            (Some(qtype), ArgumentType::Type(given)) => qtype == given,
            _ => false,
        })
    }

    /// Returns the outputs of a row as one Python object: the only output, or a named tuple of several.
    pub(crate) fn outputs<'py>(
        &self,
        py: Python<'py>,
        mut all: impl Iterator<Item = PyResult<Bound<'py, PyAny>>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        match &self.class {
            Some(class) => class.bind(py).call1(PyTuple::new(py, all.collect::<PyResult<Vec<_>>>()?)?),
            None => all.next().unwrap_or_else(|| Err(errors::data("the model has no output"))),
        }
    }
}

/// The type that an argument of a call gives to an input that has no declared type.
pub(crate) enum ArgumentType {
    /// The input has a declared type.
    Declared,
    /// The argument is not given.
    Nothing,
    /// The argument is `None` or another missing value, which has no type by itself.
    Missing,
    /// The argument is a value or a column of this type.
    Type(QType),
}

impl ArgumentType {
    /// Finds the type that an argument gives to the input `name`.
    ///
    /// # Errors
    /// If the argument has no type by itself. A list, for example, has none.
    pub(crate) fn of<'py>(
        name: &str,
        argument: Option<&Bound<'py, PyAny>>,
        imports: &Imports<'py>,
    ) -> PyResult<ArgumentType> {
        let Some(object) = argument else { return Ok(ArgumentType::Nothing) };
        if object.is_none() || is_absent_in(object, false) {
            return Ok(ArgumentType::Missing);
        }
        if let Some(scalar) = scalar_of(object) {
            return Ok(ArgumentType::Type(QType::Scalar(scalar)));
        }
        if is_column(object)? {
            return Column::of(name, object, None, imports).map(|(qtype, _)| ArgumentType::Type(qtype));
        }
        let found = type_name(object);
        let hint = format!("declare the type in the text, as in `input {name}: [f64]`, or with `types`");
        Err(errors::types(format!(
            "input `{name}` has no type, because the argument, a {found}, does not give it one: {hint}"
        )))
    }

    /// The type of an input for which the model is compiled; `None` for an input that is not given.
    pub(crate) fn qtype(self, name: &str, declared: Option<&QType>) -> PyResult<Option<QType>> {
        match self {
            ArgumentType::Declared => Ok(declared.cloned()),
            ArgumentType::Nothing => Ok(None),
            ArgumentType::Type(qtype) => Ok(Some(qtype)),
            ArgumentType::Missing => {
                let hint =
                    format!("declare the type, as in `input {name}: f64?`, or give `types={{\"{name}\": \"f64?\"}}`");
                Err(errors::types(format!(
                    "input `{name}` has no type, because the argument None does not give it one: {hint}"
                )))
            }
        }
    }
}

/// Returns true if `object` is certainly a single value, not a column: an exact float, int, string or bool, or `None`. This fast check suffices for
/// most arguments.
pub(crate) fn is_one_value(object: &Bound<'_, PyAny>) -> bool {
    object.is_exact_instance_of::<PyFloat>()
        || object.is_exact_instance_of::<PyInt>()
        || object.is_exact_instance_of::<PyString>()
        || object.is_exact_instance_of::<PyBool>()
        || object.is_none()
}
