//! Recognizes objects of other Python packages (pandas, Polars, pyarrow), and imports their data by Arrow's interface.

use crate::bounds::Bounds;
use crate::copies::{Copies, is_pyarrow, roomy};
use crate::errors::{self, CembraError, DataError};
use crate::scalars::{Misfit, type_name};
use arrow_array::cast::AsArray;
use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{Array, ArrayRef, make_array};
use arrow_data::ArrayData;
use arrow_schema::{DataType, Field};
use cembra_arrow::interface;
use numpy::PyUntypedArray;
use pyo3::exceptions::PyException;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyString, PyTuple, PyType};
use std::cell::{OnceCell, RefCell};
use std::fmt::Display;

/// The name of the Python package that an object's class belongs to.
pub(crate) fn package(object: &Bound<'_, PyAny>) -> PyResult<String> {
    let module = object.get_type().module()?.to_string();
    Ok(module.split('.').next().unwrap_or_default().to_owned())
}

/// The Python module `cembra.frames`, with functions for columns and frames of other packages.
pub(crate) fn frames(py: Python<'_>) -> PyResult<Bound<'_, PyModule>> {
    py.import("cembra.frames")
}

/// The Python package of an input column. Outputs become columns of the same package.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Package {
    Pandas(Family),
    Polars,
    Pyarrow,
    /// The column belongs to any other package with Arrow's interface.
    Other,
}

/// The kind of type that a pandas column has: a NumPy type, a nullable type (a NumPy array with a mask), or an Arrow type.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Family {
    Numpy = 0,
    Nullable = 1,
    Arrow = 2,
}

/// Returns the numbers that `cembra.frames` uses for the kinds of pandas types: NumPy, nullable, Arrow.
#[pyfunction]
pub(crate) const fn _families() -> (u8, u8, u8) {
    (Family::Numpy as u8, Family::Nullable as u8, Family::Arrow as u8)
}

impl Package {
    /// The package that the class of `object`, or a base class of it, belongs to. For every pandas object the result is `Pandas(Numpy)`, because the
    /// class does not tell the kind of the column's type.
    pub(crate) fn of(object: &Bound<'_, PyAny>) -> PyResult<Package> {
        // Most columns are plain NumPy arrays, and reading the names of modules takes longer than evaluating a few rows.
        if object.is_exact_instance_of::<PyUntypedArray>() {
            return Ok(Package::Other);
        }
        for class in object.get_type().mro().iter() {
            let module = class.cast_into::<PyType>()?.module()?;
            match module.to_string_lossy().split('.').next() {
                Some("pandas") => return Ok(Package::Pandas(Family::Numpy)),
                Some("polars") => return Ok(Package::Polars),
                Some("pyarrow") => return Ok(Package::Pyarrow),
                _ => {}
            }
        }
        Ok(Package::Other)
    }

    /// The kind of pandas type for an output that is computed from a column of this package.
    pub(crate) const fn family(self) -> Family {
        match self {
            Package::Pandas(family) => family,
            _ => Family::Arrow,
        }
    }
}

/// Returns the numbers of a column of Polars or pyarrow as a NumPy array that views them in place. `None` if the column has missing values, several
/// chunks, or values that are not numbers.
///
/// # Errors
/// An exception that asks to stop, such as `KeyboardInterrupt`. If the column raises any other exception, the result is `None`.
pub(crate) fn numpy_view<'py>(column: &Bound<'py, PyAny>, package: Package) -> PyResult<Option<Bound<'py, PyAny>>> {
    let view = match package {
        Package::Polars => polars_view(column),
        Package::Pyarrow => pyarrow_view(column),
        Package::Pandas(_) | Package::Other => Ok(None),
    };
    view.or_else(|error| if error.is_instance_of::<PyException>(column.py()) { Ok(None) } else { Err(error) })
}

/// [`numpy_view`] for a Series of Polars, whose exceptions are errors here.
fn polars_view<'py>(series: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = series.py();
    let count = |of: &Bound<'py, PyString>| series.call_method0(of)?.extract::<usize>();
    let is_plain = count(intern!(py, "n_chunks"))? == 1
        && count(intern!(py, "null_count"))? == 0
        && series.getattr(intern!(py, "dtype"))?.call_method0(intern!(py, "is_numeric"))?.is_truthy()?;
    if !is_plain {
        return Ok(None);
    }
    let options = PyDict::new(py);
    options.set_item(intern!(py, "allow_copy"), false)?;
    series.call_method(intern!(py, "to_numpy"), (), Some(&options)).map(Some)
}

