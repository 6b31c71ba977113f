//! User-defined operators that are Python functions: functions on scalars, which are called for each row, and functions over columns. Like operators
//! in Rust, they exist until the process ends. Calls of functions over columns are in `phases`.

use crate::errors;
use crate::lock::{entered, taken};
use crate::replay::{self, CallResult};
use crate::scalars;
use cembra::operators::{Registry, UserOperator};
use cembra::program::Graph;
use cembra::{Cancellation, Scalar, ScalarValue};
use pyo3::exceptions::{PyException, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The most names of operators in Python that a process may have, because operators take memory until the process ends.
const MOST_OPERATORS: usize = 256;

/// The operators that were registered: at most `MOST_OPERATORS`.
static KNOWN: Mutex<RegisteredOperators> =
    Mutex::new(RegisteredOperators { registry: None, next: None, count: 0, over_columns: Vec::new() });

/// The registry of operators that the language and Python functions define, and the number of registered functions.
struct RegisteredOperators {
    /// The registry that the last model was parsed with: the operators of the language and of the user. `None` before a model is parsed with
    /// operators of the user.
    registry: Option<&'static Registry>,
    /// The registry for the next model; `None` if no operator was registered since the last model was parsed. A registry that a model was parsed with
    /// is never freed, so operators that are registered in a row share one.
    next: Option<Registry>,
    /// The number of operator names that Python functions have: at most `MOST_OPERATORS`.
    count: usize,
    /// The operators with functions over columns, the newest last.
    over_columns: Vec<Arc<OverColumns>>,
}

impl RegisteredOperators {
    /// Returns the registry that the next model is parsed with.
    fn registry(&mut self) -> &'static Registry {
        if let Some(next) = self.next.take() {
            self.registry = Some(next.leak());
        }
        self.registry.unwrap_or_else(Registry::standard)
    }
}

/// A user-defined operator whose Python function gets the operands of many rows at once.
pub(crate) struct OverColumns {
    pub(crate) name: String,
    /// The Python function: it takes a list of NumPy arrays, and returns the array of results, masked where a result is missing.
    pub(crate) function: Py<PyAny>,
    pub(crate) result: Scalar,
    pub(crate) may_be_missing: bool,
}

/// Locks the registered operators.
fn known() -> MutexGuard<'static, RegisteredOperators> {
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

thread_local! {
    /// The exception that an operator raised in this thread's evaluation; at most one.
    static RAISED: RefCell<Option<PyErr>> = const { RefCell::new(None) };
    /// The evaluation that this thread takes part in.
    static CURRENT: RefCell<EvaluationScope> = const { RefCell::new(EvaluationScope::Any) };
    /// True if even a few rows of the evaluation that this thread takes part in may take long.
    static IS_LONG: Cell<bool> = const { Cell::new(false) };
}

/// The current runs of many rows that call Python functions. Each thread removes its run at the end, so there are at most as many as threads in such
/// a run. Only threads that have the interpreter's lock may lock the list, so that it is never locked in a process that was forked.
static RUNS: Mutex<Vec<Arc<RunEnd>>> = Mutex::new(Vec::new());

/// True once an exception has ended a run of this process. Until then operators need not check whether their run has ended.
static HAS_ENDED: AtomicBool = AtomicBool::new(false);

/// A run of many rows, and the exception that ended the run, if there is one. Only exceptions that are not an `Exception`, such as
/// `KeyboardInterrupt` and `SystemExit`, end a run: they concern the program, not one row.
pub(crate) struct RunEnd {
    token: Cancellation,
    /// True if even a few rows may take long. Then the run gets a thread of its own, and the calling thread checks for
    /// signals until the run ends.
    is_long: bool,
    raised: Mutex<Option<PyErr>>,
}

