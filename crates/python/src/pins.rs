//! Keeps the memory of NumPy arrays at its address during a run, by weak references to the arrays. While an array has a weak reference, the array's
//! `resize` raises NumPy's own error, even with `refcheck=False`. An export by the buffer protocol would not prevent `resize`, because NumPy does not
//! count exports.

use numpy::npyffi::NPY_ARRAY_OWNDATA;
use numpy::{PyUntypedArray, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::{PyMemoryView, PyWeakrefReference};
use smallvec::SmallVec;

/// Weak references to NumPy arrays that own memory. As long as the references exist, the memory is not moved or freed.
pub(crate) type Pins = SmallVec<[Py<PyWeakrefReference>; 4]>;

/// Keeps the memory of `array` at its address as long as `pins` exists. If `array` is a view, this is the memory of the arrays that `array` views.
pub(crate) fn pin(array: &Bound<'_, PyUntypedArray>, pins: &mut Pins) -> PyResult<()> {
    let mut next = Some(array.clone());
    while let Some(array) = next {
        // SAFETY: NUMPY-MEMORY: the array is alive, and its fields are read with the interpreter's lock.
        let (flags, base) = unsafe {
            let fields = &(*array.as_array_ptr()).fields;
            (fields.flags, Bound::from_borrowed_ptr_or_opt(array.py(), fields.base))
        };
        // An array without memory of its own is not resized.
        if flags & NPY_ARRAY_OWNDATA != 0 {
            pins.push(PyWeakrefReference::new(&array)?.unbind());
        }
        next = match base {
            Some(base) => owner(base)?,
            None => None,
        };
    }
    Ok(())
}

/// The most objects between an array and the one that it is a view of.
const MOST_BASES: usize = 16;

/// The next array that a view's `base` leads to, through memory views and the objects of `numpy.lib.stride_tricks`; `None` if there is none.
fn owner<'py>(base: Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyUntypedArray>>> {
    let mut next = Some(base);
    for _ in 0..MOST_BASES {
        let Some(base) = next else { break };
        next = match base.cast_into::<PyUntypedArray>() {
            Ok(array) => return Ok(Some(array)),
            Err(error) => {
                let base = error.into_inner();
                let name = if base.is_instance_of::<PyMemoryView>() { "obj" } else { "base" };
                base.getattr_opt(name)?
            }
        };
    }
    Ok(None)
}
