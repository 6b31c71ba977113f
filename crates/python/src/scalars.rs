//! Conversion of one scalar, in three ways: from a Python object to its type, from the object to a value of a given type, and from a value to an
//! object. An integer is read as a float that represents it exactly, and a datetime at midnight as a date. There are no other conversions between
//! kinds of values.

use crate::{errors, moments};
use cembra::{Date, Duration, Scalar, ScalarValue, Timestamp};
use numpy::{PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::{PyException, PyMemoryError, PyOverflowError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{
    PyBool, PyByteArray, PyBytes, PyDate, PyDateTime, PyDelta, PyDeltaAccess, PyFloat, PyInt, PyMemoryView, PyString,
    PyTimeAccess, PyTuple, PyTzInfo, PyTzInfoAccess,
};

/// 1 January 1970 as Python's ordinal, the count of days from year 1.
const EPOCH_ORDINAL: i64 = 719_163;

/// The error for an object that is not a value of the wanted type. The details are boxed, because a `Result` with this error is moved for each value,
/// and should be small.
#[derive(Debug)]
pub(crate) struct Misfit(Box<Parts>);

/// The details of a [`Misfit`].
#[derive(Debug)]
struct Parts {
    /// The path from the argument to the wrong object, the innermost step first: `.price`, `[3]`.
    path: Vec<String>,
    /// The wanted type, as messages show it.
    expected: String,
    /// The type of the object, or a description of it.
    found: String,
    /// An exception that is raised instead of a `DataError`; `None` for a `DataError`.
    raised: Option<PyErr>,
}

impl Misfit {
    /// The error that the object `found` is not of the type `expected`.
    #[cold]
    pub(crate) fn new(expected: impl ToString, found: &Bound<'_, PyAny>) -> Misfit {
        Misfit::of(expected, if found.is_none() { "None".to_owned() } else { type_name(found) })
    }

    /// The error that a value is not of the type `expected`. The text `found` describes the value, for cases in which the type of
    /// the Python object does not say enough.
    #[cold]
    pub(crate) fn of(expected: impl ToString, found: impl Into<String>) -> Misfit {
        Misfit(Box::new(Parts { path: Vec::new(), expected: expected.to_string(), found: found.into(), raised: None }))
    }

    /// Wraps `error`, so that it is raised in Python unchanged.
    #[cold]
    pub(crate) fn raising(error: PyErr) -> Misfit {
        let mut misfit = Misfit::of("", "");
        misfit.0.raised = Some(error);
        misfit
    }

    /// The error for the object `found`, which raised `error` when it was read. If `error` is a `MemoryError`, or asks to stop, it does not concern
    /// the value, so `error` itself will be raised.
    #[cold]
    pub(crate) fn of_raised(expected: impl ToString, found: &Bound<'_, PyAny>, error: PyErr) -> Misfit {
        let py = found.py();
        let mut made = Misfit::new(expected, found);
        let is_of_value = error.is_instance_of::<PyException>(py) && !error.is_instance_of::<PyMemoryError>(py);
        made.0.raised = Some(error).filter(|_| !is_of_value);
        made
    }

    /// Adds `step`, the field or element that contains the object, to the path in the error message.
    pub(crate) fn inside(mut self, step: String) -> Misfit {
        self.0.path.push(step);
        self
    }

    /// Adds to the error message that all values of a column of objects must have the type of the first one, or the declared type.
    pub(crate) fn among_objects(mut self) -> Misfit {
        self.0
            .found
            .push_str(": all values of a column of objects must have the type of the first one, or the declared type");
        self
    }

    /// Makes the Python exception for this error. `input` is the name of the input whose argument is wrong.
    #[cold]
    pub(crate) fn raised(self, input: &str) -> PyErr {
        let Parts { path, expected, found, raised } = *self.0;
        if let Some(raised) = raised {
            return raised;
        }
        let path: String = path.into_iter().rev().collect();
        errors::data(format!("input `{input}`{path} is {expected}, found {found}"))
    }
}

/// The bytes of the Python object that a value of type `scalar` becomes, without the characters of a string. Truth values and `None` count 0, because
/// these objects exist already. The other sizes follow from `sys.getsizeof` in CPython 3.12 on a 64-bit system and from its allocator, which rounds
/// up to 16 bytes. `sys.getsizeof` reports 24 for a float, 28 to 36 for an integer, 32 for a date, 40 for a duration, 48 for a timestamp, and 41 to
/// 57 besides the characters of a string.
pub(crate) const fn object_size(scalar: Scalar) -> u64 {
    match scalar {
        Scalar::Unit | Scalar::Boolean => 0,
        Scalar::Text | Scalar::Bytes => 56,
        Scalar::Timestamp | Scalar::Duration => 48,
        _ => 32,
    }
}

/// The bytes that each element of a Python list counts, in addition to the element's object: 8 for the pointer in the list, and 8 more, because a
/// list that grows is copied.
pub(crate) const LIST_SLOT_BYTES: u64 = 16;

/// The bytes that the characters of a string (a text, or bytes) take in a Python object. Python stores each character of a text in as many bytes as
/// the text's widest character needs.
pub(crate) fn object_bytes(string: &[u8]) -> u64 {
    let text = if string.is_ascii() { None } else { std::str::from_utf8(string).ok() };
    let Some(text) = text else { return string.len() as u64 };
    let (count, most) =
        text.chars().fold((0_u64, '\0'), |(count, most), char| (count.saturating_add(1), most.max(char)));
    let width = if most < '\u{100}' { 1 } else { 2 + 2 * u64::from(most >= '\u{10000}') };
    count.saturating_mul(width)
}

/// The name of the object's type, as Python shows it.
pub(crate) fn type_name(object: &Bound<'_, PyAny>) -> String {
    object.get_type().fully_qualified_name().map_or_else(|_| "an object".to_owned(), |name| name.to_string())
}

/// The scalar type that a Python object has without a declared type; `None` for Python's `None` and other missing values, and for an object that is
/// not a scalar.
pub(crate) fn scalar_of(object: &Bound<'_, PyAny>) -> Option<Scalar> {
    match object {
        // `NaT` of pandas is a datetime, too.
        _ if is_absent(object) => None,
        _ if object.is_instance_of::<PyFloat>() => Some(Scalar::Float64),
        _ if object.is_instance_of::<PyBool>() => Some(Scalar::Boolean),
        _ if object.is_instance_of::<PyInt>() => Some(Scalar::Int64),
        _ if object.is_instance_of::<PyString>() => Some(Scalar::Text),
        _ if object.is_instance_of::<PyBytes>() => Some(Scalar::Bytes),
        _ if object.is_instance_of::<PyDateTime>() => Some(Scalar::Timestamp),
        _ if object.is_instance_of::<PyDate>() => Some(Scalar::Date),
        _ if object.is_instance_of::<PyDelta>() => Some(Scalar::Duration),
        _ if object.is_instance(numpy_generic(object.py()).ok()?).ok()? || is_single(object) => {
            let kind: String = object.getattr("dtype").ok()?.getattr("str").ok()?.extract().ok()?;
            scalar_of_dtype(kind.get(1..)?)
        }
        _ => None,
    }
}

/// Returns true if an object is a NumPy array without axes.
fn is_single(object: &Bound<'_, PyAny>) -> bool {
    object.cast::<PyUntypedArray>().is_ok_and(|array| array.ndim() == 0)
}

/// The class `numpy.generic`, which all NumPy scalars inherit from.
fn numpy_generic<'py>(py: Python<'py>) -> PyResult<&'py Bound<'py, PyAny>> {
    static GENERIC: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let generic = GENERIC.get_or_try_init(py, || PyResult::Ok(py.import("numpy")?.getattr("generic")?.unbind()))?;
    Ok(generic.bind(py))
}

/// The scalar type for elements of a NumPy array whose type has the NumPy name `kind`, such as `f8`. `None` if no scalar type fits.
pub(crate) fn scalar_of_dtype(kind: &str) -> Option<Scalar> {
    Some(match kind {
        "f8" => Scalar::Float64,
        "f4" | "f2" => Scalar::Float32,
        "i8" | "u4" => Scalar::Int64,
        "i4" | "i2" | "i1" | "u2" | "u1" => Scalar::Int32,
        "u8" => Scalar::UInt64,
        "b1" => Scalar::Boolean,
        "M8[D]" => Scalar::Date,
        _ if kind.starts_with("M8[") => Scalar::Timestamp,
        _ if kind.starts_with("m8[") => Scalar::Duration,
        _ if kind.starts_with('U') => Scalar::Text,
        _ if kind.starts_with('S') => Scalar::Bytes,
        _ => return None,
    })
}

/// NumPy's name, such as `f8`, for the type `scalar`. `None` if NumPy does not store values of this type in the same form as the library.
pub(crate) const fn dtype_of(scalar: Scalar) -> Option<&'static str> {
    match scalar {
        Scalar::Float64 => Some("f8"),
        Scalar::Float32 => Some("f4"),
        Scalar::Int64 => Some("i8"),
        Scalar::Int32 => Some("i4"),
        Scalar::UInt64 => Some("u8"),
        Scalar::Boolean => Some("b1"),
        _ => None,
    }
}