impl RunEnd {
    fn raised(&self) -> MutexGuard<'_, Option<PyErr>> {
        self.raised.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Locks the list of current runs.
fn runs() -> MutexGuard<'static, Vec<Arc<RunEnd>>> {
    RUNS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The evaluation of one row in which Python functions are called.
pub(crate) struct RowEvaluation {
    /// The number of the evaluation in the process. Evaluations of one row count down from the highest number; passes over many rows count up from 1.
    number: u64,
    /// True once an exception that is not an `Exception`, such as `KeyboardInterrupt`, has ended the evaluation.
    has_ended: AtomicBool,
}

/// The evaluation that a thread takes part in: of one row, or of many rows.
#[derive(Clone)]
pub(crate) enum EvaluationScope {
    /// The thread belongs to the library's pool and evaluates rows of any current run.
    Any,
    /// The thread takes part in this evaluation of one row.
    Row(Arc<RowEvaluation>),
    /// The thread evaluates rows of this run of many rows.
    Run(Arc<RunEnd>),
}

impl EvaluationScope {
    /// Begins the evaluation of one row.
    pub(crate) fn row() -> EvaluationScope {
        static NUMBERS: AtomicU64 = AtomicU64::new(u64::MAX);
        let number = NUMBERS.fetch_sub(1, Ordering::Relaxed);
        EvaluationScope::Row(Arc::new(RowEvaluation { number, has_ended: AtomicBool::new(false) }))
    }

    /// Cancels this evaluation if it is a run of many rows.
    pub(crate) fn cancel(&self) {
        if let EvaluationScope::Run(run) = self {
            run.token.cancel();
        }
    }

    fn is_long(&self) -> bool {
        matches!(self, EvaluationScope::Run(run) if run.is_long)
    }
}

/// Calls `run` with the list of runs whose rows this thread may evaluate: all current runs in a thread of the library's pool, no run while a single
/// row is evaluated, else one run.
fn of_current<T>(run: impl FnOnce(&[Arc<RunEnd>]) -> T) -> T {
    match current() {
        EvaluationScope::Any => run(&runs().clone()),
        EvaluationScope::Row(_) => run(&[]),
        EvaluationScope::Run(current) => run(&[current]),
    }
}

/// A run of many rows that calls Python functions or may take long. It ends when the value is dropped.
pub(crate) struct RowsRun {
    ending: Arc<RunEnd>,
    _within: ScopeGuard,
}

impl RowsRun {
    /// Begins a run of many rows that `token` can cancel. `calls_python` is true if the model calls Python functions, and `is_long` if even a few
    /// rows may take long.
    pub(crate) fn begin(token: Cancellation, calls_python: bool, is_long: bool) -> RowsRun {
        let ending = Arc::new(RunEnd { token, is_long, raised: Mutex::default() });
        if calls_python {
            runs().push(ending.clone());
        }
        RowsRun { ending: ending.clone(), _within: within(EvaluationScope::Run(ending)) }
    }

    /// Takes out the exception that ended the run; `None` if the run was not ended by an exception.
    pub(crate) fn raised(&self) -> Option<PyErr> {
        self.ending.raised().take()
    }
}

impl Drop for RowsRun {
    fn drop(&mut self) {
        runs().retain(|run| !Arc::ptr_eq(run, &self.ending));
    }
}

/// The evaluation that this thread takes part in. It is passed to another thread that joins the evaluation.
pub(crate) fn current() -> EvaluationScope {
    CURRENT.with(|current| current.borrow().clone())
}

/// Returns true if even a few rows of the run that this thread takes part in may take long.
pub(crate) fn is_long() -> bool {
    IS_LONG.get()
}

/// A guard with the evaluation that this thread took part in before. Dropping the guard makes that evaluation the thread's current one again.
pub(crate) struct ScopeGuard(EvaluationScope);

/// Makes `this` the evaluation of the current thread until the result is dropped.
pub(crate) fn within(this: EvaluationScope) -> ScopeGuard {
    IS_LONG.set(this.is_long());
    ScopeGuard(CURRENT.with(|current| current.replace(this)))
}

impl Drop for ScopeGuard {
    fn drop(&mut self) {
        let before = std::mem::replace(&mut self.0, EvaluationScope::Any);
        IS_LONG.set(before.is_long());
        drop(CURRENT.with(|current| current.replace(before)));
    }
}

/// Returns the operator registry with which models are parsed from now on.
pub(crate) fn registry() -> &'static Registry {
    known().registry()
}

/// Returns the operator registry with which models are parsed from now on, and its operators over columns.
pub(crate) fn known_now() -> (&'static Registry, Arc<[Arc<OverColumns>]>) {
    let mut known = known();
    (known.registry(), known.over_columns.as_slice().into())
}

