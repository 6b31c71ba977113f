//! A check of `out`, the caller's arrays that outputs are written to: no array may share a byte with an input or with another array of `out`. A run
//! must not write memory that it reads, because rows are evaluated again if a row fails, and because inputs are checked before they are read.

use crate::arrays::is_masked;
use crate::columns::{Column, Out};
use crate::errors;
use crate::packages::{Imports, is_arrow};
use arrow_data::ArrayData;
use cembra::Value;
use cembra::values::ArrayData as Elements;
use numpy::{PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use std::collections::HashSet;
use std::ops::Range;

/// A range of addresses, in bytes.
type Span = Range<usize>;

/// Returns true if the ranges share a byte.
fn meet(a: &Span, b: &Span) -> bool {
    a.start < b.end && b.start < a.end && !a.is_empty() && !b.is_empty()
}

/// The range from the lowest to the highest byte of a NumPy array.
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

/// Appends the address ranges of all buffers of an Arrow array, of its children and of its dictionary's values to `spans`.
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

/// Appends the address ranges of the numbers in a value to `spans`. The memory may be that of another package, which lends it.
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

/// Appends the address ranges of a NumPy array and its mask to `spans`, or those of all arrays in a list, a tuple or a dict.
fn of_object(object: &Bound<'_, PyAny>, spans: &mut Vec<Span>) -> PyResult<()> {
    let mut open = vec![object.clone()];
    // A list may contain itself.
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

/// Checks that no array of `out` shares a byte with another array of `out`, or with an input. `arguments` has the inputs as the caller passed them,
/// and `columns` as the model reads them, both with their names.
///
/// # Errors
/// If two arrays share a byte. The message has the name of the output, and the name of the input in `arguments` or `columns`.
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
        // An input that no phase reads is not imported yet.
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
        let hint = "give `out` an array with its own memory, as `numpy.empty` makes it";
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
