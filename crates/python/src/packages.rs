//! Objects of other packages: what has Arrow's interface, and which package an object is of.

use crate::copies::Copies;
use crate::errors::{self, CembraError};
use crate::scalars::{Misfit, type_name};
use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{Array, ArrayRef, make_array};
use arrow_data::ArrayData;
use arrow_data::transform::MutableArrayData;
use arrow_schema::{DataType, Field};
use cembra::{Cancellation, Limits};
use cembra_arrow::interface;
use numpy::PyUntypedArray;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};
use std::cell::{OnceCell, RefCell};
use std::fmt::Display;

/// The package that an object's class is of.
pub(crate) fn package(object: &Bound<'_, PyAny>) -> PyResult<String> {
    let module = object.get_type().module()?.to_string();
    Ok(module.split('.').next().unwrap_or_default().to_owned())
}

/// True for an array, or a series, of a package that has Arrow's interface.
pub(crate) fn is_arrow(object: &Bound<'_, PyAny>) -> bool {
    let has = |name| object.hasattr(name).unwrap_or(false);
    has("__arrow_c_array__") || has("__arrow_c_stream__")
}

/// The exception of an object that is no array or table of Arrow, or whose structs are not as Arrow's specification says.
fn refused(object: &Bound<'_, PyAny>, error: &cembra_arrow::Error) -> PyErr {
    let (found, said) = (type_name(object), error.to_string());
    errors::data(match said.contains("\"Null\"") {
        true => format!("{found} has nulls and no type of values: cast it to one, such as float64"),
        false if said.ends_with("released") => format!("{found}: {said}: a capsule gives its data once"),
        false => format!("{found}: {said}"),
    })
}

/// The arrays that an object exports by Arrow's interface, in the memory of their exporter. Only their structs are checked.
pub(crate) struct Exported {
    /// The type of all arrays.
    pub(crate) field: Field,
    pub(crate) arrays: Vec<ArrayData>,
}

/// The limits that end the import of a stream without an end.
pub(crate) struct Bounds {
    /// `Limits::array_bytes` of the model.
    pub(crate) most_bytes: u64,
    /// The token of the evaluation.
    pub(crate) token: Option<Cancellation>,
}

impl Default for Bounds {
    fn default() -> Self {
        Bounds { most_bytes: Limits::default().array_bytes, token: None }
    }
}

/// The bytes that count for each array of a stream, whatever is in it.
const ARRAY_BYTES: u64 = 1024;

/// Imports what an object exports by Arrow's interface: one array, or the arrays of a stream. A
/// stream whose length the object does not say may be without end: its arrays take at most the bytes of `bounds`.
pub(crate) fn exported(object: &Bound<'_, PyAny>, bounds: &Bounds) -> PyResult<Exported> {
    let refused = |error: cembra_arrow::Error| refused(object, &error);
    if let Some(method) = object.getattr_opt("__arrow_c_array__")? {
        let made = method.call0()?;
        let wrong = || errors::data(format!("{}: __arrow_c_array__ gives no tuple of two capsules", type_name(object)));
        let capsules = made.cast::<PyTuple>().ok().filter(|made| made.len() == 2).ok_or_else(wrong)?;
        let (schema, array) = (capsules.get_item(0)?, capsules.get_item(1)?);
        let schema = schema.cast::<PyCapsule>().map_err(|_| wrong())?.pointer_checked(Some(c"arrow_schema"))?;
        let array = array.cast::<PyCapsule>().map_err(|_| wrong())?.pointer_checked(Some(c"arrow_array"))?;
        // SAFETY: ARROW-STRUCT: capsules of these names, which `made` keeps, have such structs; the array is the consumer's, who leaves an empty one.
        let (array, field) = unsafe {
            let schema: &FFI_ArrowSchema = schema.cast().as_ref();
            let array = array.cast::<FFI_ArrowArray>().replace(FFI_ArrowArray::empty());
            interface::array(array, schema).and_then(|array| Ok((array, interface::field(schema)?)))
        }
        .map_err(refused)?;
        return Ok(Exported { field, arrays: vec![array] });
    }
    let Some(method) = object.getattr_opt("__arrow_c_stream__")? else {
        return Err(errors::data(format!("{} has no data by Arrow's interface", type_name(object))));
    };
    let made = method.call0()?;
    let wrong = |_| errors::data(format!("{}: __arrow_c_stream__ gives no capsule", type_name(object)));
    let stream = made.cast::<PyCapsule>().map_err(wrong)?.pointer_checked(Some(c"arrow_array_stream"))?;
    // SAFETY: ARROW-STRUCT: a capsule of this name, which `made` keeps, has such a struct; it is the consumer's, who leaves an empty one.
    let stream = unsafe {
        let stream = stream.cast::<FFI_ArrowArrayStream>().replace(FFI_ArrowArrayStream::empty());
        interface::ArrayStream::new(stream)
    };
    let stream = stream.map_err(refused)?;
    let field = stream.field().clone();
    let rows = object.len().ok();
    let (mut arrays, mut bytes, mut elements) = (Vec::new(), 0_u64, 0_usize);
    for array in stream {
        let array = array.map_err(refused)?;
        object.py().check_signals()?;
        if bounds.token.as_ref().is_some_and(Cancellation::is_cancelled) {
            return Err(errors::of_text(cembra::Error::ended_by(bounds.token.as_ref()), "", None));
        }
        elements = elements.saturating_add(array.len());
        bytes = bytes.saturating_add(ARRAY_BYTES).saturating_add(match rows {
            Some(rows) if elements <= rows => 0,
            _ => memory_bytes(&array, arrays.last()),
        });
        let most_bytes = bounds.most_bytes;
        if bytes > most_bytes {
            let found = type_name(object);
            return Err(errors::limit(format!(
                "{found} gives more than {most_bytes} bytes, the limit `array_bytes`: give it in parts, or compile with limits={{\"array_bytes\": ..}}"
            )));
        }
        arrays.push(array);
    }
    Ok(Exported { field, arrays })
}