/// Returns true if the graph calls an operator that is a Python function.
pub(crate) fn are_called(graph: &Graph) -> bool {
    let registry = known().registry;
    registry.is_some_and(|registry| {
        let is_of_python = |name| Registry::standard().find(name).is_none();
        registry.iter().any(|(_, operator)| is_of_python(operator.name) && graph.find_name(operator.name).is_some())
    })
}

/// Takes out the exception that an operator's Python function raised in this thread; `None` if no exception was raised.
pub(crate) fn raised() -> Option<PyErr> {
    RAISED.with(|raised| raised.borrow_mut().take())
}

/// If an operator's Python function raised `KeyboardInterrupt` or `SystemExit` in this thread, returns that exception as the error. Such an exception
/// ends the program, even if the code that called the operator has continued.
pub(crate) fn ended_by_exception(py: Python<'_>) -> PyResult<()> {
    match raised() {
        Some(cause) if !cause.is_instance_of::<PyException>(py) => Err(cause),
        other => {
            keep(other);
            Ok(())
        }
    }
}

/// Stores `cause`, an exception that an operator raised in another thread, which evaluated rows for this thread. `cause` becomes the cause of the
/// error that this thread raises.
pub(crate) fn keep(cause: Option<PyErr>) {
    if cause.is_some() {
        RAISED.with(|raised| *raised.borrow_mut() = cause);
    }
}

/// The outcome of calling a Python function that is an operator: whether it was called, and whether it ended the evaluation.
enum Outcome {
    /// The Python function was called. It returned a result, or raised an exception that concerns only the row.
    Called,
    /// The call raised an exception that is not an `Exception`, such as `KeyboardInterrupt`, which ended the evaluation.
    Ended,
    /// The Python function was not called, because the run has ended.
    NotCalled,
}

/// A Python function that is an operator on scalars.
struct Function {
    name: String,
    function: Py<PyAny>,
    /// True if the function is written in Python, because then the interpreter checks for signals at the function's start.
    hears_signals: bool,
    result: Scalar,
    may_be_missing: bool,
}

/// A Rust type of scalars that operators written in Python take and return.
trait OperandType: Sized {
    /// Converts the Rust scalar to a [`ScalarValue`].
    fn value(self) -> ScalarValue;
    /// Converts a [`ScalarValue`] to the Rust scalar; `None` if the value has another type.
    fn of(value: ScalarValue) -> Option<Self>;
}

macro_rules! crossings {
    ($($rust:ident $scalar:ident),*) => { $(
        impl OperandType for $rust {
            fn value(self) -> ScalarValue {
                ScalarValue::$scalar(self)
            }

            fn of(value: ScalarValue) -> Option<Self> {
                if let ScalarValue::$scalar(value) = value { Some(value) } else { None }
            }
        }
    )* };
}

crossings!(f64 Float64, i64 Int64, bool Boolean);

impl OperandType for String {
    fn value(self) -> ScalarValue {
        ScalarValue::Text(self.as_str().into())
    }

    fn of(value: ScalarValue) -> Option<Self> {
        if let ScalarValue::Text(text) = value { Some(text.to_string()) } else { None }
    }
}

impl Function {
    /// Returns the result for a row. The function is called, unless a row that failed is evaluated again and the call is recorded. The error is the
    /// evaluation's message; the exception is stored as its cause.
    fn call<R: OperandType>(&self, operands: &[ScalarValue]) -> Result<Option<R>, String> {
        let own = std::ptr::from_ref(self).addr();
        let row = CURRENT.with_borrow(|current| match current {
            EvaluationScope::Row(row) => Some(row.clone()),
            EvaluationScope::Run(_) | EvaluationScope::Any => None,
        });
        if row.as_ref().is_some_and(|row| row.has_ended.load(Ordering::Relaxed)) {
            return Err(errors::RAISED.to_owned());
        }
        let number = row.as_ref().map(|row| row.number);
        let wrong = || format!("{} returned a value of another type", self.name);
        let crossed = |value: Option<ScalarValue>| value.map(|value| R::of(value).ok_or_else(wrong)).transpose();
        if let Some(known) = replay::known(own, operands, number) {
            return known.and_then(crossed);
        }
        let (result, outcome) = taken(|py| self.called(py, operands));
        match (outcome, row) {
            (Outcome::NotCalled, _) => {}
            (Outcome::Ended, Some(row)) => row.has_ended.store(true, Ordering::Relaxed),
            (Outcome::Called | Outcome::Ended, _) => replay::keep(own, operands, &result, number),
        }
        result.and_then(crossed)
    }

