//! Arrays of scalars: from sequences of Python, from arrays of NumPy and of Arrow, and back to NumPy's. Missing elements are masked ones, nulls, or
//! `None`.

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
use cembra::{Array, ArrayBuilder, ArrayData, Date, Duration, Limits, Scalar, ScalarValue, Timestamp};
use numpy::ndarray::{Axis, Dimension, IntoDimension};
use numpy::{Element, PyArray, PyArray1, PyArrayMethods, PyReadonlyArray1, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::{PyMemoryError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::iter::{BoundListIterator, BoundTupleIterator};
use pyo3::types::{PyList, PyString, PyTuple};
use std::fmt::Display;

/// A type that elements of arrays of NumPy have and elements of models.
macro_rules! for_each_number {
    ($then:ident) => {
        $then! { f64 Float64, f32 Float32, i64 Int64, i32 Int32, u64 UInt64 }
    };
}

pub(crate) use for_each_number;

/// Memory for a number of values: a virtual array has more elements than there is memory for.
fn reserved<T>(count: usize) -> PyResult<Vec<T>> {
    let mut made = Vec::new();
    let refused = |_| PyMemoryError::new_err(format!("there is no memory for {count} times {} bytes", size_of::<T>()));
    made.try_reserve_exact(count).map_err(refused)?;
    Ok(made)
}

/// The array of an array of NumPy whose elements are of this type, or are truth values; masks are of truth values. None of another one.
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

/// The array of an array of NumPy whose elements are numbers of this type, of which the bits of `presence` are there; none of another one.
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

/// The numbers of an array of NumPy as an array of Arrow, whatever their size, order and strides are, of which the bits of `presence` are there.
/// `None` of a type that Arrow has not.
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

/// A bit for each truth value of an array that is not `absent`.
fn bits(values: &PyReadonlyArray1<'_, bool>, absent: bool) -> PyResult<Vec<u64>> {
    if let Ok(contiguous) = values.as_slice() {
        return Ok(masks::bits(contiguous, absent));
    }
    // Elements at strides may all be one: there is no memory for each of them.
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

/// A bit for each element of a masked array that is there; none of an array that has no mask.
pub(crate) fn presence(object: &Bound<'_, PyAny>) -> PyResult<Option<Vec<u64>>> {
    if !is_masked(object) {
        return Ok(None);
    }
    let mask = object.py().import("numpy.ma")?.call_method1("getmaskarray", (object,))?;
    let mask = mask.cast_into::<PyArray1<bool>>()?;
    let mask = mask.try_readonly().map_err(|error| PyValueError::new_err(error.to_string()))?;
    bits(&mask, true).map(Some)
}

/// An array of elements of this type.
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

/// An array of Arrow as one of elements of this type.
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
        // No conversion has the type.
        (Err(cembra_arrow::Error::Type { .. }), Some(found)) if found != scalar => {
            Err(Misfit::of(format!("[{}]", scalar.short_name()), format!("[{}]", found.short_name())))
        }
        _ => made.map_err(misfit),
    }
}

/// An array of the elements of a sequence, `None` and its like for one that is missing.
pub(crate) fn elements(object: &Bound<'_, PyAny>, scalar: Scalar) -> Result<Array, Misfit> {
    let misfit_of = |error| Misfit::of_raised(format!("[{}]", scalar.short_name()), object, error);
    // Elements of an array of NumPy are Python's objects in its list, and a masked one is `None` there.
    let listed = match object.hasattr("tolist").map_err(misfit_of)? {
        true => object.call_method0("tolist").map_err(misfit_of)?,
        false => object.clone(),
    };
    objects(&listed, scalar, false)
}

/// An array of the objects in a list or tuple. In columns of pandas NaN is missing, too.
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
        // Most objects are texts, which need no memory of their own on the way.
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

/// True for an array of NumPy some of whose elements may be missing.
pub(crate) fn is_masked(object: &Bound<'_, PyAny>) -> bool {
    static MASKED: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    // Asking a plain array for what it has not takes longer than a short model.
    if object.is_exact_instance_of::<PyUntypedArray>() || object.cast::<PyUntypedArray>().is_err() {
        return false;
    }
    let py = object.py();
    let class = MASKED.get_or_try_init(py, || PyResult::Ok(py.import("numpy.ma")?.getattr("MaskedArray")?.unbind()));
    class.is_ok_and(|class| object.is_instance(class.bind(py)).unwrap_or(false))
}

/// The kind and size of an array's elements, as NumPy names them, without the order of their bytes: `f8`.
pub(crate) fn kind(array: &Bound<'_, PyUntypedArray>) -> PyResult<String> {
    let name: String = array.dtype().getattr("str")?.extract()?;
    Ok(name.get(1..).unwrap_or_default().to_owned())
}

/// The elements of a sequence. They are those in its memory: what a subclass says of its length or its elements may have no end.
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

/// The elements of a list, a tuple, or an array of NumPy, and of nothing else, such as a string.
pub(crate) fn sequence<'py>(object: &Bound<'py, PyAny>, expected: impl Display) -> Result<Elements<'py>, Misfit> {
    if let Ok(tuple) = object.cast::<PyTuple>() {
        return Ok(Elements::Tuple(tuple.iter()));
    }
    // NumPy says of a virtual array that there is no memory for its list.
    let listed = match object.cast::<PyUntypedArray>() {
        Ok(_) => &object.call_method0("tolist").map_err(|error| Misfit::of_raised(&expected, object, error))?,
        Err(_) => object,
    };
    listed.cast::<PyList>().map(|list| Elements::List(list.iter())).map_err(|_| Misfit::new(expected, object))
}