/// [`numpy_view`] for an array or a chunked array of pyarrow, whose exceptions are errors here.
fn pyarrow_view<'py>(array: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    /// The ids of pyarrow's number types, such as `pyarrow.lib.Type_INT32`: i32, u64, i64, f32, f64.
    const NUMBERS: [u8; 5] = [7, 8, 9, 11, 12];
    let py = array.py();
    let is_plain = array.getattr(intern!(py, "null_count"))?.extract::<usize>()? == 0
        && NUMBERS.contains(&array.getattr(intern!(py, "type"))?.getattr(intern!(py, "id"))?.extract()?);
    if !is_plain {
        return Ok(None);
    }
    if !class_has(array, "num_chunks")? {
        return array.call_method0(intern!(py, "to_numpy")).map(Some);
    }
    match array.getattr(intern!(py, "num_chunks"))?.extract::<usize>()? {
        1 => array.call_method1(intern!(py, "chunk"), (0,))?.call_method0(intern!(py, "to_numpy")).map(Some),
        _ => Ok(None),
    }
}

/// Returns true if the class of `object`, or a base class of it, has the attribute `name`. Asking the object itself would run its `__getattr__`, and
/// make an exception for each missing attribute.
pub(crate) fn class_has(object: &Bound<'_, PyAny>, name: &str) -> PyResult<bool> {
    let py = object.py();
    let name = PyString::intern(py, name);
    for class in object.get_type().mro().iter() {
        if class.getattr(intern!(py, "__dict__"))?.contains(&name)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns true if `object` is a Series, an Index or an array of pandas; false for a data frame and for other objects.
pub(crate) fn is_pandas_column(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(match Package::of(object)? {
        Package::Pandas(_) => {
            object.getattr_opt("ndim")?.is_some_and(|axes| axes.extract().is_ok_and(|axes: usize| axes == 1))
        }
        _ => false,
    })
}

/// Returns true if an object, such as an array or a series, exports its data by Arrow's interface.
///
/// # Errors
/// An exception that asks to stop, such as `KeyboardInterrupt`. If the object raises any other exception, the result is false.
pub(crate) fn is_arrow(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    match interface(object) {
        Err(error) if error.is_instance_of::<PyException>(object.py()) => Ok(false),
        found => found.map(|found| found.is_some()),
    }
}

/// The method by which an object exports its data, with true for the method that exports one array, and false for the one that exports a stream.
/// `None` for an object without Arrow's interface.
fn interface<'py>(object: &Bound<'py, PyAny>) -> PyResult<Option<(bool, Bound<'py, PyAny>)>> {
    let names = [(true, "__arrow_c_array__"), (false, "__arrow_c_stream__")];
    for (is_array, name) in names {
        if class_has(object, name)? {
            return Ok(Some((is_array, object.getattr(name)?)));
        }
    }
    for (is_array, name) in names {
        if let Some(method) = object.getattr_opt(name)? {
            return Ok(Some((is_array, method)));
        }
    }
    Ok(None)
}

/// The exception for an object that exports no array or table of Arrow, or C structs that break Arrow's specification.
fn refused(object: &Bound<'_, PyAny>, error: &cembra_arrow::Error) -> PyErr {
    let (found, said) = (type_name(object), error.to_string());
    errors::data(match said.contains("\"Null\"") {
        true => format!("{found} has nulls and no type of values: cast it to a type, such as float64"),
        false if said.ends_with("released") => {
            format!("{found}: {said}: export the data again, because a capsule gives its data once")
        }
        false => format!("{found}: {said}"),
    })
}

/// The arrays that a Python object exports by Arrow's interface, in the exporter's memory. Only Arrow's C structs are checked, not the arrays'
/// contents.
pub(crate) struct Exported<'py> {
    /// The Arrow type of all exported arrays.
    pub(crate) field: Field,
    pub(crate) arrays: Vec<ArrayData>,
    /// The Python objects that own the buffers of the arrays: the exporting object, or the batches of a reader.
    pub(crate) owners: Vec<Bound<'py, PyAny>>,
}

