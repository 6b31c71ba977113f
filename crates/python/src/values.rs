//! Conversion of a single value of any type between Python and the library. In Python, structs are dicts or objects with attributes, lists and
//! arrays are sequences or NumPy arrays, dictionaries are dicts, and tensors are NumPy arrays. Values nest as deep as their types, and the parser
//! limits the depth of types.

use crate::arrays::{self, sequence};
use crate::bounds::Bounds;
use crate::edges::Edge;
use crate::errors;
use crate::exports::arrow_object;
use crate::handing;
use crate::interrupt::check;
use crate::packages::{Imports, Package, is_arrow, is_pandas_column};
use crate::scalars::{self, Misfit, is_missing};
use crate::signals::{LOOK, listen};
use crate::tensors;
use cembra::derived::ListBuilder;
use cembra::values::EdgeType;
use cembra::{Array, Cancellation, Field, QType, RunOptions, Scalar, ScalarValue, Value};
use numpy::PyUntypedArray;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFloat, PyInt, PyList, PyMapping, PyString, PyTuple};
use std::cell::Cell;
use std::sync::Arc;

/// Converts a Python object to a value of type `qtype`.
pub(crate) fn read(object: &Bound<'_, PyAny>, qtype: &QType, bounds: &Bounds) -> Result<Value, Misfit> {
    let misfit = || Misfit::new(qtype, object);
    match qtype {
        QType::Scalar(_) if object.is_none() => Err(misfit()),
        QType::Scalar(_) if scalars::is_absent_in(object, false) => Err(Misfit::of(
            qtype,
            format!("{}, a missing value: declare the input with `?`", scalars::type_name(object)),
        )),
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

/// Converts an exact `float` to an `f64` if `qtype` is `f64` or `f64?`, and an exact `int` to an `i64` if `qtype` is `i64` or `i64?`; else the result
/// is `None`. This fast check suffices for most arguments.
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

/// Converts the argument for an input to a value. If `before`, the input's previous value, is a tensor without other owners, its memory is reused.
/// An Arrow array that the call has imported already is not imported again.
pub(crate) fn read_argument<'py>(
    object: &Bound<'py, PyAny>,
    qtype: &QType,
    before: Option<Value>,
    imports: &Imports<'py>,
) -> Result<Value, Misfit> {
    match (qtype, before) {
        (QType::Array(kind, scalar), _) if let Some(import) = imports.known(object) => {
            arrays::of_arrow(object, import.array, *scalar, imports.bounds())
                .map(|array| Value::Array(*kind, array.into()))
        }
        (_, Some(Value::Tensor(before))) => tensors::read(object, qtype, Some(before), imports.bounds()),
        _ => read(object, qtype, imports.bounds()),
    }
}

/// The bytes of a tuple, or of a dict of up to five entries, without its contents; `ENTRY` is for each further entry. The sizes are those of
/// `sys.getsizeof` and the collector in CPython 3.12 on a 64-bit system.
const SHELL: u64 = 200;
const ENTRY: u64 = 64;

/// The bytes that are counted for a NumPy array, without its elements.
pub(crate) const NUMPY: u64 = 128;

/// The bytes per element of a NumPy array with values of type `scalar`, without the characters of strings.
pub(crate) const fn numpy_size(scalar: Scalar) -> u64 {
    match scalar {
        Scalar::Unit | Scalar::Boolean => 1,
        Scalar::Int32 | Scalar::Float32 => 4,
        // A pointer, and the object.
        Scalar::Text | Scalar::Bytes => 8 + scalars::object_size(scalar),
        _ => 8,
    }
}

/// The bytes of the strings of an array as Python objects. A string that is at many places counts each time, because each becomes an object.
fn string_bytes(array: &Array) -> u64 {
    if !array.scalar().is_string() {
        return 0;
    }
    let strings = (0..array.len()).filter_map(|at| array.string(at)).map(scalars::object_bytes);
    strings.fold(0, u64::saturating_add)
}

/// The bytes of a tuple or dict of `entries` entries, without its contents.
const fn shell(entries: usize) -> u64 {
    SHELL.saturating_add((entries as u64).saturating_sub(5).saturating_mul(ENTRY))
}

/// Returns two sizes for a list of structs as Python objects: the bytes per element without strings, and the bytes of all strings.
fn element_bytes(list: &Value) -> (u64, u64) {
    match list {
        Value::Tuple(members) => members
            .iter()
            .map(element_bytes)
            .fold((shell(members.len()), 0), |sum, of| (sum.0.saturating_add(of.0), sum.1.saturating_add(of.1))),
        Value::Array(_, array) => (scalars::object_size(array.scalar()), string_bytes(array)),
        _ => (0, 0),
    }
}

/// The bytes that a value takes as Python objects. A single scalar and a tensor count 0; for numbers that NumPy views in place, only the mask counts.
/// Only strings are read to find the size, because all other sizes follow from lengths.
pub(crate) fn object_bytes(value: &Value, arrays: Arrays) -> u64 {
    match value {
        Value::Array(_, array) => {
            let (len, scalar) = (array.len() as u64, array.scalar());
            let each = match arrays {
                Arrays::Lists => scalars::LIST_SLOT_BYTES + scalars::object_size(scalar),
                // An array that NumPy views needs only a mask.
                Arrays::Numpy if handing::can_be_viewed(array) => 1,
                Arrays::Numpy | Arrays::Arrow(_) => numpy_size(scalar),
            };
            len.saturating_mul(each).saturating_add(string_bytes(array))
        }
        Value::Tuple(members) => match value.list_len() {
            Some(len) => {
                let (each, strings) = element_bytes(value);
                (len as u64).saturating_mul(each.saturating_add(scalars::LIST_SLOT_BYTES)).saturating_add(strings)
            }
            None => members.iter().fold(shell(members.len()), |sum, member| {
                let own = match member.as_scalar() {
                    Some(ScalarValue::Text(text)) => SHELL.saturating_add(scalars::object_bytes(text.as_bytes())),
                    Some(ScalarValue::Bytes(bytes)) => SHELL.saturating_add(bytes.len() as u64),
                    Some(scalar) => scalars::object_size(scalar.scalar()),
                    None => object_bytes(member, arrays),
                };
                sum.saturating_add(own)
            }),
        },
        _ => 0,
    }
}

/// The options of a conversion of values to Python objects: the kind of Python arrays, the most bytes of all objects, and the token that ends the
/// conversion.
pub(crate) struct ConversionOptions {
    pub(crate) arrays: Arrays,
    /// The most bytes that the Python objects may take.
    pub(crate) most_bytes: u64,
    /// The token that ends a long conversion.
    token: Option<Cancellation>,
    /// The number of elements made so far.
    made: Cell<usize>,
}

impl ConversionOptions {
    /// Begins a conversion to objects of at most `most_bytes` bytes.
    pub(crate) const fn of(arrays: Arrays, most_bytes: u64) -> ConversionOptions {
        ConversionOptions { arrays, most_bytes, token: None, made: Cell::new(0) }
    }

    /// Checks the size that `values` will have as Python objects. The token in `options` can end a long conversion.
    ///
    /// # Errors
    /// If the values take more than `most_bytes`.
    pub(crate) fn claim(&mut self, values: &[Value], options: Option<&RunOptions>) -> PyResult<()> {
        /// The fewest bytes of objects that are a long conversion: they take tens of milliseconds.
        const LONG_BYTES: u64 = 1 << 24;
        let bytes = values.iter().map(|value| object_bytes(value, self.arrays)).fold(0, u64::saturating_add);
        if bytes > self.most_bytes {
            return Err(errors::too_large());
        }
        self.token = options.filter(|_| bytes >= LONG_BYTES).and_then(RunOptions::token);
        Ok(())
    }

    /// Returns an error if a signal handler raises or the token is cancelled.
    fn look(&self, py: Python<'_>) -> PyResult<()> {
        check(py, self.token.as_ref())
    }

    /// Makes a Python list of `len` elements; `element` returns the element at an index. Signals and the token are checked after every `LOOK`
    /// elements of all lists.
    pub(crate) fn list<'py>(
        &self,
        py: Python<'py>,
        len: usize,
        element: impl Fn(usize) -> PyResult<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyList>> {
        let looked = |at| {
            let made = self.made.replace(self.made.get().wrapping_add(1));
            if made % LOOK == LOOK - 1 {
                self.look(py)?;
            }
            element(at)
        };
        PyList::new(py, (0..len).map(|at| ListElement(looked(at))))
    }
}

/// An element for a Python list, or the exception that was raised when the element was made.
struct ListElement<'py>(PyResult<Bound<'py, PyAny>>);