/// An element of an array, `None` where it is missing, but of masks, which hold or do not.
pub(crate) fn element<'py>(py: Python<'py>, value: Option<ScalarValue>, scalar: Scalar) -> PyResult<Bound<'py, PyAny>> {
    match value {
        Some(value) => scalars::object(py, &value),
        None if scalar == Scalar::Unit => Ok(false.into_pyobject(py)?.to_owned().into_any()),
        None => Ok(py.None().into_bound(py)),
    }
}

/// An array of NumPy of zeros. That there is no memory for it is an error, and no defect.
#[inline]
pub(crate) fn zeros<T: Element>(py: Python<'_>, len: usize) -> PyResult<Bound<'_, PyArray1<T>>> {
    if len < LOOK { Ok(PyArray1::zeros(py, len, false)) } else { zeros_of(py, [len]) }
}

/// The same, of these extents.
pub(crate) fn zeros_of<T: Element, D: IntoDimension>(
    py: Python<'_>,
    extents: D,
) -> PyResult<Bound<'_, PyArray<T, D::Dim>>> {
    let extents = extents.into_dimension();
    // NumPy's function takes longer than few zeros.
    if extents.size_checked().is_some_and(|count| count < LOOK) {
        return Ok(PyArray::zeros(py, extents, false));
    }
    Ok(py.import("numpy")?.call_method1("zeros", (extents.slice(), T::get_dtype(py)))?.cast_into()?)
}

/// An array of NumPy with the results of a function at each place. `look` runs after every `LOOK` places, and may end it.
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

/// A copy of numbers as an array of NumPy.
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

/// A copy as an array of NumPy, masked if an element is missing; strings are objects. `look` runs after every `LOOK` elements that are converted.
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

/// The mask of an array: true where an element is missing. It is written to `spare`. None if no element is missing, or NumPy does not mask their type.
pub(crate) fn missing(array: &Array, spare: Vec<bool>) -> Option<Vec<bool>> {
    let words = array.presence().filter(|_| is_maskable(array.scalar()) && array.first_missing().is_some())?;
    Some(masks::missing(array.len(), words.iter().flat_map(|word| word.to_le_bytes()), spare))
}

/// True for elements that are masked where they are missing: a mask holds or does not, and a string that is missing is `None`.
pub(crate) const fn is_maskable(scalar: Scalar) -> bool {
    !matches!(scalar, Scalar::Unit | Scalar::Text | Scalar::Bytes)
}

/// Makes the array of elements that NumPy stores in another form than the library: truth values, dates, moments, durations, strings. `look` runs
/// after every `LOOK` elements, and may end the copying.
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

/// The array, masked where a mask of as many elements holds.
pub(crate) fn masked<'py>(values: &Bound<'py, PyAny>, mask: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    values.py().import("numpy.ma")?.call_method1("MaskedArray", (values, mask))
}

/// The array, masked where a mask says so, if there is one.
pub(crate) fn masked_by<'py>(values: Bound<'py, PyAny>, mask: Option<Vec<bool>>) -> PyResult<Bound<'py, PyAny>> {
    let py = values.py();
    mask.map_or_else(|| Ok(values.clone()), |mask| masked(&values, &PyArray1::from_vec(py, mask).into_any()))
}
