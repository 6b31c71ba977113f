//! Arrays of scalars: from sequences of Python, from arrays of NumPy and of Arrow, and back to NumPy's. Missing elements are masked ones, nulls, or
//! `None`.

use crate::lending;
use crate::masks;
use crate::packages::{self, Bounds};
use crate::scalars::{self, Misfit, is_missing};
use arrow_array::ArrayRef;
use cembra::{Array, ArrayBuilder, ArrayData, Date, Duration, Scalar, ScalarValue, Timestamp};
use numpy::{PyArray1, PyArrayMethods, PyReadonlyArray1, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

/// A type that elements of arrays of NumPy have and elements of models.
macro_rules! for_each_number {
    ($then:ident) => {
        $then! { f64 Float64, f32 Float32, i64 Int64, i32 Int32, u64 UInt64 }
    };
}

pub(crate) use for_each_number;

/// The array of an array of NumPy whose elements are of this type, or are truth values; masks are of truth values. None of another one.
fn numpy_elements(object: &Bound<'_, PyAny>, scalar: Scalar) -> Option<Array> {
    let presence = presence(object).ok()?;
    let plain = if is_masked(object) { object.getattr("data").ok()? } else { object.clone() };
    if matches!(scalar, Scalar::Boolean | Scalar::Unit) {
        let holds = plain.cast::<PyArray1<bool>>().ok()?.try_readonly().ok()?;
        let bits = bits(&holds, false);
        return match scalar {
            Scalar::Unit if presence.is_some() => None,
            Scalar::Unit => Array::from_parts(scalar, holds.len(), ArrayData::Units, Some(bits)),
            _ => Array::from_parts(scalar, holds.len(), ArrayData::Bits(bits.into()), presence),
        };
    }
    macro_rules! copied {
        ($($rust:ident $scalar:ident),*) => { $(
            if scalar.representation() == Scalar::$scalar {
                let given = plain.cast::<PyArray1<$rust>>().ok()?;
                if let Some(words) = lending::words(given.to_dyn()) {
                    return Array::from_parts(scalar, given.len(), ArrayData::Numbers(words), presence);
                }
                let given = lending::whole(given.to_dyn()).ok()?;
                let given = given.try_readonly().ok()?;
                return Array::of_numbers(scalar, given.len(), presence, |numbers: &mut [$rust]| match given.as_slice() {
                    Ok(given) => numbers.copy_from_slice(given),
                    Err(_) => numbers.iter_mut().zip(given.as_array()).for_each(|(number, given)| *number = *given),
                });
            }
        )* };
    }
    for_each_number!(copied);
    None
}

/// A bit for each truth value of an array that is not `absent`.
fn bits(values: &PyReadonlyArray1<'_, bool>, absent: bool) -> Vec<u64> {
    match values.as_slice() {
        Ok(contiguous) => masks::bits(contiguous, absent),
        Err(_) => masks::bits(&values.as_array().to_vec(), absent),
    }
}

/// A bit for each element of a masked array that is there; none of an array that has no mask.
pub(crate) fn presence(object: &Bound<'_, PyAny>) -> PyResult<Option<Vec<u64>>> {
    if !is_masked(object) {
        return Ok(None);
    }
    let mask = object.py().import("numpy.ma")?.call_method1("getmaskarray", (object,))?;
    let mask = mask.cast_into::<PyArray1<bool>>()?;
    let mask = mask.try_readonly().map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok(Some(bits(&mask, true)))
}

/// An array of elements of this type.
pub(crate) fn array(object: &Bound<'_, PyAny>, scalar: Scalar, bounds: &Bounds) -> Result<Array, Misfit> {
    if let Ok(untyped) = object.cast::<PyUntypedArray>()
        && untyped.ndim() == 1
        && let Some(array) = numpy_elements(object, scalar)
    {
        return Ok(array);
    }
    match packages::whole(object, format_args!("[{}]", scalar.short_name()), bounds)? {
        Some(array) => of_arrow(object, array, scalar, bounds),
        None => elements(object, scalar),
    }
}

/// An array of Arrow as one of elements of this type.
pub(crate) fn of_arrow(
    object: &Bound<'_, PyAny>,
    array: ArrayRef,
    scalar: Scalar,
    bounds: &Bounds,
) -> Result<Array, Misfit> {
    bounds.claim(object, packages::shared_bytes(&array)).map_err(Misfit::raising)?;
    let misfit = |error: cembra_arrow::Error| Misfit::of(format!("[{}]", scalar.short_name()), error.to_string());
    let made = cembra_arrow::to_model(array).map_err(misfit)?;
    match made.scalar() == scalar {
        true => Ok(made),
        false => Err(Misfit::of(format!("[{}]", scalar.short_name()), format!("[{}]", made.scalar().short_name()))),
    }
}

/// An array of the elements of a sequence, `None` for one that is missing.
pub(crate) fn elements(object: &Bound<'_, PyAny>, scalar: Scalar) -> Result<Array, Misfit> {
    let misfit = || Misfit::new(format!("[{}]", scalar.short_name()), object);
    // Elements of an array of NumPy are Python's objects in its list, and a masked one is `None` there.
    let listed = match object.hasattr("tolist").unwrap_or(false) {
        true => object.call_method0("tolist").map_err(|_| misfit())?,
        false => object.clone(),
    };
    let mut made = ArrayBuilder::new(scalar, listed.len().unwrap_or(0));
    for (at, one) in sequence(&listed).ok_or_else(misfit)?.enumerate() {
        let one = one.map_err(|_| misfit())?;
        match is_missing(&one, scalar) {
            true => made.push(None),
            false => {
                let value = scalars::read(&one, scalar).map_err(|misfit| misfit.inside(format!("[{at}]")))?;
                made.push(Some(&value));
            }
        }
    }
    Ok(made.finish())
}

/// True for an array of NumPy some of whose elements may be missing.
pub(crate) fn is_masked(object: &Bound<'_, PyAny>) -> bool {
    // Asking a plain array for what it has not takes longer than a short model.
    !object.is_exact_instance_of::<PyUntypedArray>() && object.hasattr("mask").unwrap_or(false)
}

/// The kind and size of an array's elements, as NumPy names them, without the order of their bytes: `f8`.
pub(crate) fn kind(array: &Bound<'_, PyUntypedArray>) -> PyResult<String> {
    let name: String = array.dtype().getattr("str")?.extract()?;
    Ok(name.get(1..).unwrap_or_default().to_owned())
}

/// The elements of a sequence; none of what is none, such as a string.
pub(crate) fn sequence<'py>(
    object: &Bound<'py, PyAny>,
) -> Option<impl Iterator<Item = PyResult<Bound<'py, PyAny>>> + use<'py>> {
    let is_sequence = object.is_instance_of::<PyList>()
        || object.is_instance_of::<PyTuple>()
        || object.cast::<PyUntypedArray>().is_ok();
    if is_sequence { object.try_iter().ok() } else { None }
}

