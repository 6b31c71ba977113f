//! Numbers of an array of NumPy where they are: their place when the array was met, which is compared with the array before they are read or written,
//! because functions of Python that run in between may give the array other extents, another type or other memory.

use numpy::npyffi::{NPY_ARRAY_C_CONTIGUOUS, NPY_ARRAY_WRITEABLE};
use numpy::{PyArray1, PyArrayMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::prelude::*;

/// The numbers of an array with one axis, one behind the other.
pub(crate) struct Numbers<'py, T> {
    array: Bound<'py, PyUntypedArray>,
    first: *mut T,
    len: usize,
}

/// True if the elements of an array may be written.
pub(crate) fn is_writable(array: &Bound<'_, PyUntypedArray>) -> bool {
    // SAFETY: NUMPY-MEMORY: the array is alive, and its fields are read with the interpreter's lock.
    let flags = unsafe { (*array.as_array_ptr()).fields.flags };
    flags & NPY_ARRAY_WRITEABLE != 0
}

impl<'py, T: numpy::Element> Numbers<'py, T> {
    /// `None` of an object that is no array with one axis of such numbers, aligned and one behind the other.
    pub(crate) fn of(object: &Bound<'py, PyAny>) -> Option<Self> {
        let array = object.cast::<PyArray1<T>>().ok()?.as_untyped().clone();
        let (first, len) = Self::place(&array)?;
        Some(Numbers { array, first, len })
    }

    /// The place of the numbers, and their count.
    fn place(array: &Bound<'py, PyUntypedArray>) -> Option<(*mut T, usize)> {
        // SAFETY: NUMPY-MEMORY: the array is alive, and its fields are read with the interpreter's lock; there is an extent for each axis.
        let (first, len, flags) = unsafe {
            let fields = &(*array.as_array_ptr()).fields;
            let len = (fields.nd == 1).then(|| *fields.dimensions)?;
            (fields.data.cast::<T>(), usize::try_from(len).ok()?, fields.flags)
        };
        let is_whole = flags & NPY_ARRAY_C_CONTIGUOUS != 0 && first.is_aligned() && !first.is_null();
        is_whole.then_some((first, len))
    }

    /// The array itself.
    pub(crate) const fn array(&self) -> &Bound<'py, PyUntypedArray> {
        &self.array
    }

    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// True if the array has as many elements at the same place as when it was met.
    fn is_unchanged(&self) -> bool {
        Self::place(&self.array) == Some((self.first, self.len))
    }

    /// The numbers, read until the array's memory may be taken away: it is pinned, or Python runs nothing meanwhile. `None` if the array was changed.
    pub(crate) fn read(&self) -> Option<&[T]> {
        // SAFETY: NUMPY-MEMORY: the array, which is kept, has as many elements there. A type that was set since has elements of the same size.
        self.is_unchanged().then(|| unsafe { std::slice::from_raw_parts(self.first, self.len) })
    }

    /// The numbers to write, until the array's memory may be taken away. `None` if the array was changed, or may not be written.
    pub(crate) fn written(&mut self) -> Option<&mut [T]> {
        // SAFETY: NUMPY-MEMORY: as in `read`, and no input of the run has a byte there.
        (is_writable(&self.array) && self.is_unchanged())
            .then(|| unsafe { std::slice::from_raw_parts_mut(self.first, self.len) })
    }
}
