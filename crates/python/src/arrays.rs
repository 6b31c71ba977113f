//! Conversion of arrays of scalars: from Python sequences, NumPy arrays and Arrow arrays to the library's arrays, and from these to NumPy arrays. A
//! missing element is masked in NumPy, null in Arrow, and `None` in a sequence.

use crate::bounds::Bounds;
use crate::lending;
use crate::masks;
use crate::moments;
use crate::packages;
use crate::scalars::{self, Misfit, is_missing};
use crate::signals::{LOOK, listen};
use arrow_array::ArrayRef;
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow_schema::DataType;
use cembra::doors::OutputRoom;
use cembra::values::{ArrayBuilder, ArrayData};
use cembra::{Array, Date, Duration, Limits, Scalar, ScalarValue, Timestamp};
use numpy::ndarray::{Axis, Dimension, IntoDimension};
use numpy::{Element, PyArray, PyArray1, PyArrayMethods, PyReadonlyArray1, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::{PyMemoryError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::iter::{BoundListIterator, BoundTupleIterator};
use pyo3::types::{PyList, PyString, PyTuple};
use std::fmt::Display;

/// Calls the macro `$then` with each number type that NumPy and the library store in the same form, as pairs such as `f64 Float64`.
macro_rules! for_each_number {
    ($then:ident) => {
        $then! { f64 Float64, f32 Float32, i64 Int64, i32 Int32, u64 UInt64 }
    };
}

pub(crate) use for_each_number;

/// Makes an empty list with room for `count` elements. The error is a `MemoryError` if there is not enough memory, which a NumPy array with a stride
/// of 0 can cause: its many elements share one place in memory.
fn reserved<T>(count: usize) -> PyResult<Vec<T>> {
    let mut made = Vec::new();
    let refused = |_| PyMemoryError::new_err(format!("there is no memory for {count} times {} bytes", size_of::<T>()));
    made.try_reserve_exact(count).map_err(refused)?;
    Ok(made)
}

/// Converts a NumPy array of numbers or truth values to an array of `scalar`. `None` if the elements of `object` are of another type, or if `scalar`
/// is `Unit` and `object` is a masked array.
pub(crate) fn numpy_elements(object: &Bound<'_, PyAny>, scalar: Scalar) -> PyResult<Option<Array>> {
    let presence = presence(object)?;
    let plain = if is_masked(object) { object.getattr("data")? } else { object.clone() };
    if !matches!(scalar, Scalar::Boolean | Scalar::Unit) {
        return Ok(numpy_numbers(&plain, scalar, presence));
    }
    let Some(holds) = plain.cast::<PyArray1<bool>>().ok().and_then(|holds| holds.try_readonly().ok()) else {
        return Ok(None);
    };
    let bits = bits(&holds, false)?;
    Ok(match scalar {
        Scalar::Unit if presence.is_some() => None,
        Scalar::Unit => Array::from_parts(scalar, holds.len(), ArrayData::Units, Some(bits)),
        _ => Array::from_parts(scalar, holds.len(), ArrayData::Bits(bits.into()), presence),
    })
}

/// Converts a NumPy array of numbers to an array of `scalar`, which reads them in place if possible. `presence` has one bit per element, set where it
/// is present. `None` if the elements are not of the type that represents `scalar`.
fn numpy_numbers(plain: &Bound<'_, PyAny>, scalar: Scalar, presence: Option<Vec<u64>>) -> Option<Array> {
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

/// Copies the numbers of a NumPy array, of any byte order and strides, to an Arrow array. `kind` is NumPy's name for the type of the numbers, such as
/// `f8`. `presence` has one bit per element, set where the element is present. `None` if Arrow does not have the type.
pub(crate) fn arrow_numbers(
    plain: &Bound<'_, PyAny>,
    kind: &str,
    presence: Option<Vec<u64>>,
) -> PyResult<Option<ArrayRef>> {
    let of = match kind {
        "i1" => DataType::Int8,
        "i2" => DataType::Int16,
        "i4" => DataType::Int32,
        "i8" => DataType::Int64,
        "u1" => DataType::UInt8,
        "u2" => DataType::UInt16,
        "u4" => DataType::UInt32,
        "u8" => DataType::UInt64,
        "f2" => DataType::Float16,
        "f4" => DataType::Float32,
        "f8" => DataType::Float64,
        _ => return Ok(None),
    };
    let copied = plain.py().import("numpy")?.call_method1("ascontiguousarray", (plain, kind))?;
    let bytes = copied.call_method1("view", ("u1",))?.cast_into::<PyArray1<u8>>()?;
    let bytes = bytes.try_readonly().map_err(|error| PyValueError::new_err(error.to_string()))?;
    let len = copied.len()?;
    let nulls = presence.map(|bits| NullBuffer::new(BooleanBuffer::new(Buffer::from_vec(bits), 0, len)));
    let numbers = arrow_data::ArrayData::builder(of).len(len).nulls(nulls).add_buffer(Buffer::from(bytes.as_slice()?));
    let made = numbers.build().map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok(Some(arrow_array::make_array(made)))
}

/// Returns one bit per truth value of `values`, set where the value differs from `absent`.
fn bits(values: &PyReadonlyArray1<'_, bool>, absent: bool) -> PyResult<Vec<u64>> {
    if let Ok(contiguous) = values.as_slice() {
        return Ok(masks::bits(contiguous, absent));
    }
    // With strides, all elements may be the same byte, so there may be no memory for a copy of them all.
    let mut made = reserved(values.len().div_ceil(64))?;
    let mut rest = values.as_array();
    let mut some = reserved(rest.len().min(LOOK))?;
    while !rest.is_empty() {
        let (first, behind) = rest.split_at(Axis(0), rest.len().min(LOOK));
        some.clear();
        some.extend(first.iter().copied());
        made.extend(masks::bits(&some, absent));
        listen(values.py(), some.len() - 1)?;
        rest = behind;
    }
    Ok(made)
}

/// Returns one bit per element of a masked NumPy array, set where the element is present; `None` if `object` is not a masked array.
pub(crate) fn presence(object: &Bound<'_, PyAny>) -> PyResult<Option<Vec<u64>>> {
    if !is_masked(object) {
        return Ok(None);
    }
    let mask = object.py().import("numpy.ma")?.call_method1("getmaskarray", (object,))?;
    let mask = mask.cast_into::<PyArray1<bool>>()?;
    let mask = mask.try_readonly().map_err(|error| PyValueError::new_err(error.to_string()))?;
    bits(&mask, true).map(Some)
}

/// Converts a NumPy array, an object with Arrow's interface, or a sequence to an array of `scalar`.
pub(crate) fn array(object: &Bound<'_, PyAny>, scalar: Scalar, bounds: &Bounds) -> Result<Array, Misfit> {
    let misfit_of = |error| Misfit::of_raised(format!("[{}]", scalar.short_name()), object, error);
    if let Ok(untyped) = object.cast::<PyUntypedArray>()
        && untyped.ndim() == 1
        && let Some(array) = numpy_elements(object, scalar).map_err(misfit_of)?
    {
        return Ok(array);
    }
    if matches!(scalar, Scalar::Date | Scalar::Timestamp | Scalar::Duration)
        && let Ok(untyped) = object.cast::<PyUntypedArray>()
        && untyped.ndim() == 1
        && !is_masked(object)
        && let Some(array) = moments::array(untyped, scalar, None, PyValueError::new_err).map_err(misfit_of)?
    {
        return Ok(array);
    }
    match packages::whole(object, format_args!("[{}]", scalar.short_name()), bounds)? {
        Some(array) => of_arrow(object, array, scalar, bounds),
        None => elements(object, scalar),
    }
}

/// Converts an Arrow array, which was imported from `object`, to an array of `scalar`.
pub(crate) fn of_arrow(
    object: &Bound<'_, PyAny>,
    array: ArrayRef,
    scalar: Scalar,
    bounds: &Bounds,
) -> Result<Array, Misfit> {
    bounds.claim(object, packages::shared_bytes(&array)).map_err(Misfit::raising)?;
    let misfit = |error: cembra_arrow::Error| Misfit::of(format!("[{}]", scalar.short_name()), error.to_string());
    let found = cembra_arrow::scalar(array.data_type());
    let room = OutputRoom::of(Limits::default().array_bytes);
    let made = cembra_arrow::to_model_as(array, scalar, &room);
    match (&made, found) {
        // No conversion takes this type.
        (Err(cembra_arrow::Error::Type { .. }), Some(found)) if found != scalar => {
            Err(Misfit::of(format!("[{}]", scalar.short_name()), format!("[{}]", found.short_name())))
        }
        _ => made.map_err(misfit),
    }
}

/// Reads the elements of a sequence as an array of `scalar`. `None`, `NaT` and other missing values of Python become missing elements.
pub(crate) fn elements(object: &Bound<'_, PyAny>, scalar: Scalar) -> Result<Array, Misfit> {
    let misfit_of = |error| Misfit::of_raised(format!("[{}]", scalar.short_name()), object, error);
    // The list of a NumPy array has Python objects, and `None` for a masked element.
    let listed = match object.hasattr("tolist").map_err(misfit_of)? {
        true => object.call_method0("tolist").map_err(misfit_of)?,
        false => object.clone(),
    };
    objects(&listed, scalar, false)
}

/// Reads the objects in a list or tuple as an array of `scalar`. NaN becomes a missing element if `is_of_pandas` is true.
pub(crate) fn objects(listed: &Bound<'_, PyAny>, scalar: Scalar, is_of_pandas: bool) -> Result<Array, Misfit> {
    let misfit_of = |error| Misfit::of_raised(format!("[{}]", scalar.short_name()), listed, error);
    let elements = sequence(listed, format_args!("[{}]", scalar.short_name()))?;
    let count = elements.size_hint().0;
    if count >= LOOK {
        reserved::<u64>(count).map_err(misfit_of)?;
    }
    let mut made = ArrayBuilder::new(scalar, count);
    for (at, one) in elements.enumerate() {
        listen(listed.py(), at).map_err(misfit_of)?;
        // Texts are common, and are appended without an allocation for each.
        if scalar == Scalar::Text
            && let Ok(text) = one.cast_exact::<PyString>()
            && let Ok(text) = text.to_str()
        {
            made.push_text(Some(text));
            continue;
        }
        match is_missing(&one, scalar) || scalars::is_absent_in(&one, is_of_pandas) {
            true => made.push(None),
            false => {
                let value = scalars::read(&one, scalar).map_err(|misfit| misfit.inside(format!("[{at}]")))?;
                made.push(Some(&value));
            }
        }
    }
    Ok(made.finish())
}

/// Returns true if the object is a masked array of NumPy.
pub(crate) fn is_masked(object: &Bound<'_, PyAny>) -> bool {
    static MASKED: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    // A plain array is recognized first, because the checks below take longer than a short model.
    if object.is_exact_instance_of::<PyUntypedArray>() || object.cast::<PyUntypedArray>().is_err() {
        return false;
    }
    let py = object.py();
    let class = MASKED.get_or_try_init(py, || PyResult::Ok(py.import("numpy.ma")?.getattr("MaskedArray")?.unbind()));
    class.is_ok_and(|class| object.is_instance(class.bind(py)).unwrap_or(false))
}

/// Returns NumPy's name for the type of an array's elements, without the byte order, such as `f8`.
pub(crate) fn kind(array: &Bound<'_, PyUntypedArray>) -> PyResult<String> {
    let name: String = array.dtype().getattr("str")?.extract()?;
    Ok(name.get(1..).unwrap_or_default().to_owned())
}

/// The elements of a list or tuple, which are read from the object's memory. Methods of a subclass are not called, because they may return endless
/// elements.
pub(crate) enum Elements<'py> {
    List(BoundListIterator<'py>),
    Tuple(BoundTupleIterator<'py>),
}

impl<'py> Iterator for Elements<'py> {
    type Item = Bound<'py, PyAny>;

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Elements::List(elements) => elements.next(),
            Elements::Tuple(elements) => elements.next(),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match self {
            Elements::List(elements) => elements.size_hint(),
            Elements::Tuple(elements) => elements.size_hint(),
        }
    }
}

/// Returns the elements of a list, a tuple, or a NumPy array. Every other object, such as a string, is an error.
pub(crate) fn sequence<'py>(object: &Bound<'py, PyAny>, expected: impl Display) -> Result<Elements<'py>, Misfit> {
    if let Ok(tuple) = object.cast::<PyTuple>() {
        return Ok(Elements::Tuple(tuple.iter()));
    }
    // NumPy raises an error if there is no memory for the list, as for a huge array with a stride of 0.
    let listed = match object.cast::<PyUntypedArray>() {
        Ok(_) => &object.call_method0("tolist").map_err(|error| Misfit::of_raised(&expected, object, error))?,
        Err(_) => object,
    };
    listed.cast::<PyList>().map(|list| Elements::List(list.iter())).map_err(|_| Misfit::new(expected, object))
}

/// Converts an array's element of the type `scalar` to a Python object. A missing element becomes `None`, but a missing element of type `Unit`
/// becomes `False`.
pub(crate) fn element<'py>(py: Python<'py>, value: Option<ScalarValue>, scalar: Scalar) -> PyResult<Bound<'py, PyAny>> {
    match value {
        Some(value) => scalars::object(py, &value),
        None if scalar == Scalar::Unit => Ok(false.into_pyobject(py)?.to_owned().into_any()),
        None => Ok(py.None().into_bound(py)),
    }
}