/// Converts a Python object to a value of type `scalar`. Python's `None` is an error. A NumPy array without axes is read as its element.
pub(crate) fn read(object: &Bound<'_, PyAny>, scalar: Scalar) -> Result<ScalarValue, Misfit> {
    if let Ok(array) = object.cast::<PyUntypedArray>()
        && array.ndim() == 0
    {
        let element = object
            .get_item(PyTuple::empty(object.py()))
            .map_err(|error| Misfit::of_raised(scalar.short_name(), object, error))?;
        // A subclass may return itself as its element.
        return if element.cast::<PyUntypedArray>().is_ok() {
            Err(Misfit::new(scalar.short_name(), object))
        } else {
            read(&element, scalar)
        };
    }
    let misfit = || Misfit::new(scalar.short_name(), object);
    let misfit_of = |error| Misfit::of_raised(scalar.short_name(), object, error);
    // An integer of Python, or an object that converts itself to one.
    let integer = || {
        if object.is_instance_of::<PyBool>() || object.is_instance_of::<PyFloat>() {
            return Err(misfit());
        }
        // Most integers fit into 64 bits, which takes a fraction of the time.
        let short = object.extract::<i64>().map(i128::from);
        match short.or_else(|_| object.extract::<i128>()) {
            Ok(integer) => Ok(integer),
            Err(_) if object.is_instance_of::<PyInt>() => Err(Misfit::of(scalar.short_name(), "a larger integer")),
            Err(error) => Err(misfit_of(error)),
        }
    };
    let exact = |integer: i128, digits| match u64::try_from(integer.unsigned_abs()) {
        Ok(magnitude) if cembra_arrow::float_has(magnitude, digits) => Ok(integer as f64),
        _ => Err(Misfit::of(
            scalar.short_name(),
            format!("the integer {integer}, which it cannot represent exactly: give `float(..)`"),
        )),
    };
    // A float, or an integer that a float of `digits` binary digits represents exactly.
    let float = |digits| {
        if let Ok(float) = object.cast::<PyFloat>() {
            return Ok(float.value());
        }
        let is_whole = object.is_instance_of::<PyInt>() && !object.is_instance_of::<PyBool>();
        match if is_whole { Some(Scalar::Int64) } else { scalar_of(object) } {
            Some(Scalar::Int32 | Scalar::Int64 | Scalar::UInt64) => exact(integer()?, digits),
            Some(Scalar::Float32 | Scalar::Float64) => object.extract::<f64>().map_err(misfit_of),
            None if object.hasattr("__float__").unwrap_or(false) && !object.is_instance_of::<PyString>() => {
                Err(Misfit::of(scalar.short_name(), format!("{}: give `float(..)`", type_name(object))))
            }
            _ => Err(misfit()),
        }
    };
    let single = || {
        let found = float(f32::MANTISSA_DIGITS)?;
        let rounded = found as f32;
        match rounded.is_infinite() && found.is_finite() {
            true => Err(Misfit::of(scalar.short_name(), format!("the number {found:e}"))),
            false => Ok(rounded),
        }
    };
    if matches!(scalar, Scalar::Date | Scalar::Timestamp | Scalar::Duration)
        && let Some(read) = of_moment(object, scalar)
    {
        return read;
    }
    fn fit<T: TryFrom<i128>>(integer: i128, scalar: Scalar) -> Result<T, Misfit> {
        T::try_from(integer).map_err(|_| Misfit::of(scalar.short_name(), format!("the integer {integer}")))
    }
    Ok(match scalar {
        Scalar::Float64 => ScalarValue::Float64(float(f64::MANTISSA_DIGITS)?),
        Scalar::Float32 => ScalarValue::Float32(single()?),
        Scalar::WeakFloat => ScalarValue::WeakFloat(float(f64::MANTISSA_DIGITS)?),
        Scalar::Int32 => ScalarValue::Int32(fit(integer()?, scalar)?),
        Scalar::Int64 => ScalarValue::Int64(fit(integer()?, scalar)?),
        Scalar::UInt64 => ScalarValue::UInt64(fit(integer()?, scalar)?),
        Scalar::Boolean => ScalarValue::Boolean(object.extract().map_err(|_| misfit())?),
        Scalar::Unit => match object.extract::<bool>() {
            Ok(true) => ScalarValue::Unit,
            _ => return Err(misfit()),
        },
        Scalar::Text => {
            let text = object.cast::<PyString>().map_err(|_| misfit())?;
            let text = text.to_cow().map_err(|_| Misfit::of("text", "a string with an unpaired surrogate"))?;
            ScalarValue::Text((&*text).into())
        }
        Scalar::Bytes => {
            // An object that only has a length, such as a range, is not read as bytes of that length.
            if let Ok(bytes) = object.cast::<PyByteArray>() {
                ScalarValue::Bytes(bytes.to_vec().into())
            } else if object.is_instance_of::<PyMemoryView>() {
                let bytes = object.call_method0("tobytes").map_err(misfit_of)?;
                ScalarValue::Bytes(bytes.cast::<PyBytes>().map_err(|_| misfit())?.as_bytes().into())
            } else {
                ScalarValue::Bytes(object.cast::<PyBytes>().map_err(|_| misfit())?.as_bytes().into())
            }
        }
        Scalar::Date => {
            if let Ok(moment) = object.cast::<PyDateTime>() {
                let is_midnight = moment.get_hour() == 0 && moment.get_minute() == 0 && moment.get_second() == 0;
                let has_fraction = moment.get_microsecond() != 0
                    || object.getattr("nanosecond").is_ok_and(|rest| rest.is_truthy().unwrap_or(true));
                if moment.get_tzinfo().is_some() || !is_midnight || has_fraction {
                    return Err(Misfit::of(
                        "date",
                        "a datetime that has a time zone or is not midnight: give its `.date()`",
                    ));
                }
            } else if !object.is_instance_of::<PyDate>() {
                return Err(misfit());
            }
            let ordinal = object.call_method0("toordinal").and_then(|days| days.extract::<i64>());
            let days = ordinal.ok().and_then(|days| i32::try_from(days - EPOCH_ORDINAL).ok());
            ScalarValue::Date(Date(days.ok_or_else(misfit)?))
        }
        Scalar::Timestamp => {
            let moment = object.cast::<PyDateTime>().map_err(|_| misfit())?;
            if moment.get_tzinfo().is_none() {
                return Err(Misfit::of(
                    "timestamp",
                    "a datetime without a time zone: add a time zone, as in `.replace(tzinfo=timezone.utc)`",
                ));
            }
            let since = object.sub(epoch(object.py()).map_err(|_| misfit())?).map_err(|_| misfit())?;
            ScalarValue::Timestamp(Timestamp(microseconds(&since).ok_or_else(misfit)?))
        }
        Scalar::Duration => {
            let is_delta = object.cast::<PyDelta>().is_ok();
            let far = || Misfit::of("duration", "a timedelta that does not fit into microseconds of 64 bits");
            let count = microseconds(object);
            ScalarValue::Duration(Duration(count.ok_or_else(|| if is_delta { far() } else { misfit() })?))
        }
    })
}

