//! One value of any type: structs are dicts, or objects with attributes; lists and arrays are sequences and arrays of NumPy; dictionaries are
//! dicts; tensors are arrays of NumPy. How deep values nest is how deep their types do, which the parser limits.

use crate::columns::{arrow, is_arrow};
use crate::edges::Edge;
use crate::scalars::{self, Misfit};
use crate::tensors;
use cembra::{
    Array, ArrayBuilder, ArrayData, Date, Duration, EdgeType, ListBuilder, QType, Scalar, ScalarValue, Timestamp, Value,
};
use numpy::{PyArray1, PyArrayMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFloat, PyInt, PyList, PyMapping, PyString, PyTuple};
use std::sync::Arc;

/// The value of an object as one of this type.
pub(crate) fn read(object: &Bound<'_, PyAny>, qtype: &QType) -> Result<Value, Misfit> {
    let misfit = || Misfit::new(qtype, object);
    match qtype {
        QType::Scalar(_) if object.is_none() => Err(misfit()),
        QType::Scalar(scalar) => scalars::read(object, *scalar).map(Value::Scalar),
        QType::Optional(scalar) if is_missing(object, *scalar) => Ok(Value::Missing(*scalar)),
        QType::Optional(scalar) => scalars::read(object, *scalar).map(Value::Present),
        QType::Array(kind, scalar) => array(object, *scalar).map(|array| Value::Array(*kind, array.into())),
        QType::Edge(of) => edge(object, *of).ok_or_else(misfit),
        QType::ArrayShape(kind) => object.extract().map(|size| Value::ArrayShape(*kind, size)).map_err(|_| misfit()),
        QType::Tensor(..) => tensors::read(object, qtype, None),
        QType::Tuple(_) => composite(object, qtype),
        _ => Err(misfit()),
    }
}

/// The number of Python that is given where one of its type is wanted: most values of most calls, told apart by two comparisons.
#[inline]
pub(crate) fn number(object: &Bound<'_, PyAny>, qtype: &QType) -> Option<Value> {
    let (scalar, is_optional) = match qtype {
        QType::Scalar(scalar) => (scalar, false),
        QType::Optional(scalar) => (scalar, true),
        _ => return None,
    };
    let number = match scalar {
        Scalar::Float64 => ScalarValue::Float64(object.cast_exact::<PyFloat>().ok()?.value()),
        Scalar::Int64 => ScalarValue::Int64(object.cast_exact::<PyInt>().ok()?.extract().ok()?),
        _ => return None,
    };
    Some(if is_optional { Value::Present(number) } else { Value::Scalar(number) })
}

/// The value likewise, where there is one of before: memory of a tensor that nobody else has is written again.
pub(crate) fn read_again(object: &Bound<'_, PyAny>, qtype: &QType, before: Option<Value>) -> Result<Value, Misfit> {
    match before {
        Some(Value::Tensor(before)) => tensors::read(object, qtype, Some(before)),
        _ => read(object, qtype),
    }
}