/// Allocates a NumPy array of `len` zeros. If there is not enough memory, the result is an error, not a panic.
#[inline]
pub(crate) fn zeros<T: Element>(py: Python<'_>, len: usize) -> PyResult<Bound<'_, PyArray1<T>>> {
    if len < LOOK { Ok(PyArray1::zeros(py, len, false)) } else { zeros_of(py, [len]) }
}

/// Allocates a NumPy array of zeros with the given extents. If there is not enough memory, the result is an error, not a panic.
pub(crate) fn zeros_of<T: Element, D: IntoDimension>(
    py: Python<'_>,
    extents: D,
) -> PyResult<Bound<'_, PyArray<T, D::Dim>>> {
    let extents = extents.into_dimension();
    // For few zeros, calling NumPy's function takes longer than making them here.
    if extents.size_checked().is_some_and(|count| count < LOOK) {
        return Ok(PyArray::zeros(py, extents, false));
    }
    Ok(py.import("numpy")?.call_method1("zeros", (extents.slice(), T::get_dtype(py)))?.cast_into()?)
}

/// Makes a NumPy array of `len` elements from `element`, a function of the index. `look` runs after every `LOOK` elements, and its error ends the
/// loop.
fn filled<T: Element + Copy>(
    py: Python<'_>,
    len: usize,
    look: impl Fn() -> PyResult<()>,
    element: impl Fn(usize) -> T,
) -> PyResult<Bound<'_, PyAny>> {
    let made = zeros::<T>(py, len)?;
    let mut elements = made.try_readwrite().map_err(|error| PyValueError::new_err(error.to_string()))?;
    for (some, first) in elements.as_slice_mut()?.chunks_mut(LOOK).zip((0..).step_by(LOOK)) {
        some.iter_mut().zip(first..).for_each(|(to, at)| *to = element(at));
        if some.len() == LOOK {
            look()?;
        }
    }
    drop(elements);
    Ok(made.into_any())
}