/// Returns true if a Python object stands for a missing value of type `scalar`: `None`, NumPy's `masked` and `NaT`, `pandas.NA` and `pandas.NaT`, and
/// `False` for a mask (`Unit`).
pub(crate) fn is_missing(object: &Bound<'_, PyAny>, scalar: Scalar) -> bool {
    object.is_none()
        || (scalar == Scalar::Unit && object.extract::<bool>().is_ok_and(|holds| !holds))
        || is_absent(object)
}

/// Returns true if a Python object stands for a missing value in a column of objects. NaN stands for a missing value only if `is_of_pandas` is true.
pub(crate) fn is_absent_in(object: &Bound<'_, PyAny>, is_of_pandas: bool) -> bool {
    object.is_none()
        || is_absent(object)
        || (is_of_pandas && object.cast::<PyFloat>().is_ok_and(|float| float.value().is_nan()))
}

/// Returns true if an object is one of the missing values of NumPy and pandas: `masked`, `NA`, `NaT`.
fn is_absent(object: &Bound<'_, PyAny>) -> bool {
    let is_plain = object.is_exact_instance_of::<PyFloat>()
        || object.is_exact_instance_of::<PyInt>()
        || object.is_exact_instance_of::<PyString>()
        || object.is_exact_instance_of::<PyBool>()
        || object.is_exact_instance_of::<PyDateTime>()
        || object.is_exact_instance_of::<PyDate>();
    if is_plain {
        return false;
    }
    // The classes are recognized by name, because looking them up would import pandas.
    let of = object.get_type();
    let Ok(name) = of.name() else { return false };
    match &*name.to_string_lossy() {
        "MaskedConstant" | "NAType" | "NaTType" => of
            .module()
            .is_ok_and(|module| matches!(module.to_string_lossy().split('.').next(), Some("numpy" | "pandas"))),
        "datetime64" | "timedelta64" => {
            let is_not = object.py().import("numpy").and_then(|numpy| numpy.call_method1("isnat", (object,)));
            is_not.and_then(|is_not| is_not.is_truthy()).unwrap_or(false)
        }
        _ => false,
    }
}