impl<'py> IntoPyObject<'py> for ListElement<'py> {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, _: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.0
    }
}

/// Converts a value to a Python object, and consumes the value: the elements of a tensor are moved, and the numbers of an array are not copied if
/// NumPy can view them in place.
#[inline]
pub(crate) fn into_object<'py>(
    py: Python<'py>,
    mut value: Value,
    making: &ConversionOptions,
) -> PyResult<Bound<'py, PyAny>> {
    if let Value::Scalar(scalar) | Value::Present(scalar) = &value {
        return scalars::object(py, scalar);
    }
    if making.arrays == Arrays::Numpy
        && let Some((made, _)) = handing::numpy_view_of(py, &mut value, Vec::new())?
    {
        return Ok(made);
    }
    match value {
        Value::Tensor(tensor) => tensors::moved(py, tensor),
        value => object(py, &value, making),
    }
}

/// Reads a Python object as an edge (grouping of elements) of type `of`; `None` if the object is not one. An edge to a single group is given as its
/// number of elements.
fn edge(object: &Bound<'_, PyAny>, of: EdgeType) -> Option<Value> {
    let made = match of {
        EdgeType::Scalars => return None,
        EdgeType::ToScalar(kind) => cembra::Edge::to_scalar(kind, object.extract().ok()?),
        EdgeType::Arrays(kind) => {
            let given = object.cast::<Edge>().ok()?.get();
            // Nothing is copied if the edge has this kind already.
            if given.edge.kind() == kind {
                return (given.edge.edge_type() == of).then(|| Value::Edge(given.edge.clone()));
            }
            given.edge.of_kind(kind)
        }
    };
    (made.edge_type() == of).then(|| Value::Edge(made.into()))
}