/// Copies numbers to a new NumPy array.
fn copied<'py, T: Element + Copy>(py: Python<'py>, numbers: &[T]) -> PyResult<Bound<'py, PyAny>> {
    if numbers.len() < LOOK {
        return Ok(PyArray1::from_slice(py, numbers).into_any());
    }
    let made = zeros::<T>(py, numbers.len())?;
    let mut elements = made.try_readwrite().map_err(|error| PyValueError::new_err(error.to_string()))?;
    elements.as_slice_mut()?.copy_from_slice(numbers);
    drop(elements);
    Ok(made.into_any())
}

/// Copies an array to a NumPy array, which is a masked array if an element is missing. Strings become objects. `look` is called after every `LOOK`
/// converted elements, and its error ends the copying.
pub(crate) fn numpy_array<'py>(
    py: Python<'py>,
    array: &Array,
    look: impl Fn() -> PyResult<()>,
) -> PyResult<Bound<'py, PyAny>> {
    let scalar = array.scalar();
    macro_rules! numbers {
        ($($rust:ident $scalar:ident),*) => {
            match scalar {
                Scalar::WeakFloat => array.numbers::<f64>().map(|all| copied(py, all)).transpose()?,
                $(Scalar::$scalar => array.numbers::<$rust>().map(|all| copied(py, all)).transpose()?,)*
                _ => None,
            }
        };
    }
    let values = match for_each_number!(numbers) {
        Some(values) => values,
        None => numpy_of(py, scalar, array.len(), look, |at| array.get(at))?,
    };
    masked_by(values, missing(array, Vec::new()))
}

