//! The memory of `out`: no byte of it is in a buffer of an input, or of another array of `out`. Rows are evaluated again where one fails, and
//! inputs are checked before they are read, so a run must not write what it reads.

use crate::arrays::is_masked;
use crate::columns::{Column, Out};
use crate::errors;
use crate::packages::{Imports, is_arrow};
use arrow_data::ArrayData;
use cembra::{ArrayData as Elements, Value};
use numpy::{PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use std::collections::HashSet;
use std::ops::Range;

/// Addresses of bytes, from the lowest to behind the highest.
type Span = Range<usize>;

/// True if a byte is in both.
fn meet(a: &Span, b: &Span) -> bool {
    a.start < b.end && b.start < a.end && !a.is_empty() && !b.is_empty()
}

/// The bytes between the lowest and the highest that an array of NumPy sees.
fn of_numpy(array: &Bound<'_, PyUntypedArray>) -> Span {
    // SAFETY: NUMPY-MEMORY: the array is alive, and its fields are read with the interpreter's lock.
    let first = unsafe { (*array.as_array_ptr()).fields.data }.addr();
    if array.shape().contains(&0) {
        return first..first;
    }
    let (mut start, mut end) = (first, first.saturating_add(array.dtype().itemsize()));
    for (extent, stride) in array.shape().iter().zip(array.strides()) {
        let reach = (extent - 1).saturating_mul(stride.unsigned_abs());
        if *stride < 0 { start = start.saturating_sub(reach) } else { end = end.saturating_add(reach) }
    }
    start..end
}

/// The bytes of all buffers of an array of Arrow, of its children and of the values of its dictionary.
fn of_arrow(data: &ArrayData, spans: &mut Vec<Span>) {
    let mut open = vec![data];
    while let Some(data) = open.pop() {
        let bits = data.nulls().map(|nulls| nulls.inner().inner());
        spans.extend(data.buffers().iter().chain(bits).map(|buffer| {
            let start = buffer.as_ptr().addr();
            start..start.saturating_add(buffer.len())
        }));
        open.extend(data.child_data());
    }
}

/// The bytes of the numbers of a value, which may be lent memory.
fn of_value(value: &Value, spans: &mut Vec<Span>) {
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        match value {
            Value::Array(_, array) => {
                if let Elements::Numbers(words) | Elements::Bits(words) = array.data() {
                    let bytes = words.as_ptr_range();
                    spans.push(bytes.start.addr()..bytes.end.addr());
                }
            }
            Value::Tuple(fields) => open.extend(fields.iter()),
            _ => {}
        }
    }
}

/// The bytes of an array of NumPy and of its mask, or of all arrays in a list, a tuple or a dict.
fn of_object(object: &Bound<'_, PyAny>, spans: &mut Vec<Span>) -> PyResult<()> {
    let mut open = vec![object.clone()];
    // A list may have itself as an element.
    let mut seen = HashSet::new();
    while let Some(object) = open.pop() {
        if let Ok(array) = object.cast::<PyUntypedArray>() {
            spans.push(of_numpy(array));
            if is_masked(&object)
                && let Ok(mask) = object.getattr("mask")?.cast::<PyUntypedArray>()
            {
                spans.push(of_numpy(mask));
            }
        } else if let Ok(list) = object.cast::<PyList>() {
            if seen.insert(object.as_ptr()) {
                open.extend(list.iter());
            }
        } else if let Ok(tuple) = object.cast::<PyTuple>() {
            if seen.insert(object.as_ptr()) {
                open.extend(tuple.iter());
            }
        } else if let Ok(dict) = object.cast::<PyDict>()
            && seen.insert(object.as_ptr())
        {
            open.extend(dict.iter().map(|(_, value)| value));
        }
    }
    Ok(())
}

/// Refuses arrays of `out` that share a byte with an input, as the caller gave it or as it is read, or with each other.
///
/// # Errors
/// The message names the output, and the input as `arguments` and `columns` do.
pub(crate) fn check<'a, 'py: 'a>(
    out: &[Out<'py>],
    arguments: impl Iterator<Item = (String, &'a Bound<'py, PyAny>)>,
    columns: impl Iterator<Item = (String, &'a Column<'py>)>,
    imports: &Imports<'py>,
) -> PyResult<()> {
    let mut inputs: Vec<(String, Vec<Span>)> = Vec::new();
    for (name, column) in columns {
        let mut spans = Vec::new();
        column.given().iter().for_each(|data| of_arrow(data, &mut spans));
        if let Some(value) = column.value() {
            of_value(value, &mut spans);
        }
        if let Some(array) = column.numpy() {
            spans.push(of_numpy(array));
        }
        inputs.push((name, spans));
    }
    for (name, object) in arguments {
        let mut spans = Vec::new();
        of_object(object, &mut spans)?;
        // What no phase reads is not imported yet.
        let is_read = inputs.iter().any(|(read, spans)| *read == name && !spans.is_empty());
        if spans.is_empty()
            && !is_read
            && is_arrow(object)?
            && let Ok(import) = imports.array(object)
        {
            import.given.iter().for_each(|data| of_arrow(data, &mut spans));
        }
        inputs.push((name, spans));
    }
    let mut others: Vec<(&str, Vec<Span>)> = Vec::new();
    for (name, array) in out {
        let mut own = Vec::new();
        of_object(array, &mut own)?;
        let meets = |spans: &[Span]| own.iter().any(|own| spans.iter().any(|span| meet(own, span)));
        let hint = "give `out` an array of its own, as `numpy.empty` makes it";
        if let Some((input, _)) = inputs.iter().find(|(_, spans)| meets(spans)) {
            return Err(errors::data(format!("`out` for `{name}` shares memory with {input}: {hint}")));
        }
        if let Some((other, _)) = others.iter().find(|(_, spans)| meets(spans)) {
            return Err(errors::data(format!("`out` for `{name}` shares memory with `out` for `{other}`: {hint}")));
        }
        if let [values, mask] = own.as_slice()
            && meet(values, mask)
        {
            return Err(errors::data(format!("`out` for `{name}` shares memory with its own mask: {hint}")));
        }
        others.push((name, own));
    }
    Ok(())
}
