//! One value of any type: structs are dicts, or objects with attributes; lists and arrays are sequences and arrays of NumPy; dictionaries are
//! dicts; tensors are arrays of NumPy. How deep values nest is how deep their types do, which the parser limits.

use crate::arrays::{self, sequence};
use crate::edges::Edge;
use crate::handing;
use crate::packages::{Bounds, Imports};
use crate::scalars::{self, Misfit, is_missing};
use crate::tensors;
use cembra::{EdgeType, ListBuilder, QType, Scalar, ScalarValue, Value};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFloat, PyInt, PyList, PyMapping, PyString, PyTuple};
use std::sync::Arc;

/// The value of an object as one of this type.
pub(crate) fn read(object: &Bound<'_, PyAny>, qtype: &QType, bounds: &Bounds) -> Result<Value, Misfit> {
    let misfit = || Misfit::new(qtype, object);
    match qtype {
        QType::Scalar(_) if object.is_none() => Err(misfit()),
        QType::Scalar(scalar) => scalars::read(object, *scalar).map(Value::Scalar),
        QType::Optional(scalar) if is_missing(object, *scalar) => Ok(Value::Missing(*scalar)),
        QType::Optional(scalar) => scalars::read(object, *scalar).map(Value::Present),
        QType::Array(kind, scalar) => {
            arrays::array(object, *scalar, bounds).map(|array| Value::Array(*kind, array.into()))
        }
        QType::Edge(of) => edge(object, *of).ok_or_else(misfit),
        QType::ArrayShape(kind) => object.extract().map(|size| Value::ArrayShape(*kind, size)).map_err(|_| misfit()),
        QType::Tensor(..) => tensors::read(object, qtype, None, bounds),
        QType::Tuple(_) => composite(object, qtype, bounds),
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

/// The value of an object, where there is one of before: memory of a tensor that nobody else has is written again.
fn read_again(
    object: &Bound<'_, PyAny>,
    qtype: &QType,
    before: Option<Value>,
    bounds: &Bounds,
) -> Result<Value, Misfit> {
    match before {
        Some(Value::Tensor(before)) => tensors::read(object, qtype, Some(before), bounds),
        _ => read(object, qtype, bounds),
    }
}

/// The value of an argument, where there is one of before; an array of Arrow that the call has imported is not imported again.
pub(crate) fn read_argument<'py>(
    object: &Bound<'py, PyAny>,
    qtype: &QType,
    before: Option<Value>,
    imports: &Imports<'py>,
) -> Result<Value, Misfit> {
    match qtype {
        QType::Array(kind, scalar) if let Some(import) = imports.known(object) => {
            arrays::of_arrow(object, import.array, *scalar, imports.bounds())
                .map(|array| Value::Array(*kind, array.into()))
        }
        _ => read_again(object, qtype, before, imports.bounds()),
    }
}

/// The bytes of texts in arrays of a value, as objects of Python: an array may have the same text at many places, and each becomes an object.
pub(crate) fn text_bytes(value: &Value) -> u64 {
    let mut open = vec![value];
    let mut bytes = 0_u64;
    while let Some(value) = open.pop() {
        match value {
            Value::Tuple(fields) => open.extend(fields.iter()),
            Value::Array(_, array) if matches!(array.scalar(), Scalar::Text | Scalar::Bytes) => {
                let texts = (0..array.len()).filter_map(|at| array.string(at)).map(scalars::object_bytes);
                bytes = texts.fold(bytes, u64::saturating_add);
            }
            _ => {}
        }
    }
    bytes
}

/// The object of a value, which is consumed: elements of a tensor are moved, and numbers of an array are not copied.
pub(crate) fn into_object(py: Python<'_>, mut value: Value, arrays: Arrays) -> PyResult<Bound<'_, PyAny>> {
    if arrays == Arrays::Numpy
        && let Some((made, _)) = handing::handed(py, &mut value, Vec::new())?
    {
        return Ok(made);
    }
    match value {
        Value::Tensor(tensor) => tensors::moved(py, tensor),
        value => object(py, &value, arrays),
    }
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
fn composite(object: &Bound<'_, PyAny>, qtype: &QType, bounds: &Bounds) -> Result<Value, Misfit> {
    let misfit = || Misfit::new(qtype, object);
    if let Some(of) = qtype.as_optional_struct() {
        let inner = if object.is_none() { None } else { Some(read(object, of, bounds)?) };
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
            list.push(&read(&one, element, bounds).map_err(|misfit| misfit.inside(format!("[{at}]")))?);
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
                read(&found, qtype, bounds).map_err(|misfit| misfit.inside(format!(".{name}")))
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
                read(part, qtype, bounds).map_err(|misfit| misfit.inside(format!("[{at}]")))
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

/// An object as a message shows it, cut where it is long.
fn shown(object: &Bound<'_, PyAny>) -> String {
    let whole = object.repr().map_or_else(|_| "..".to_owned(), |shown| shown.to_string());
    whole.chars().take(40).collect()
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
        Value::Array(_, array) if arrays == Arrays::Numpy => arrays::numpy_array(py, array)?,
        Value::Array(_, array) => {
            let one = |value: Option<ScalarValue>| arrays::element(py, value, array.scalar());
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