    /// Calls the function, unless the run has ended.
    fn called(&self, py: Python<'_>, operands: &[ScalarValue]) -> (CallResult, Outcome) {
        // After an exception that ends the run, the functions of the rows that were begun are not called.
        if HAS_ENDED.load(Ordering::Relaxed) && of_current(|runs| runs.iter().any(|run| run.raised().is_some())) {
            return (Err(errors::RAISED.to_owned()), Outcome::NotCalled);
        }
        // The run may be ended between two rows: by a token, by its time limit.
        if of_current(|runs| !runs.is_empty() && runs.iter().all(|run| run.token.is_cancelled())) {
            return (Err(errors::RAISED.to_owned()), Outcome::NotCalled);
        }
        let called = || -> PyResult<Option<ScalarValue>> {
            if !self.hears_signals {
                py.check_signals()?;
            }
            let operands = operands.iter().map(|operand| scalars::object(py, operand));
            let operands = PyTuple::new(py, operands.collect::<PyResult<Vec<_>>>()?)?;
            let made = self.function.bind(py).call1(operands)?;
            if made.is_none() && self.may_be_missing {
                return Ok(None);
            }
            let wrong = || {
                PyTypeError::new_err(format!(
                    "{} returned {}, but must return {}",
                    self.name,
                    scalars::type_name(&made),
                    self.result
                ))
            };
            scalars::read(&made, self.result).map(Some).map_err(|_| wrong())
        };
        let mut outcome = Outcome::Called;
        let result = called().map_err(|error| {
            if !error.is_instance_of::<PyException>(py) {
                outcome = Outcome::Ended;
                HAS_ENDED.store(true, Ordering::Relaxed);
                of_current(|runs| {
                    for run in runs {
                        run.raised().get_or_insert_with(|| error.clone_ref(py));
                        run.token.cancel();
                    }
                });
            }
            let said = errors::said_of(py, &error);
            RAISED.with(|raised| *raised.borrow_mut() = Some(error));
            said
        });
        (result, outcome)
    }

    /// Returns the result of a function that must not return `None`.
    fn call_present<R: OperandType>(&self, operands: &[ScalarValue]) -> Result<R, String> {
        self.call(operands)?.ok_or_else(|| {
            "the Python function returned None, but must return a value: declare its result with `?`".to_owned()
        })
    }
}

/// Adds the function to the operator for parameters of the types `$of`; `None` if a function cannot have them.
macro_rules! with_types {
    ($operator:expr, $function:expr, $of:expr; $(($($name:ident: $ty:ident $scalar:ident),*))*) => {
        match $of.as_slice() {
            $([$(Scalar::$scalar),*] => with_result!($operator, $function, $($name: $ty),*),)*
            _ => None,
        }
    };
}

/// Adds the function to the operator for the type of its results, once the types of its parameters are known; `None` if a function cannot have it.
macro_rules! with_result {
    ($operator:expr, $function:expr, $($name:ident: $ty:ident),*) => {{
        let (operator, function): (UserOperator, Arc<Function>) = ($operator, $function);
        macro_rules! of_result {
            ($result:ident) => {
                match function.may_be_missing {
                    true => operator.fallible(move |$($name: $ty),*| function.call::<$result>(&[$($name.value()),*])),
                    false => operator.fallible(move |$($name: $ty),*| function.call_present::<$result>(&[$($name.value()),*])),
                }
            };
        }
        match function.result {
            Scalar::Float64 => Some(of_result!(f64)),
            Scalar::Int64 => Some(of_result!(i64)),
            Scalar::Boolean => Some(of_result!(bool)),
            Scalar::Text => Some(of_result!(String)),
            _ => None,
        }
    }};
}

