//! Objects of other packages: what has Arrow's interface, and which package an object is of.

use crate::copies::Copies;
use crate::scalars::type_name;
use arrow_array::{Array, ArrayRef, make_array};
use arrow_data::ArrayData;
use arrow_data::transform::MutableArrayData;
use arrow_schema::{DataType, Field, FieldRef};
use pyo3::prelude::*;
use pyo3_arrow::input::AnyArray;

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

/// The exception of an object that is no array or table of Arrow; what its own package raises is that itself.
pub(crate) fn refused(object: &Bound<'_, PyAny>, error: PyErr) -> PyErr {
    let (found, said) = (type_name(object), error.value(object.py()).to_string());
    if said.contains("\"Null\"") {
        return crate::errors::data(format!(
            "{found} has nulls and no type of values: cast it to one, such as float64"
        ));
    }
    match is_arrow(object) {
        true => error,
        false => crate::errors::data(format!("{found} has no data by Arrow's interface")),
    }
}

/// The chunks of an array of Arrow in the memory of its exporter, not checked, and their field.
pub(crate) fn imported(object: &Bound<'_, PyAny>) -> PyResult<(Vec<ArrayRef>, FieldRef)> {
    let chunked = object.extract::<AnyArray>().and_then(|array| array.into_chunked_array().map_err(PyErr::from));
    Ok(chunked.map_err(|error| refused(object, error))?.into_inner())
}

/// Imports an array of Arrow, and joins its chunks. Offsets and UTF-8 are checked, because the exporter may be wrong.
pub(crate) fn arrow(object: &Bound<'_, PyAny>) -> PyResult<ArrayRef> {
    arrow_given(object).map(|(array, _)| array)
}

/// Imports an array of Arrow likewise. Beside it are its chunks in the memory of the exporter, of which nothing but numbers and bits is read later.
pub(crate) fn arrow_given(object: &Bound<'_, PyAny>) -> PyResult<(ArrayRef, Vec<ArrayData>)> {
    let (chunks, field) = imported(object)?;
    let given: Vec<ArrayData> = chunks.iter().map(|chunk| chunk.to_data()).collect();
    drop(chunks);
    let mut copies = Copies::of(object);
    let checked = given.iter().map(|chunk| copies.checked(chunk.clone()).map(make_array));
    let checked = checked.collect::<PyResult<Vec<ArrayRef>>>()?;
    let checked: Vec<&dyn Array> = checked.iter().map(|chunk| &**chunk).collect();
    Ok((joined(&checked, field.data_type())?, given))
}

/// Chunks of one type as one array.
pub(crate) fn joined(chunks: &[&dyn Array], of: &DataType) -> PyResult<ArrayRef> {
    let is_read = cembra_arrow::input_type(&Field::new("", of.clone(), true)).is_some();
    if chunks.len() > 1 && !is_read && *of != DataType::Null {
        return Err(crate::errors::data(format!("an array of {of}, which no input is")));
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
    made.map_err(|error| crate::errors::data(error.to_string()))
}