/// Reads a struct, a tuple, a list of structs, or a dictionary.
fn composite(object: &Bound<'_, PyAny>, qtype: &QType, bounds: &Bounds) -> Result<Value, Misfit> {
    let misfit = || Misfit::new(qtype, object);
    if let Some(of) = qtype.as_optional_struct() {
        let inner = if object.is_none() { None } else { Some(read(object, of, bounds)?) };
        return Value::optional_struct(of, inner).ok_or_else(misfit);
    }
    if let Some((key, value)) = qtype.as_map() {
        let entry = |(at, (name, given)): (usize, (Bound<'_, PyAny>, Bound<'_, PyAny>))| {
            listen(object.py(), at).map_err(|error| Misfit::of_raised(qtype, object, error))?;
            let inside = |misfit: Misfit| misfit.inside(format!("[{}]", shown(&name)));
            let key = scalars::read(&name, key).map_err(inside)?;
            let value =
                if is_missing(&given, value) { None } else { Some(scalars::read(&given, value).map_err(inside)?) };
            Ok((key, value))
        };
        // The first entry that does not fit ends the dictionary.
        let mut misfit_of_entry = None;
        let entries = object
            .cast::<PyDict>()
            .map_err(|_| misfit())?
            .iter()
            .enumerate()
            .map_while(|given| entry(given).map_err(|misfit| misfit_of_entry = Some(misfit)).ok());
        let made = Value::map(key, value, entries);
        return match misfit_of_entry {
            Some(misfit) => Err(misfit),
            None => made.ok_or_else(misfit),
        };
    }
    if let Some(element) = qtype.element() {
        let mut list = ListBuilder::new(element).ok_or_else(misfit)?;
        for (at, one) in sequence(object, qtype)?.enumerate() {
            listen(object.py(), at).map_err(|error| Misfit::of_raised(qtype, object, error))?;
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
            let parts = sequence(object, qtype)?;
            if parts.size_hint().0 != types.len() {
                return Err(misfit());
            }
            let part = |(at, (part, qtype)): (usize, (Bound<'_, PyAny>, &QType))| {
                read(&part, qtype, bounds).map_err(|misfit| misfit.inside(format!("[{at}]")))
            };
            parts.zip(types.iter()).enumerate().map(part).collect::<Result<_, _>>()?
        }
    };
    Ok(Value::Tuple(types.with(values)))
}

/// The field of a struct: the entry of a mapping, or else an attribute; `None` if there is neither.
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

/// The `repr` of an object for a message, cut after 40 characters.
fn shown(object: &Bound<'_, PyAny>) -> String {
    let whole = object.repr().map_or_else(|_| "..".to_owned(), |shown| shown.to_string());
    whole.chars().take(40).collect()
}

/// The kind of Python object that arrays in a model's outputs become.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Arrays {
    Lists,
    Numpy,
    /// Arrays become arrays of this package, which has Arrow's interface.
    Arrow(Package),
}