/// The bytes that each array of a stream is counted with, in addition to its buffers, so that an endless stream of empty arrays ends too.
const ARRAY_BYTES: u64 = 1024;

/// Imports the data that an object exports by Arrow's interface: one array, or the arrays of a stream. A stream may be endless, so its arrays may
/// take at most as many bytes as `bounds` allows. Buffers of pyarrow, Polars and pandas are not counted, because their rows are in memory already.
pub(crate) fn exported<'py>(object: &Bound<'py, PyAny>, bounds: &Bounds) -> PyResult<Exported<'py>> {
    let owners = vec![object.clone()];
    let refused = |error: cembra_arrow::Error| refused(object, &error);
    let method = match interface(object)? {
        Some((true, method)) => {
            let (field, array) = one(object, &method)?;
            return Ok(Exported { field, arrays: vec![array], owners });
        }
        Some((false, method)) => method,
        None => {
            return Err(errors::data(format!(
                "{} does not export data by Arrow's interface: give an object with `__arrow_c_array__` or `__arrow_c_stream__`",
                type_name(object)
            )));
        }
    };
    if is_pyarrow(object)? && object.hasattr("read_next_batch")? {
        return batches(object, bounds);
    }
    let made = method.call0()?;
    let wrong = |_| errors::data(format!("{}: `__arrow_c_stream__` must return a capsule", type_name(object)));
    let stream = made.cast::<PyCapsule>().map_err(wrong)?.pointer_checked(Some(c"arrow_array_stream"))?;
    // SAFETY: ARROW-STRUCT: a capsule of this name has such a struct, and `made` keeps the capsule. The consumer takes the struct and leaves an empty
    // one.
    let stream = unsafe {
        let stream = stream.cast::<FFI_ArrowArrayStream>().replace(FFI_ArrowArrayStream::empty());
        interface::ArrayStream::new(stream)
    };
    let stream = stream.map_err(refused)?;
    let field = stream.field().clone();
    let is_known = matches!(&*package(object)?, "pyarrow" | "polars" | "pandas");
    let mut arrays = Vec::new();
    for array in stream {
        let array = array.map_err(refused)?;
        bounds.check(object.py())?;
        let bytes = if is_known { 0 } else { memory_bytes(&array, arrays.last()) };
        bounds.claim(object, ARRAY_BYTES.saturating_add(bytes))?;
        arrays.push(array);
    }
    Ok(Exported { field, arrays, owners })
}

/// Imports the array that an object exports by `method`, its `__arrow_c_array__`.
fn one(object: &Bound<'_, PyAny>, method: &Bound<'_, PyAny>) -> PyResult<(Field, ArrayData)> {
    let made = method.call0()?;
    let wrong =
        || errors::data(format!("{}: `__arrow_c_array__` must return a tuple of two capsules", type_name(object)));
    let capsules = made.cast::<PyTuple>().ok().filter(|made| made.len() == 2).ok_or_else(wrong)?;
    let (schema, array) = (capsules.get_item(0)?, capsules.get_item(1)?);
    let schema = schema.cast::<PyCapsule>().map_err(|_| wrong())?.pointer_checked(Some(c"arrow_schema"))?;
    let array = array.cast::<PyCapsule>().map_err(|_| wrong())?.pointer_checked(Some(c"arrow_array"))?;
    // SAFETY: ARROW-STRUCT: capsules of these names have such structs, and `made` keeps the capsules. The consumer takes the array and leaves an
    // empty one.
    let made = unsafe {
        let schema: &FFI_ArrowSchema = schema.cast().as_ref();
        let array = array.cast::<FFI_ArrowArray>().replace(FFI_ArrowArray::empty());
        interface::array(array, schema).and_then(|array| Ok((interface::field(schema)?, array)))
    };
    made.map_err(|error| refused(object, &error))
}