/// Reads a NumPy scalar as a timestamp, a date or a duration, by an array of one element. `None` if the object is not a NumPy scalar.
fn of_moment(object: &Bound<'_, PyAny>, scalar: Scalar) -> Option<Result<ScalarValue, Misfit>> {
    if !object.is_instance(numpy_generic(object.py()).ok()?).ok()? {
        return None;
    }
    let read = || {
        let numpy = object.py().import("numpy")?;
        let one = numpy.call_method1("atleast_1d", (object,))?.cast_into::<PyUntypedArray>()?;
        Ok::<_, PyErr>(moments::array(&one, scalar, None, PyValueError::new_err)?.and_then(|one| one.get(0)))
    };
    match read() {
        Ok(value) => Some(value.ok_or_else(|| Misfit::new(scalar.short_name(), object))),
        Err(error) => {
            let said = error.value(object.py()).to_string().replace(" in row 0", "");
            Some(Err(Misfit::of(scalar.short_name(), format!("{}, which {said}", type_name(object)))))
        }
    }
}

/// The microseconds of a `timedelta`; `None` for another object, or if they do not fit into 64 bits.
fn microseconds(object: &Bound<'_, PyAny>) -> Option<i64> {
    let delta = object.cast::<PyDelta>().ok()?;
    let (days, seconds) = (i64::from(delta.get_days()), i64::from(delta.get_seconds()));
    days.checked_mul(86_400)?.checked_add(seconds)?.checked_mul(1_000_000)?.checked_add(delta.get_microseconds().into())
}