/// Returns the NumPy mask of an array, written to `spare`: true where an element is missing. `None` if no element is missing, or if NumPy arrays for
/// elements of this type are not masked (see [`is_maskable`]).
pub(crate) fn missing(array: &Array, spare: Vec<bool>) -> Option<Vec<bool>> {
    let words = array.presence().filter(|_| is_maskable(array.scalar()) && array.first_missing().is_some())?;
    Some(masks::missing(array.len(), words.iter().flat_map(|word| word.to_le_bytes()), spare))
}

/// Returns true if missing elements of the type `scalar` are masked in NumPy arrays. Instead of being masked, a missing element of type `Unit` is
/// `False`, and a missing string is `None`.
pub(crate) const fn is_maskable(scalar: Scalar) -> bool {
    !matches!(scalar, Scalar::Unit | Scalar::Text | Scalar::Bytes)
}

/// Makes a NumPy array with elements that NumPy stores in another form than the library: truth values, dates, timestamps, durations, strings.
/// `element` returns the element at an index. `look` is called after every `LOOK` elements, and its error ends the copying.
pub(crate) fn numpy_of<'py>(
    py: Python<'py>,
    scalar: Scalar,
    len: usize,
    look: impl Fn() -> PyResult<()>,
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
            filled(py, len, look, holds)?
        }
        Scalar::Date => filled(py, len, look, count)?.call_method1("view", ("M8[D]",))?,
        Scalar::Timestamp => filled(py, len, look, count)?.call_method1("view", ("M8[us]",))?,
        Scalar::Duration => filled(py, len, look, count)?.call_method1("view", ("m8[us]",))?,
        _ => {
            let made = py.import("numpy")?.call_method1("empty", (len, "O"))?;
            for at in 0..len {
                made.set_item(at, self::element(py, element(at), scalar)?)?;
                if at % LOOK == LOOK - 1 {
                    look()?;
                }
            }
            made
        }
    })
}

/// Makes a masked array of NumPy. `mask` has one truth value per element of `values`, true where the element is masked.
pub(crate) fn masked<'py>(values: &Bound<'py, PyAny>, mask: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    values.py().import("numpy.ma")?.call_method1("MaskedArray", (values, mask))
}

/// Makes a masked array of NumPy from `values` and `mask`; returns `values` if there is no mask.
pub(crate) fn masked_by<'py>(values: Bound<'py, PyAny>, mask: Option<Vec<bool>>) -> PyResult<Bound<'py, PyAny>> {
    let py = values.py();
    mask.map_or_else(|| Ok(values.clone()), |mask| masked(&values, &PyArray1::from_vec(py, mask).into_any()))
}
