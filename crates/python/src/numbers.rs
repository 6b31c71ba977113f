//! Numbers of a NumPy array, read and written in place. The address and the count of the numbers are recorded once, and compared with the array
//! before each access, because Python functions that run in between may give the array another shape, type or memory.

use numpy::npyffi::{NPY_ARRAY_C_CONTIGUOUS, NPY_ARRAY_WRITEABLE};
use numpy::{PyArray, PyArray1, PyArrayMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::prelude::*;

/// The contiguous numbers of a NumPy array, in row order.
pub(crate) struct Numbers<'py, T> {
    array: Bound<'py, PyUntypedArray>,
    first: *mut T,
    len: usize,
    /// The number of axes that the array had when its address was recorded.
    axes: usize,
}

/// Returns true if the elements of a NumPy array may be written.
pub(crate) fn is_writable(array: &Bound<'_, PyUntypedArray>) -> bool {
    // SAFETY: NUMPY-MEMORY: the array is alive, and its fields are read with the interpreter's lock.
    let flags = unsafe { (*array.as_array_ptr()).fields.flags };
    flags & NPY_ARRAY_WRITEABLE != 0
}

impl<'py, T: numpy::Element> Numbers<'py, T> {
    /// Returns access to the numbers of the NumPy array `object`. `None` if `object` is not an array with one axis whose elements are aligned,
    /// contiguous numbers of the type `T`.
    pub(crate) fn of(object: &Bound<'py, PyAny>) -> Option<Self> {
        Self::of_array(object.cast::<PyArray1<T>>().ok()?)
    }

    /// Returns access to the numbers of an array with any number of axes. `None` if the numbers are not aligned and contiguous.
    pub(crate) fn of_array<D>(array: &Bound<'py, PyArray<T, D>>) -> Option<Self> {
        let array = array.as_untyped();
        let (first, len) = Self::place(array)?;
        Some(Numbers { array: array.clone(), first, len, axes: array.ndim() })
    }

    /// The address of the first number, and the count. `None` if the numbers are not aligned and contiguous.
    fn place(array: &Bound<'py, PyUntypedArray>) -> Option<(*mut T, usize)> {
        let len = array.shape().iter().product();
        // SAFETY: NUMPY-MEMORY: the array is alive, and its fields are read with the interpreter's lock.
        let (first, flags) = unsafe {
            let fields = &(*array.as_array_ptr()).fields;
            (fields.data.cast::<T>(), fields.flags)
        };
        let is_whole = flags & NPY_ARRAY_C_CONTIGUOUS != 0 && first.is_aligned() && !first.is_null();
        is_whole.then_some((first, len))
    }

    /// The NumPy array that has the numbers.
    pub(crate) const fn array(&self) -> &Bound<'py, PyUntypedArray> {
        &self.array
    }

    /// The number of elements in the NumPy array.
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// Returns true if the array still has the same address, number of elements and number of axes.
    fn is_unchanged(&self) -> bool {
        self.array.ndim() == self.axes && Self::place(&self.array) == Some((self.first, self.len))
    }

    /// Returns the array's numbers, for reading; `None` if the array was changed after its address was recorded. While
    /// the slice is in use, one of two conditions must hold: the array is pinned, or no Python code runs.
    pub(crate) fn read(&self) -> Option<&[T]> {
        // SAFETY: NUMPY-MEMORY: the array is kept alive, and still has `len` elements at this address. A type that was set since has elements of the
        // same size.
        self.is_unchanged().then(|| unsafe { std::slice::from_raw_parts(self.first, self.len) })
    }

    /// Returns the array's numbers, for writing; `None` if the array was changed after its address was recorded, or if
    /// it is read-only. While the slice is in use, one of two conditions must hold: the array is pinned, or no Python
    /// code runs.
    pub(crate) fn written(&mut self) -> Option<&mut [T]> {
        // SAFETY: NUMPY-MEMORY: as in `read`, and no input of the run has a byte of this memory.
        (is_writable(&self.array) && self.is_unchanged())
            .then(|| unsafe { std::slice::from_raw_parts_mut(self.first, self.len) })
    }
}