/// The bytes that an array of a stream takes beside the one before, of which views may share the buffers.
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

/// An array that was imported, and its chunks in the memory of their exporter, of which nothing but numbers and bits is read.
#[derive(Clone)]
pub(crate) struct Import {
    pub(crate) array: ArrayRef,
    pub(crate) given: Vec<ArrayData>,
}

/// Imports an array, and joins its chunks. Offsets and UTF-8 are checked, because the exporter may be wrong.
pub(crate) fn arrow(object: &Bound<'_, PyAny>, bounds: &Bounds) -> PyResult<Import> {
    let Exported { field, arrays: given } = exported(object, bounds)?;
    let mut copies = Copies::of(object);
    let checked = given.iter().map(|chunk| copies.checked(chunk.clone()).map(make_array));
    let checked = checked.collect::<PyResult<Vec<ArrayRef>>>()?;
    let checked: Vec<&dyn Array> = checked.iter().map(|chunk| &**chunk).collect();
    Ok(Import { array: joined(&checked, field.data_type())?, given })
}

/// Imports an array that is an input as a whole, or a part of one. `None` if the object is of NumPy, has no data by Arrow's interface, or raises an
/// exception of its own: it may be a sequence nevertheless.
pub(crate) fn whole(object: &Bound<'_, PyAny>, expected: impl Display) -> Result<Option<ArrayRef>, Misfit> {
    if object.cast::<PyUntypedArray>().is_ok() || !is_arrow(object) {
        return Ok(None);
    }
    match arrow(object, &Bounds::default()) {
        Ok(import) => Ok(Some(import.array)),
        Err(error) if is_ours(object.py(), &error) => Err(Misfit::of(expected, error.value(object.py()).to_string())),
        Err(_) => Ok(None),
    }
}

/// True for an exception of an import, and not of the object itself.
pub(crate) fn is_ours(py: Python<'_>, error: &PyErr) -> bool {
    error.is_instance_of::<CembraError>(py)
}

/// The arrays of Arrow that one call has imported: each object once, because a capsule and a stream give their data once.
pub(crate) struct Imports<'py> {
    bounds: Bounds,
    /// There is none before the first: most calls import nothing.
    known: OnceCell<Box<Known<'py>>>,
}

/// Objects, and the array of each.
type Known<'py> = RefCell<Vec<(Bound<'py, PyAny>, Import)>>;

impl<'py> Imports<'py> {
    /// No arrays yet.
    pub(crate) const fn new(bounds: Bounds) -> Self {
        Imports { bounds, known: OnceCell::new() }
    }

    /// The array of an object, if it is imported.
    pub(crate) fn known(&self, object: &Bound<'py, PyAny>) -> Option<Import> {
        let known = self.known.get()?.borrow();
        known.iter().find(|(known, _)| known.is(object)).map(|(_, import)| import.clone())
    }

    /// The array of an object, imported if it is not yet.
    pub(crate) fn array(&self, object: &Bound<'py, PyAny>) -> PyResult<Import> {
        if let Some(known) = self.known(object) {
            return Ok(known);
        }
        let import = arrow(object, &self.bounds)?;
        self.known.get_or_init(Box::default).borrow_mut().push((object.clone(), import.clone()));
        Ok(import)
    }
}

/// Chunks of one type as one array.
pub(crate) fn joined(chunks: &[&dyn Array], of: &DataType) -> PyResult<ArrayRef> {
    let is_read = cembra_arrow::input_type(&Field::new("", of.clone(), true)).is_some();
    if chunks.len() > 1 && !is_read && *of != DataType::Null {
        return Err(errors::data(format!("an array of {of}, which no input is")));
    }
    let is_string = matches!(of, DataType::Utf8 | DataType::LargeUtf8 | DataType::Binary | DataType::LargeBinary);
    let made = match chunks {
        [] => Ok(arrow_array::new_empty_array(of)),
        [one] => Ok(make_array(one.to_data())),
        // `concat`, which is not optimised, goes from string to string.
        several if is_string && several.iter().all(|chunk| chunk.data_type() == of) => {
            let chunks: Vec<ArrayData> = several.iter().map(|chunk| chunk.to_data()).collect();
            let len = chunks.iter().map(ArrayData::len).sum();
            let mut made = MutableArrayData::new(chunks.iter().collect(), false, len);
            let added = chunks.iter().enumerate().try_for_each(|(at, chunk)| made.try_extend(at, 0, chunk.len()));
            added.map(|()| make_array(made.freeze()))
        }
        several => arrow_select::concat::concat(several),
    };
    made.map_err(|error| errors::data(error.to_string()))
}