impl Arrays {
    /// The kind of Python object for output arrays, if `object` is an input of the evaluated row: arrays of the package of `object`. An object of
    /// pandas gives NumPy arrays, because the index of a Series is for rows, and array elements are not rows. `None` if `object` is not an array.
    pub(crate) fn like(object: &Bound<'_, PyAny>) -> PyResult<Option<Arrays>> {
        if object.cast::<PyUntypedArray>().is_ok() || is_pandas_column(object)? {
            return Ok(Some(Arrays::Numpy));
        }
        Ok(if is_arrow(object)? { Some(Arrays::Arrow(Package::of(object)?)) } else { None })
    }
}

/// Converts a value to a Python object, without consuming the value.
pub(crate) fn object<'py>(py: Python<'py>, value: &Value, making: &ConversionOptions) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Value::Scalar(scalar) | Value::Present(scalar) => scalars::object(py, scalar)?,
        // A missing mask is `False`.
        Value::Missing(Scalar::Unit) => false.into_pyobject(py)?.to_owned().into_any(),
        Value::Missing(_) | Value::Nothing => py.None().into_bound(py),
        Value::Array(_, array) if let Arrays::Arrow(package) = making.arrays => {
            let made = cembra_arrow::from_model((**array).clone());
            arrow_object(py, package, made.map_err(|error| errors::data(error.to_string()))?, "")?
        }
        Value::Array(_, array) if making.arrays == Arrays::Numpy => arrays::numpy_array(py, array, || making.look(py))?,
        Value::Array(_, array) => {
            making.list(py, array.len(), |at| arrays::element(py, array.get(at), array.scalar()))?.into_any()
        }
        Value::Tensor(tensor) => tensors::moved(py, tensor.clone())?,
        Value::ArrayShape(_, size) => size.into_pyobject(py)?.into_any(),
        Value::Edge(edge) => match edge.edge_type() {
            EdgeType::ToScalar(_) => edge.child_size().into_pyobject(py)?.into_any(),
            _ => Edge { edge: edge.clone(), most_bytes: making.most_bytes }.into_pyobject(py)?.into_any(),
        },
        Value::Tuple(fields) => {
            if let Some(of) = value.as_optional_struct() {
                return of.map_or_else(|| Ok(py.None().into_bound(py)), |of| object(py, of, making));
            }
            if let Some(len) = value.list_len() {
                let element = |at| object(py, &value.element(at).unwrap_or(Value::Nothing), making);
                let elements = making.list(py, len, element)?;
                return Ok(match value.qtype().as_map() {
                    Some(_) => py.get_type::<PyDict>().call1((elements,))?,
                    None => elements.into_any(),
                });
            }
            let parts = fields.iter().map(|part| object(py, part, making)).collect::<PyResult<Vec<_>>>()?;
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

/// Returns the value of the input `field` if the caller does not give it: its default, or a missing value.
///
/// # Errors
/// A `TypeError` if the input has no default and its type has no missing values.
pub(crate) fn default(field: &Field) -> PyResult<Value> {
    let not_given = || {
        PyTypeError::new_err(format!(
            "input `{}` is not given: it must be given, because its type is {}",
            field.name, field.qtype
        ))
    };
    let missing = || match &field.qtype {
        QType::Optional(scalar) => Some(Value::Missing(*scalar)),
        other => Value::optional_struct(other.as_optional_struct()?, None),
    };
    field.left_out().or_else(missing).ok_or_else(not_given)
}