/// An element of an array, `None` where it is missing, but of masks, which hold or do not.
pub(crate) fn element<'py>(py: Python<'py>, value: Option<ScalarValue>, scalar: Scalar) -> PyResult<Bound<'py, PyAny>> {
    match value {
        Some(value) => scalars::object(py, &value),
        None if scalar == Scalar::Unit => Ok(false.into_pyobject(py)?.to_owned().into_any()),
        None => Ok(py.None().into_bound(py)),
    }
}

/// A copy as an array of NumPy, masked if an element is missing; strings are objects.
pub(crate) fn numpy_array<'py>(py: Python<'py>, array: &Array) -> PyResult<Bound<'py, PyAny>> {
    let scalar = array.scalar();
    macro_rules! numbers {
        ($($rust:ident $scalar:ident),*) => {
            match scalar {
                $(Scalar::$scalar => array.numbers::<$rust>().map(|all| PyArray1::from_slice(py, all).into_any()),)*
                _ => None,
            }
        };
    }
    let values = match for_each_number!(numbers) {
        Some(values) => values,
        None => numpy_of(py, scalar, array.len(), |at| array.get(at))?,
    };
    masked_by(values, missing(array, Vec::new()))
}

/// The mask of an array: true where an element is missing. It is written to `spare`. None if no element is missing, or NumPy does not mask their type.
pub(crate) fn missing(array: &Array, spare: Vec<bool>) -> Option<Vec<bool>> {
    let words = array.presence().filter(|_| is_maskable(array.scalar()) && array.first_missing().is_some())?;
    Some(masks::missing(array.len(), words.iter().flat_map(|word| word.to_le_bytes()), spare))
}

/// True for elements that are masked where they are missing: a mask holds or does not, and a string that is missing is `None`.
pub(crate) const fn is_maskable(scalar: Scalar) -> bool {
    !matches!(scalar, Scalar::Unit | Scalar::Text | Scalar::Bytes)
}

/// The array of elements that lie in NumPy in another form than in the library: truth values, dates, moments, durations, strings.
pub(crate) fn numpy_of<'py>(
    py: Python<'py>,
    scalar: Scalar,
    len: usize,
    element: impl Fn(usize) -> Option<ScalarValue>,
) -> PyResult<Bound<'py, PyAny>> {
    let count = |at| match element(at) {
        Some(ScalarValue::Date(Date(days))) => days.into(),
        Some(ScalarValue::Timestamp(Timestamp(count)) | ScalarValue::Duration(Duration(count))) => count,
        // "Not a time".
        _ => i64::MIN,
    };
    Ok(match scalar {
        Scalar::Boolean | Scalar::Unit => {
            let holds = |at| matches!(element(at), Some(ScalarValue::Unit | ScalarValue::Boolean(true)));
            PyArray1::from_vec(py, (0..len).map(holds).collect()).into_any()
        }
        Scalar::Date => PyArray1::from_vec(py, (0..len).map(count).collect()).call_method1("view", ("M8[D]",))?,
        Scalar::Timestamp => PyArray1::from_vec(py, (0..len).map(count).collect()).call_method1("view", ("M8[us]",))?,
        Scalar::Duration => PyArray1::from_vec(py, (0..len).map(count).collect()).call_method1("view", ("m8[us]",))?,
        _ => {
            let made = py.import("numpy")?.call_method1("empty", (len, "O"))?;
            for at in 0..len {
                made.set_item(at, self::element(py, element(at), scalar)?)?;
            }
            made
        }
    })
}

/// The array, masked where a mask of as many elements holds.
pub(crate) fn masked<'py>(values: &Bound<'py, PyAny>, mask: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    values.py().import("numpy.ma")?.call_method1("MaskedArray", (values, mask))
}

/// The array, masked where a mask says so, if there is one.
pub(crate) fn masked_by<'py>(values: Bound<'py, PyAny>, mask: Option<Vec<bool>>) -> PyResult<Bound<'py, PyAny>> {
    let py = values.py();
    mask.map_or_else(|| Ok(values.clone()), |mask| masked(&values, &PyArray1::from_vec(py, mask).into_any()))
}
