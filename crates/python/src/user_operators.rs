//! Operators of the user in Python: functions on scalars, which are called for each row, and beside them functions over columns. The library has
//! them for as long as the process lives, as it has operators in Rust. How functions over columns are called is in `phases`.

use crate::errors;
use crate::lock::{entered, taken};
use crate::scalars;
use cembra::{Graph, Registry, Scalar, ScalarValue, UserOperator};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::cell::RefCell;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The most operators that a process may have: each keeps some memory for as long as it lives.
const MOST_OPERATORS: usize = 256;

/// The operators that were registered: at most `MOST_OPERATORS`.
static KNOWN: Mutex<Known> = Mutex::new(Known { registry: None, count: 0, over_columns: Vec::new() });

/// What `_register` has registered.
struct Known {
    /// The operators of the language with those of the user; none before the first of these.
    registry: Option<&'static Registry>,
    count: usize,
    /// Those that have functions over columns.
    over_columns: Vec<Arc<OverColumns>>,
}

/// A function that is given the operands of many rows at once.
pub(crate) struct OverColumns {
    pub(crate) name: String,
    /// Takes a list of arrays of NumPy, and gives the array of results, masked where one is missing.
    pub(crate) function: Py<PyAny>,
    pub(crate) result: Scalar,
    pub(crate) may_be_missing: bool,
}

fn known() -> MutexGuard<'static, Known> {
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

thread_local! {
    /// What an operator raised in the evaluation that runs in this thread; at most one exception.
    static RAISED: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

/// The operators that models are read with from now on.
pub(crate) fn registry() -> &'static Registry {
    known().registry.unwrap_or_else(Registry::standard)
}

/// The function over columns of the operator of this name, if it has one.
pub(crate) fn over_columns(name: &str) -> Option<Arc<OverColumns>> {
    known().over_columns.iter().find(|known| known.name == name).cloned()
}

/// True for a graph that calls an operator of Python.
pub(crate) fn are_called(graph: &Graph) -> bool {
    known().registry.is_some_and(|registry| {
        let is_of_python = |name| Registry::standard().find(name).is_none();
        registry.iter().any(|(_, operator)| is_of_python(operator.name) && graph.find_name(operator.name).is_some())
    })
}

/// The exception that an operator raised in this thread, taken away.
pub(crate) fn raised() -> Option<PyErr> {
    RAISED.with(|raised| raised.borrow_mut().take())
}

/// Keeps what an operator raised in a thread that evaluated for this one.
pub(crate) fn keep(cause: Option<PyErr>) {
    if cause.is_some() {
        RAISED.with(|raised| *raised.borrow_mut() = cause);
    }
}

/// The function of an operator, and the type of its results.
struct Function {
    name: String,
    function: Py<PyAny>,
    result: Scalar,
    may_be_missing: bool,
}

/// A scalar of Rust that Python's operators take and give.
trait Crossing: Sized {
    /// The scalar as a value.
    fn value(self) -> ScalarValue;
    /// The scalar of a value of its type.
    fn of(value: ScalarValue) -> Option<Self>;
}

macro_rules! crossings {
    ($($rust:ident $scalar:ident),*) => { $(
        impl Crossing for $rust {
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

impl Crossing for String {
    fn value(self) -> ScalarValue {
        ScalarValue::Text(self.as_str().into())
    }

    fn of(value: ScalarValue) -> Option<Self> {
        if let ScalarValue::Text(text) = value { Some(text.to_string()) } else { None }
    }
}

impl Function {
    /// Calls the function. The error is what the evaluation says; what was raised is kept as the cause of its exception.
    fn call<R: Crossing>(&self, operands: &[ScalarValue]) -> Result<Option<R>, &'static str> {
        taken(|py| {
            let called = || -> PyResult<Option<R>> {
                let operands = operands.iter().map(|operand| scalars::object(py, operand));
                let operands = PyTuple::new(py, operands.collect::<PyResult<Vec<_>>>()?)?;
                let made = self.function.bind(py).call1(operands)?;
                if made.is_none() && self.may_be_missing {
                    return Ok(None);
                }
                let wrong = || {
                    PyTypeError::new_err(format!(
                        "{} gave {}, not {}",
                        self.name,
                        scalars::type_name(&made),
                        self.result
                    ))
                };
                let value = scalars::read(&made, self.result).map_err(|_| wrong())?;
                R::of(value).map(Some).ok_or_else(wrong)
            };
            called().map_err(|error| {
                RAISED.with(|raised| *raised.borrow_mut() = Some(error));
                errors::RAISED
            })
        })
    }

    /// The result of a function that gives always one.
    fn call_present<R: Crossing>(&self, operands: &[ScalarValue]) -> Result<R, &'static str> {
        self.call(operands)?.ok_or("the function of Python gave None")
    }
}

/// The operator with the function for the types of its parameters; none for types that there is no function for.
macro_rules! with_types {
    ($operator:expr, $function:expr, $of:expr; $(($($name:ident: $ty:ident $scalar:ident),*))*) => {
        match $of.as_slice() {
            $([$(Scalar::$scalar),*] => with_result!($operator, $function, $($name: $ty),*),)*
            _ => None,
        }
    };
}

/// Likewise for the type of its results.
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

/// Makes an operator of a function: it is called by its name in models that are compiled from now on.
///
/// `parameters` are the types of one to four parameters and `result` that of the result, as the language writes them: `f64`, `i64`, `bool` and
/// `text`, for one or two parameters; three and four are all `f64` or all `i64`. Where an operand is missing the result is, and the function is not
/// called. A result that may be missing is `f64?` and its like, and then `None` is missing. `over_columns` evaluates it for many rows, where it is
/// given.
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
            let qtype = cembra::parse_type(spelled).map_err(|error| errors::of_text(error, spelled, None))?;
            Ok::<_, PyErr>((qtype.scalar(), qtype.is_optional()))
        };
        let unfit = || {
            let message = "an operator in Python has one or two parameters of f64, i64, bool or text, or up to four of f64 or of i64, and such a result";
            PyTypeError::new_err(message)
        };
        let of: Vec<(Option<Scalar>, bool)> =
            parameters.iter().map(|spelled| scalar(spelled)).collect::<PyResult<_>>()?;
        if of.iter().any(|(_, is_optional)| *is_optional) {
            return Err(PyTypeError::new_err(
                "a function is not called where an operand is missing: declare its type without `?`",
            ));
        }
        let of: Vec<Scalar> = of.into_iter().map(|(scalar, _)| scalar.ok_or_else(unfit)).collect::<PyResult<_>>()?;
        let (result, may_be_missing) = scalar(result)?;
        let result = result.ok_or_else(unfit)?;
        let mut operator = UserOperator::new(&name).summary(doc);
        if !is_pure {
            operator = operator.impure();
        }
        let function = Arc::new(Function { name: name.clone(), function, result, may_be_missing });
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
        let mut known = known();
        if known.count >= MOST_OPERATORS {
            return Err(PyValueError::new_err(format!("a process has at most {MOST_OPERATORS} operators in Python")));
        }
        let mut with = known.registry.unwrap_or_else(Registry::standard).clone();
        with.register(operator).map_err(|error| PyValueError::new_err(error.to_string()))?;
        known.registry = Some(with.leak());
        known.count += 1;
        known
            .over_columns
            .extend(over_columns.map(|function| Arc::new(OverColumns { name, function, result, may_be_missing })));
        Ok(())
    })
}
