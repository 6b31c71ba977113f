//! Memory of NumPy's arrays that the library reads where it is, in the place of a copy. Which elements of tensors and arrays are read so, their
//! callers say; here is how long the memory stays.

use crate::pins::{Pins, pin};
use cembra::Words;
use cembra::tensor::{Buffer, Element, Layout, Tensor};
use numpy::{PyArrayDyn, PyArrayMethods, PyUntypedArrayMethods};
use pyo3::prelude::*;
use std::sync::Arc;

/// The least element count that is not copied: a copy of fewer takes less time than to keep their array.
pub(crate) const LEAST_LENT: usize = 1024;

/// Elements of an array of NumPy, which is kept for them and keeps its memory.
struct Lender<T> {
    first: *const T,
    len: usize,
    _array: Py<PyAny>,
    _pins: Pins,
}

// SAFETY: NUMPY-MEMORY: the caller does not write the elements while they are lent, and any thread may drop the reference to the array.
unsafe impl<T: Sync> Send for Lender<T> {}
// SAFETY: NUMPY-MEMORY: likewise.
unsafe impl<T: Sync> Sync for Lender<T> {}

impl<T> AsRef<[T]> for Lender<T> {
    fn as_ref(&self) -> &[T] {
        // SAFETY: NUMPY-MEMORY: the elements between the lowest and the highest that an array sees, aligned, of an array that is kept.
        unsafe { std::slice::from_raw_parts(self.first, self.len) }
    }
}

/// Where the elements of an array are: the lowest of them, how many there are up to the highest, and how indices find them.
struct StridedMemory<T> {
    first: *const T,
    len: usize,
    /// The position of the first index.
    offset: usize,
    strides: Vec<isize>,
    pins: Pins,
}

/// The same elements at whole distances from each other, aligned: a copy of elements that are not, such as fields of records.
pub(crate) fn whole<'py, T: numpy::Element>(array: &Bound<'py, PyArrayDyn<T>>) -> PyResult<Bound<'py, PyArrayDyn<T>>> {
    let is_whole = |bytes: &isize| bytes.unsigned_abs().is_multiple_of(size_of::<T>());
    if array.strides().iter().all(is_whole) && array.data().is_aligned() {
        return Ok(array.clone());
    }
    Ok(array.call_method0("copy")?.cast_into()?)
}

/// Where the elements of an array are, if they are enough to be read there, aligned, and no two indices share one.
fn place<T: numpy::Element>(array: &Bound<'_, PyArrayDyn<T>>) -> Option<StridedMemory<T>> {
    if array.len() < LEAST_LENT || !array.data().is_aligned() {
        return None;
    }
    // Before the address and the extents are read: what is allocated may run a destructor of Python.
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

/// The tensor of an array, in the array's memory if that can be.
pub(crate) fn tensor<T: Element + numpy::Element>(array: &Bound<'_, PyArrayDyn<T>>) -> Option<Arc<Tensor>> {
    let StridedMemory { first, len, offset, strides, pins } = place(array)?;
    let layout = Layout::strided(array.shape(), &strides, offset, len).ok()?;
    let elements = Buffer::lent(Lender { first, len, _array: array.clone().into_any().unbind(), _pins: pins });
    Tensor::from_parts(T::data(elements), layout).ok().map(Arc::new)
}

/// The elements of an array as the words of an array of the library, in the array's memory if that can be: if they are one behind the other, and
/// fill whole words.
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