/// The object of a value that nobody needs any more: elements of a tensor are moved.
pub(crate) fn into_object(py: Python<'_>, value: Value, arrays: Arrays) -> PyResult<Bound<'_, PyAny>> {
    match value {
        Value::Tensor(tensor) => tensors::moved(py, tensor),
        value => object(py, &value, arrays),
    }
}

/// True for `None`, and for a mask that does not hold.
fn is_missing(object: &Bound<'_, PyAny>, scalar: Scalar) -> bool {
    object.is_none() || (scalar == Scalar::Unit && object.extract::<bool>().is_ok_and(|holds| !holds))
}

/// An edge; one to a single group is how many elements there are.
fn edge(object: &Bound<'_, PyAny>, of: EdgeType) -> Option<Value> {
    let made = match of {
        EdgeType::Scalars => return None,
        EdgeType::ToScalar(kind) => cembra::Edge::to_scalar(kind, object.extract().ok()?),
        EdgeType::Arrays(kind) => {
            let given = object.cast::<Edge>().ok()?.get();
            // Nothing is copied if it is of the kind already.
            if given.0.kind() == kind {
                return (given.0.edge_type() == of).then(|| Value::Edge(given.0.clone()));
            }
            given.0.of_kind(kind)
        }
    };
    (made.edge_type() == of).then(|| Value::Edge(made.into()))
}

/// A struct, a tuple, a list of structs, or a dictionary.
fn composite(object: &Bound<'_, PyAny>, qtype: &QType) -> Result<Value, Misfit> {
    let misfit = || Misfit::new(qtype, object);
    if let Some(of) = qtype.as_optional_struct() {
        let inner = if object.is_none() { None } else { Some(read(object, of)?) };
        return Value::optional_struct(of, inner).ok_or_else(misfit);
    }
    if let Some((key, value)) = qtype.as_map() {
        let entries = object.cast::<PyDict>().map_err(|_| misfit())?.iter().map(|(name, given)| {
            let inside = |misfit: Misfit| misfit.inside(format!("[{}]", shown(&name)));
            let key = scalars::read(&name, key).map_err(inside)?;
            let value =
                if is_missing(&given, value) { None } else { Some(scalars::read(&given, value).map_err(inside)?) };
            Ok((key, value))
        });
        let entries: Vec<(ScalarValue, Option<ScalarValue>)> = entries.collect::<Result<_, _>>()?;
        return Value::map(key, value, entries).ok_or_else(misfit);
    }
    if let Some(element) = qtype.element() {
        let mut list = ListBuilder::new(element).ok_or_else(misfit)?;
        for (at, one) in sequence(object).ok_or_else(misfit)?.enumerate() {
            let one = one.map_err(|_| misfit())?;
            list.push(&read(&one, element).map_err(|misfit| misfit.inside(format!("[{at}]")))?);
        }
        return Ok(list.finish());
    }
    let types = qtype.as_tuple().ok_or_else(misfit)?;
    let values: Vec<Value> = match types.names() {
        Some(names) => {
            let names = names.iter();
            let field = |(name, qtype): (&Arc<str>, &QType)| {
                let found = field(object, name).map_err(|_| misfit())?;
                let found = found.unwrap_or_else(|| object.py().None().into_bound(object.py()));
                read(&found, qtype).map_err(|misfit| misfit.inside(format!(".{name}")))
            };
            names.zip(types.iter()).map(field).collect::<Result<_, _>>()?
        }
        None => {
            let parts: Vec<Bound<'_, PyAny>> =
                sequence(object).ok_or_else(misfit)?.collect::<PyResult<_>>().map_err(|_| misfit())?;
            if parts.len() != types.len() {
                return Err(misfit());
            }
            let part = |(at, (part, qtype)): (usize, (&Bound<'_, PyAny>, &QType))| {
                read(part, qtype).map_err(|misfit| misfit.inside(format!("[{at}]")))
            };
            parts.iter().zip(types.iter()).enumerate().map(part).collect::<Result<_, _>>()?
        }
    };
    Ok(Value::Tuple(types.with(values)))
}

/// The field of a struct: the entry of a mapping, or else an attribute; none if there is no such.
fn field<'py>(object: &Bound<'py, PyAny>, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
    if let Ok(dict) = object.cast::<PyDict>() {
        return dict.get_item(name);
    }
    if object.is_none() || object.is_instance_of::<PyString>() || scalars::scalar_of(object).is_some() {
        return Err(PyTypeError::new_err("no struct"));
    }
    if let Ok(mapping) = object.cast::<PyMapping>() {
        return Ok(if mapping.contains(name)? { Some(mapping.get_item(name)?) } else { None });
    }
    object.getattr_opt(name)
}

/// The elements of a sequence; none of what is none, such as a string.
fn sequence<'py>(object: &Bound<'py, PyAny>) -> Option<impl Iterator<Item = PyResult<Bound<'py, PyAny>>> + use<'py>> {
    let is_sequence = object.is_instance_of::<PyList>()
        || object.is_instance_of::<PyTuple>()
        || object.cast::<PyUntypedArray>().is_ok();
    if is_sequence { object.try_iter().ok() } else { None }
}