/// Reads the batches of a pyarrow reader through Python, because batches report the lengths of their buffers, and the arrays of the reader's stream
/// do not.
fn batches<'py>(reader: &Bound<'py, PyAny>, bounds: &Bounds) -> PyResult<Exported<'py>> {
    let py = reader.py();
    let wrong = || errors::data(format!("{}: the batches must have the schema of the stream", type_name(reader)));
    let schema = reader.getattr("schema")?.call_method0("__arrow_c_schema__")?;
    let pointer = schema.cast::<PyCapsule>().map_err(|_| wrong())?.pointer_checked(Some(c"arrow_schema"))?;
    // SAFETY: ARROW-STRUCT: a capsule of this name has such a struct, and `schema` keeps the capsule.
    let field = unsafe { interface::field(pointer.cast().as_ref()) }.map_err(|error| refused(reader, &error))?;
    let mut made = Exported { field, arrays: Vec::new(), owners: Vec::new() };
    for batch in reader.try_iter()? {
        let batch = batch.map_err(|error| match error.is_instance_of::<PyException>(py) {
            true => {
                let raised = errors::data(format!("{}: {error}", type_name(reader)));
                raised.set_cause(py, Some(error));
                raised
            }
            false => error,
        })?;
        bounds.check(py)?;
        let (field, array) = one(&batch, &batch.getattr("__arrow_c_array__")?)?;
        if !field.data_type().equals_datatype(made.field.data_type()) {
            return Err(wrong());
        }
        bounds.claim(reader, ARRAY_BYTES.saturating_add(memory_bytes(&array, made.arrays.last())))?;
        made.arrays.push(array);
        made.owners.push(batch);
    }
    Ok(made)
}

/// The bytes that an array of a stream takes in addition to `before`, the previous array. Buffers that both arrays have are not counted again.
fn memory_bytes(array: &ArrayData, before: Option<&ArrayData>) -> u64 {
    let mut open = vec![(array, before)];
    let mut bytes = 0_u64;
    while let Some((array, before)) = open.pop() {
        let known = before.map(ArrayData::buffers).unwrap_or_default();
        let new = array.buffers().iter().filter(|buffer| known.iter().all(|known| known.as_ptr() != buffer.as_ptr()));
        bytes = new.fold(bytes, |sum, buffer| sum.saturating_add(buffer.len() as u64));
        let children = array.child_data().iter().enumerate();
        open.extend(children.map(|(at, child)| (child, before.and_then(|before| before.child_data().get(at)))));
    }
    bytes
}

/// An imported Arrow array, and its original chunks in the exporter's memory. Only numbers and bits are read from the chunks.
#[derive(Clone)]
pub(crate) struct Import {
    pub(crate) array: ArrayRef,
    pub(crate) given: Vec<ArrayData>,
}

/// Imports the array that `object` exports by Arrow's interface, and joins its chunks. Offsets and UTF-8 are checked, because the exporter may be
/// wrong.
pub(crate) fn arrow(object: &Bound<'_, PyAny>, bounds: &Bounds) -> PyResult<Import> {
    let Exported { field, arrays: given, owners } = exported(object, bounds)?;
    let mut copies = Copies::of(object, owners, bounds);
    let checked = given.iter().map(|chunk| copies.checked(chunk.clone()).map(make_array));
    let checked = checked.collect::<PyResult<Vec<ArrayRef>>>()?;
    let checked: Vec<&dyn Array> = checked.iter().map(|chunk| &**chunk).collect();
    Ok(Import { array: joined(object, &checked, field.data_type(), bounds)?, given })
}

/// Imports an Arrow array that is the single value of an input, or a field or element of that value. `None` if the object is a NumPy array, does not
/// export data by Arrow's interface, or raises an exception of its own. Such an object may still be a sequence.
pub(crate) fn whole(
    object: &Bound<'_, PyAny>,
    expected: impl Display,
    bounds: &Bounds,
) -> Result<Option<ArrayRef>, Misfit> {
    if object.cast::<PyUntypedArray>().is_ok() || !is_arrow(object).map_err(Misfit::raising)? {
        return Ok(None);
    }
    let py = object.py();
    match arrow(object, bounds) {
        Ok(import) => Ok(Some(import.array)),
        Err(error) if error.is_instance_of::<DataError>(py) => Err(Misfit::of(expected, error.value(py).to_string())),
        Err(error) if is_ours(py, &error) => Err(Misfit::raising(error)),
        Err(_) => Ok(None),
    }
}

/// Returns true if this package raised the exception `error` during an import, or if `error` asks to stop, such as `KeyboardInterrupt`. Returns false
/// if the imported object raised it.
pub(crate) fn is_ours(py: Python<'_>, error: &PyErr) -> bool {
    error.is_instance_of::<CembraError>(py) || !error.is_instance_of::<PyException>(py)
}

