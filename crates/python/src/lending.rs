//! Memory of NumPy arrays that the library reads in place instead of copying it. This file keeps the memory alive and at its address. Its callers
//! decide which tensors and arrays are read in place.

use crate::pins::{Pins, pin};
use cembra::tensor::{Buffer, Element, Layout, Tensor};
use cembra::values::Words;
use numpy::{PyArrayDyn, PyArrayMethods, PyUntypedArrayMethods};
use pyo3::prelude::*;
use std::sync::Arc;

/// The fewest elements that a NumPy array must have to be read in place. For fewer elements, a copy takes less time than keeping the array alive.
pub(crate) const LEAST_LENT: usize = 1024;

/// Elements in the memory of a NumPy array, and the references that keep the memory alive and in place.
struct Lender<T> {
    first: *const T,
    len: usize,
    _array: Py<PyAny>,
    _pins: Pins,
}

// SAFETY: NUMPY-MEMORY: the caller does not write the elements while they are lent, and any thread may drop the reference to the array.
unsafe impl<T: Sync> Send for Lender<T> {}
// SAFETY: NUMPY-MEMORY: as for `Send`, the caller does not write the elements while they are lent.
unsafe impl<T: Sync> Sync for Lender<T> {}

impl<T> AsRef<[T]> for Lender<T> {
    fn as_ref(&self) -> &[T] {
        // SAFETY: NUMPY-MEMORY: these are the elements from the lowest to the highest address of an array, aligned, and the array is kept alive.
        unsafe { std::slice::from_raw_parts(self.first, self.len) }
    }
}

/// The memory of a strided NumPy array: the address of its lowest element, and the number of elements from the lowest to the highest address.
struct StridedMemory<T> {
    first: *const T,
    len: usize,
    /// The position of the element whose indices are all 0, counted from `first`.
    offset: usize,
    strides: Vec<isize>,
    pins: Pins,
}

/// Returns `array` if its elements are aligned and its strides are multiples of the element size. Otherwise (for example, if the array is a field of
/// records) returns a contiguous copy.
pub(crate) fn whole<'py, T: numpy::Element>(array: &Bound<'py, PyArrayDyn<T>>) -> PyResult<Bound<'py, PyArrayDyn<T>>> {
    let is_whole = |bytes: &isize| bytes.unsigned_abs().is_multiple_of(size_of::<T>());
    if array.strides().iter().all(is_whole) && array.data().is_aligned() {
        return Ok(array.clone());
    }
    Ok(array.call_method0("copy")?.cast_into()?)
}

/// Returns the memory of an array that can be read in place. `None` if the array has fewer than `LEAST_LENT` elements, if its elements are not
/// aligned or not a whole number of elements apart, or if it has more indices than elements in memory, because strides are 0.
fn place<T: numpy::Element>(array: &Bound<'_, PyArrayDyn<T>>) -> Option<StridedMemory<T>> {
    if array.len() < LEAST_LENT || !array.data().is_aligned() {
        return None;
    }
    // Pin before the address and the extents are read, because an allocation may run a destructor of Python.
    let mut pins = Pins::new();
    pin(array.as_untyped(), &mut pins).ok()?;
    let (extents, size) = (array.shape(), size_of::<T>());
    if array.len() < LEAST_LENT || !array.data().is_aligned() {
        return None;
    }
    let strides = array.strides().iter().map(|bytes| {
        let is_whole = bytes.unsigned_abs().is_multiple_of(size);
        is_whole.then(|| bytes / size.cast_signed())
    });
    let strides: Vec<isize> = strides.collect::<Option<_>>()?;
    let (mut offset, mut len) = (0_usize, 1_usize);
    for (extent, stride) in extents.iter().zip(&strides) {
        let reach = (extent - 1).checked_mul(stride.unsigned_abs())?;
        len = len.checked_add(reach)?;
        offset += if *stride < 0 { reach } else { 0 };
    }
    let first = array.data().cast_const().wrapping_sub(offset);
    (array.len() <= len).then_some(StridedMemory { first, len, offset, strides, pins })
}

/// Makes a tensor that reads the memory of the NumPy array in place; `None` if that is not possible.
pub(crate) fn tensor<T: Element + numpy::Element>(array: &Bound<'_, PyArrayDyn<T>>) -> Option<Arc<Tensor>> {
    let StridedMemory { first, len, offset, strides, pins } = place(array)?;
    let layout = Layout::strided(array.shape(), &strides, offset, len).ok()?;
    let elements = Buffer::lent(Lender { first, len, _array: array.clone().into_any().unbind(), _pins: pins });
    Tensor::from_parts(T::data(elements), layout).ok().map(Arc::new)
}

/// Makes a list of 64-bit words that reads the memory of the NumPy array in place. The elements must be contiguous and aligned to 64 bits, and fill
/// whole words; otherwise the result is `None`.
pub(crate) fn words<T: numpy::Element>(array: &Bound<'_, PyArrayDyn<T>>) -> Option<Words> {
    let StridedMemory { first, len, strides, pins, .. } = place(array)?;
    let first = first.cast::<u64>();
    let bytes = len.checked_mul(size_of::<T>())?;
    if strides != [1] || !first.is_aligned() || !bytes.is_multiple_of(size_of::<u64>()) {
        return None;
    }
    let len = bytes / size_of::<u64>();
    Some(Words::lent(Lender { first, len, _array: array.clone().into_any().unbind(), _pins: pins }))
}