/// An object as a message shows it, cut where it is long.
fn shown(object: &Bound<'_, PyAny>) -> String {
    let whole = object.repr().map_or_else(|_| "..".to_owned(), |shown| shown.to_string());
    whole.chars().take(40).collect()
}

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
        let bits = bits(holds.as_array().iter().copied());
        return match scalar {
            Scalar::Unit if presence.is_some() => None,
            Scalar::Unit => Array::from_parts(scalar, holds.len(), ArrayData::Units, Some(bits)),
            _ => Array::from_parts(scalar, holds.len(), ArrayData::Bits(bits.into()), presence),
        };
    }
    macro_rules! copied {
        ($($rust:ident $scalar:ident),*) => { $(
            if scalar.representation() == Scalar::$scalar {
                let given = plain.cast::<PyArray1<$rust>>().ok()?.try_readonly().ok()?;
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

/// A bit for each truth value, the lowest first.
fn bits(values: impl ExactSizeIterator<Item = bool>) -> Vec<u64> {
    let mut bits = vec![0_u64; values.len().div_ceil(64)];
    for (at, holds) in values.enumerate() {
        bits[at / 64] |= u64::from(holds) << (at % 64);
    }
    bits
}

/// A bit for each element of a masked array that is there; none of an array that has no mask.
pub(crate) fn presence(object: &Bound<'_, PyAny>) -> PyResult<Option<Vec<u64>>> {
    if !is_masked(object) {
        return Ok(None);
    }
    let mask = object.py().import("numpy.ma")?.call_method1("getmaskarray", (object,))?;
    let mask = mask.cast_into::<PyArray1<bool>>()?;
    let mask = mask.try_readonly().map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok(Some(bits(mask.as_array().iter().map(|is_missing| !is_missing))))
}

/// An array of elements of this type.
pub(crate) fn array(object: &Bound<'_, PyAny>, scalar: Scalar) -> Result<Array, Misfit> {
    if let Ok(untyped) = object.cast::<PyUntypedArray>()
        && untyped.ndim() == 1
        && let Some(array) = numpy_elements(object, scalar)
    {
        return Ok(array);
    }
    if object.cast::<PyUntypedArray>().is_err()
        && is_arrow(object)
        && let Ok(array) = arrow(object)
    {
        let misfit = |error: cembra_arrow::Error| Misfit::of(format!("[{}]", scalar.short_name()), error.to_string());
        let made = cembra_arrow::to_model(array).map_err(misfit)?;
        return match made.scalar() == scalar {
            true => Ok(made),
            false => Err(Misfit::of(format!("[{}]", scalar.short_name()), format!("[{}]", made.scalar().short_name()))),
        };
    }
    elements(object, scalar)
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

/// Whether arrays that a model makes become arrays of NumPy, or lists.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Arrays {
    Lists,
    Numpy,
}

/// The object of a value.
pub(crate) fn object<'py>(py: Python<'py>, value: &Value, arrays: Arrays) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Value::Scalar(scalar) | Value::Present(scalar) => scalars::object(py, scalar)?,
        // A mask is whether it holds.
        Value::Missing(Scalar::Unit) => false.into_pyobject(py)?.to_owned().into_any(),
        Value::Missing(_) | Value::Nothing => py.None().into_bound(py),
        Value::Array(_, array) if arrays == Arrays::Numpy => numpy_array(py, array)?,
        Value::Array(_, array) => {
            let one = |value: Option<ScalarValue>| element(py, value, array.scalar());
            PyList::new(py, array.iter().map(one).collect::<PyResult<Vec<_>>>()?)?.into_any()
        }
        Value::Tensor(tensor) => tensors::moved(py, tensor.clone())?,
        Value::ArrayShape(_, size) => size.into_pyobject(py)?.into_any(),
        Value::Edge(edge) => match edge.edge_type() {
            EdgeType::ToScalar(_) => edge.child_size().into_pyobject(py)?.into_any(),
            _ => Edge(edge.clone()).into_pyobject(py)?.into_any(),
        },
        Value::Tuple(fields) => {
            if let Some(of) = value.as_optional_struct() {
                return of.map_or_else(|| Ok(py.None().into_bound(py)), |of| object(py, of, arrays));
            }
            if let Some(len) = value.list_len() {
                let elements = (0..len).filter_map(|at| value.element(at));
                let elements = elements.map(|one| object(py, &one, arrays)).collect::<PyResult<Vec<_>>>()?;
                return Ok(match value.qtype().as_map() {
                    Some(_) => py.get_type::<PyDict>().call1((elements,))?,
                    None => PyList::new(py, elements)?.into_any(),
                });
            }
            let parts = fields.iter().map(|part| object(py, part, arrays)).collect::<PyResult<Vec<_>>>()?;
            match fields.names() {
                Some(names) => {
                    let made = PyDict::new(py);
                    names.iter().zip(parts).try_for_each(|(name, part)| made.set_item(&**name, part))?;
                    made.into_any()
                }
                None => PyTuple::new(py, parts)?.into_any(),
            }
        }
        other => PyString::new(py, &other.to_string()).into_any(),
    })
}

/// An element of an array, `None` where it is missing, but of masks, which hold or do not.
pub(crate) fn element<'py>(py: Python<'py>, value: Option<ScalarValue>, scalar: Scalar) -> PyResult<Bound<'py, PyAny>> {
    match value {
        Some(value) => scalars::object(py, &value),
        None if scalar == Scalar::Unit => Ok(false.into_pyobject(py)?.to_owned().into_any()),
        None => Ok(py.None().into_bound(py)),
    }
}

/// An array of NumPy, masked if an element is missing; strings are objects.
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
    let missing = || (0..array.len()).map(|at| !array.is_present(at)).collect();
    let mask = array.first_missing().filter(|_| is_maskable(scalar)).map(|_| missing());
    let values = match for_each_number!(numbers) {
        Some(values) => values,
        None => numpy_of(py, scalar, array.len(), |at| array.get(at))?,
    };
    masked(py, values, mask)
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

/// The array, masked where a mask says so.
pub(crate) fn masked<'py>(
    py: Python<'py>,
    values: Bound<'py, PyAny>,
    mask: Option<Vec<bool>>,
) -> PyResult<Bound<'py, PyAny>> {
    match mask {
        Some(mask) => {
            let mask = PyArray1::from_vec(py, mask);
            py.import("numpy.ma")?.call_method1("MaskedArray", (values, mask))
        }
        None => Ok(values),
    }
}