/// The Arrow arrays that one call has imported. Each object is imported once, because a capsule or a stream gives its data only once.
pub(crate) struct Imports<'py> {
    bounds: Bounds,
    /// The imported objects; empty before the first import, because most calls import nothing.
    known: OnceCell<Box<ImportedArrays<'py>>>,
    /// The pandas columns whose arrays were requested so far, each with its array; `None` if no input can have values of the column's type.
    parts: RefCell<Vec<(Bound<'py, PyAny>, Option<PandasParts<'py>>)>>,
}

/// The array in a pandas column (a NumPy or an Arrow array), and the kind of the column's type.
type PandasParts<'py> = (Bound<'py, PyAny>, Family);

/// Imported objects, each with its array.
type ImportedArrays<'py> = RefCell<Vec<(Bound<'py, PyAny>, Import)>>;

impl<'py> Imports<'py> {
    /// Begins the imports of a call, within `bounds`.
    pub(crate) const fn new(bounds: Bounds) -> Self {
        Imports { bounds, known: OnceCell::new(), parts: RefCell::new(Vec::new()) }
    }

    /// Returns the array in the pandas column `object`, and the kind (NumPy, nullable, Arrow) of the column's type. `None` if no
    /// input can have values of this type.
    pub(crate) fn parts(&self, object: &Bound<'py, PyAny>) -> PyResult<Option<PandasParts<'py>>> {
        if let Some((_, parts)) = self.parts.borrow().iter().find(|(known, _)| known.is(object)) {
            return Ok(parts.clone());
        }
        let parts = object.py().import("cembra.frames")?.call_method1("pandas_parts", (object,))?;
        let parts: Option<(Bound<'py, PyAny>, u8)> = parts.extract()?;
        let parts = parts.map(|(array, family)| {
            let family = [Family::Numpy, Family::Nullable, Family::Arrow].into_iter().find(|one| *one as u8 == family);
            (array, family.unwrap_or(Family::Numpy))
        });
        self.parts.borrow_mut().push((object.clone(), parts.clone()));
        Ok(parts)
    }

    /// Returns the array in the pandas column `object`, and the kind (NumPy, nullable, Arrow) of the column's type. `None` if `object` is not a
    /// pandas column, or if no input can have values of this type.
    pub(crate) fn parts_of(&self, object: &Bound<'py, PyAny>) -> PyResult<Option<PandasParts<'py>>> {
        if is_pandas_column(object)? { self.parts(object) } else { Ok(None) }
    }

    /// Converts a column of Python objects, such as lists or dicts, to an Arrow array, with pyarrow.
    pub(crate) fn converted(&self, object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = object.py();
        let convert = || {
            let options = PyDict::new(py);
            options.set_item("from_pandas", true)?;
            py.import("pyarrow")?.call_method("array", (object,), Some(&options))
        };
        convert().map_err(|error| match error.is_instance_of::<PyException>(py) {
            true => {
                let raised = errors::data(format!("{}: {error}", type_name(object)));
                raised.set_cause(py, Some(error));
                raised
            }
            false => error,
        })
    }

    /// The limits for the imports of this call.
    pub(crate) const fn bounds(&self) -> &Bounds {
        &self.bounds
    }

    /// The imported array of `object`; `None` if `object` is not imported yet.
    pub(crate) fn known(&self, object: &Bound<'py, PyAny>) -> Option<Import> {
        let known = self.known.get()?.borrow();
        known.iter().find(|(known, _)| known.is(object)).map(|(_, import)| import.clone())
    }

    /// Returns the imported array of `object`, and imports it first if that was not done yet.
    pub(crate) fn array(&self, object: &Bound<'py, PyAny>) -> PyResult<Import> {
        if let Some(known) = self.known(object) {
            return Ok(known);
        }
        let import = arrow(object, &self.bounds)?;
        self.known.get_or_init(Box::default).borrow_mut().push((object.clone(), import.clone()));
        Ok(import)
    }
}

/// The length of each string of an array, in bytes; empty for an array of another type.
fn string_lens(strings: &ArrayData) -> Vec<u64> {
    let Some(first) = strings.buffers().first() else { return Vec::new() };
    match strings.data_type() {
        DataType::Utf8 | DataType::Binary => {
            first.typed_data::<i32>().windows(2).map(|ends| ends[1].abs_diff(ends[0]).into()).collect()
        }
        DataType::LargeUtf8 | DataType::LargeBinary => {
            first.typed_data::<i64>().windows(2).map(|ends| ends[1].abs_diff(ends[0])).collect()
        }
        DataType::Utf8View | DataType::BinaryView => {
            first.typed_data::<u128>().iter().map(|view| (*view as u32).into()).collect()
        }
        _ => Vec::new(),
    }
}

/// The bytes that an Arrow array's strings would take if every element had its own copy. The bytes are counted for view arrays and dictionaries,
/// whose elements may share strings; the result is 0 for all other arrays.
pub(crate) fn shared_bytes(array: &dyn Array) -> u64 {
    let data = array.to_data();
    let sum = |lens: &mut dyn Iterator<Item = u64>| lens.fold(0, u64::saturating_add);
    match (array.data_type(), data.child_data()) {
        (DataType::Utf8View | DataType::BinaryView, _) => sum(&mut string_lens(&data).into_iter()),
        (DataType::Dictionary(..), [values]) if !values.is_empty() => {
            let lens = string_lens(values);
            let keys = array.as_any_dictionary().normalized_keys();
            sum(&mut keys.iter().filter_map(|key| lens.get(*key).copied()))
        }
        _ => 0,
    }
}

/// The bytes that a chunk adds to an array that is joined from chunks. A dictionary that the chunk shares with `before`, the previous chunk, is not
/// counted.
fn joined_bytes(chunk: &ArrayData, before: Option<&ArrayData>) -> u64 {
    let mut open = vec![(chunk, before)];
    let mut bytes = 0_u64;
    while let Some((array, before)) = open.pop() {
        let own = match array.data_type() {
            DataType::Boolean => array.len() / 8,
            DataType::Utf8View | DataType::BinaryView => array.len().saturating_mul(size_of::<u128>()),
            // Offsets and strings are copies, as long as the chunk.
            of => of.primitive_width().map_or_else(
                || array.buffers().iter().map(|buffer| buffer.len()).sum(),
                |width| array.len().saturating_mul(width),
            ),
        };
        bytes =
            bytes.saturating_add(own as u64).saturating_add(array.nulls().map_or(0, |nulls| nulls.len() as u64 / 8));
        let is_dictionary = matches!(array.data_type(), DataType::Dictionary(..));
        let children = array.child_data().iter().enumerate();
        let children = children.map(|(at, child)| (child, before.and_then(|before| before.child_data().get(at))));
        open.extend(children.filter(|(child, known)| !is_dictionary || known.is_none_or(|known| !child.ptr_eq(known))));
    }
    bytes
}

/// Joins the Arrow chunks that `object` exported, which are all of type `of`, to one array.
pub(crate) fn joined(
    object: &Bound<'_, PyAny>,
    chunks: &[&dyn Array],
    of: &DataType,
    bounds: &Bounds,
) -> PyResult<ArrayRef> {
    let is_read = cembra_arrow::input_type(&Field::new("", of.clone(), true)).is_some();
    if chunks.len() > 1 && !is_read && !of.is_nested() && *of != DataType::Null {
        return Err(errors::data(format!("an array of {of} cannot be an input: convert it, as in `.cast(..)`")));
    }
    if chunks.len() > 1 {
        let (mut bytes, mut before) = (0_u64, None);
        for chunk in chunks.iter().map(|chunk| chunk.to_data()) {
            bytes = bytes.saturating_add(joined_bytes(&chunk, before.as_ref()));
            before = Some(chunk);
        }
        bounds.claim(object, bytes)?;
        // Without enough memory, joining would abort the process, so the memory is allocated for a test first. `black_box` keeps the compiler from
        // removing the unused allocation.
        std::hint::black_box(roomy::<u8>(usize::try_from(bytes).unwrap_or(usize::MAX))?);
    }
    let made = match chunks {
        [] => Ok(arrow_array::new_empty_array(of)),
        [one] => Ok(make_array(one.to_data())),
        several => arrow_select::concat::concat(several),
    };
    made.map_err(|error| errors::data(error.to_string()))
}