/// The `datetime` that timestamps count from: 1970-01-01 in UTC.
fn epoch<'py>(py: Python<'py>) -> PyResult<&'py Bound<'py, PyAny>> {
    static EPOCH: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let epoch = EPOCH.get_or_try_init(py, || {
        let utc = PyTzInfo::utc(py)?.to_owned();
        PyDateTime::new(py, 1970, 1, 1, 0, 0, 0, 0, Some(&utc)).map(|epoch| epoch.into_any().unbind())
    })?;
    Ok(epoch.bind(py))
}

/// Converts a value to a Python object.
///
/// # Errors
/// A `DataError` for a timestamp or a date outside of the years 1 to 9999.
pub(crate) fn object<'py>(py: Python<'py>, value: &ScalarValue) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        ScalarValue::Unit => PyBool::new(py, true).to_owned().into_any(),
        ScalarValue::Boolean(value) => PyBool::new(py, *value).to_owned().into_any(),
        ScalarValue::Int32(value) => value.into_pyobject(py)?.into_any(),
        ScalarValue::Int64(value) => value.into_pyobject(py)?.into_any(),
        ScalarValue::UInt64(value) => value.into_pyobject(py)?.into_any(),
        ScalarValue::Float32(value) => PyFloat::new(py, f64::from(*value)).into_any(),
        ScalarValue::Float64(value) | ScalarValue::WeakFloat(value) => PyFloat::new(py, *value).into_any(),
        ScalarValue::Text(text) => PyString::new(py, text).into_any(),
        ScalarValue::Bytes(bytes) => PyBytes::new(py, bytes).into_any(),
        ScalarValue::Date(date) => {
            let ordinal = i64::from(date.0) + EPOCH_ORDINAL;
            let made = py.get_type::<PyDate>().call_method1("fromordinal", (ordinal,));
            made.map_err(|error| outside(py, error, date.0.into(), "days"))?
        }
        ScalarValue::Timestamp(moment) => {
            let made = delta(py, moment.0).and_then(|delta| epoch(py)?.add(delta));
            made.map_err(|error| outside(py, error, moment.0, "microseconds"))?
        }
        ScalarValue::Duration(length) => delta(py, length.0)?.into_any(),
    })
}

/// The exception for a day or a moment that `datetime` does not have, which is `since` units from 1970. Returns `error` if it has another reason.
#[cold]
fn outside(py: Python<'_>, error: PyErr, since: i64, unit: &str) -> PyErr {
    if !error.is_instance_of::<PyValueError>(py) && !error.is_instance_of::<PyOverflowError>(py) {
        return error;
    }
    errors::data(format!(
        "the result is {since} {unit} from 1970-01-01, but a `datetime` must be in the years 1 to 9999: give the inputs as NumPy arrays, whose results have no such limit"
    ))
}

/// The `timedelta` of `microseconds` microseconds.
fn delta(py: Python<'_>, microseconds: i64) -> PyResult<Bound<'_, PyDelta>> {
    let (seconds, rest) = (microseconds.div_euclid(1_000_000), microseconds.rem_euclid(1_000_000));
    let (days, seconds) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    // Both are below what 32 bits hold: 2^63 microseconds are 106,751,991 days.
    PyDelta::new(py, days as i32, seconds as i32, rest as i32, false)
}