/// Registers a Python function as an operator. Models that are compiled from now on can call it by its name.
///
/// `parameters` are the types of one to four parameters, and `result` is the type of the result, as the language writes them: `f64`, `i64`, `bool` or
/// `text`. Three or four parameters must be all `f64` or all `i64`. If an operand is missing, the result is missing, and the function is not called.
/// With a result type such as `f64?`, the function may return `None` for a missing result. `over_columns` is a Python function that evaluates the
/// operator for many rows at once, or `None`.
#[pyfunction]
#[pyo3(signature = (name, function, parameters, result, doc, is_pure, over_columns))]
#[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
pub(crate) fn _register(
    py: Python<'_>,
    name: String,
    function: Py<PyAny>,
    parameters: Vec<String>,
    result: &str,
    doc: &str,
    is_pure: bool,
    over_columns: Option<Py<PyAny>>,
) -> PyResult<()> {
    entered(py, || {
        let scalar = |spelled: &str| {
            let qtype = cembra::values::parse_type(spelled).map_err(|error| errors::of_text(error, spelled, None))?;
            Ok::<_, PyErr>((qtype.scalar(), qtype.is_optional()))
        };
        let unfit = || {
            let message = "an operator in Python must have one or two parameters of f64, i64, bool or text, or up to four of f64 or of i64, and one of these types as its result";
            PyTypeError::new_err(message)
        };
        let of: Vec<(Option<Scalar>, bool)> =
            parameters.iter().map(|spelled| scalar(spelled)).collect::<PyResult<_>>()?;
        if of.iter().any(|(_, is_optional)| *is_optional) {
            return Err(PyTypeError::new_err(
                "a parameter must not have a type with `?`, because the function is not called where an operand is missing: declare the type without `?`",
            ));
        }
        let of: Vec<Scalar> = of.into_iter().map(|(scalar, _)| scalar.ok_or_else(unfit)).collect::<PyResult<_>>()?;
        let (result, may_be_missing) = scalar(result)?;
        let result = result.ok_or_else(unfit)?;
        let mut operator = UserOperator::new(&name).summary(doc);
        if !is_pure {
            operator = operator.impure();
        }
        let hears_signals = function.bind(py).get_type().name().is_ok_and(|name| name == "function");
        let function = Arc::new(Function { name: name.clone(), function, hears_signals, result, may_be_missing });
        let operator = with_types! { operator, function, of;
            (a: f64 Float64) (a: i64 Int64) (a: bool Boolean) (a: String Text)
            (a: f64 Float64, b: f64 Float64) (a: f64 Float64, b: i64 Int64) (a: f64 Float64, b: bool Boolean) (a: f64 Float64, b: String Text)
            (a: i64 Int64, b: f64 Float64) (a: i64 Int64, b: i64 Int64) (a: i64 Int64, b: bool Boolean) (a: i64 Int64, b: String Text)
            (a: bool Boolean, b: f64 Float64) (a: bool Boolean, b: i64 Int64) (a: bool Boolean, b: bool Boolean) (a: bool Boolean, b: String Text)
            (a: String Text, b: f64 Float64) (a: String Text, b: i64 Int64) (a: String Text, b: bool Boolean) (a: String Text, b: String Text)
            (a: f64 Float64, b: f64 Float64, c: f64 Float64) (a: i64 Int64, b: i64 Int64, c: i64 Int64)
            (a: f64 Float64, b: f64 Float64, c: f64 Float64, d: f64 Float64) (a: i64 Int64, b: i64 Int64, c: i64 Int64, d: i64 Int64)
        };
        let operator = operator.ok_or_else(unfit)?;
        // Dropping replaced operators may run Python code that registers operators, so they are dropped after the lock is free.
        let _replaced = {
            let mut known = known();
            let before = known.next.take().unwrap_or_else(|| known.registry.unwrap_or_else(Registry::standard).clone());
            let is_new = before.find(&name).is_none();
            if is_new && known.count >= MOST_OPERATORS {
                known.next = Some(before);
                let message = format!("a process can have at most {MOST_OPERATORS} names of operators in Python");
                return Err(PyValueError::new_err(message));
            }
            let mut with = before.clone();
            if let Err(error) = with.replace(operator) {
                known.next = Some(before);
                return Err(PyValueError::new_err(error.to_string()));
            }
            known.next = Some(with);
            known.count += usize::from(is_new);
            let replaced: Vec<_> = known.over_columns.extract_if(.., |known| known.name == name).collect();
            known
                .over_columns
                .extend(over_columns.map(|function| Arc::new(OverColumns { name, function, result, may_be_missing })));
            replaced
        };
        Ok(())
    })
}

/// Returns `made`, the result of the run `run`; or, if an exception ended the run, that exception as the error.
pub(crate) fn ended<T>(run: Option<RowsRun>, made: PyResult<T>) -> PyResult<T> {
    run.and_then(|run| run.raised()).map_or(made, Err)
}
