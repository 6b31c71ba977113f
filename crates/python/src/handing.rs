//! Lets NumPy use the library's arrays in place, without a copy: the opposite of `lending`. A Python object, the holder, owns such an array, and the
//! NumPy arrays that view it keep the holder alive. When no NumPy array views the memory any more, a session can reuse it.

use crate::arrays::{for_each_number, masked, missing};
use crate::lending::LEAST_LENT;
use cembra::{Array, Scalar, Value};
use numpy::PyArray1;
use numpy::ndarray::ArrayViewMut1;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::sync::{Arc, Mutex, PoisonError};

/// An array of the library that NumPy views in place, and the NumPy mask of the array. The mask is empty if no element is missing.
pub(crate) struct HandedArray {
    pub(crate) array: Value,
    pub(crate) mask: Vec<bool>,
}

/// The Python object that owns an array of the library, while NumPy arrays view its memory.
#[pyclass(frozen, module = "cembra")]
pub(crate) struct Holder {
    held: Mutex<Option<HandedArray>>,
}

impl Holder {
    /// Takes the array and the mask out of the holder, so that their memory can be reused. `None` if there are other references to the holder,
    /// because a NumPy array may still use the memory.
    pub(crate) fn released(py: Python<'_>, holder: &Py<Holder>) -> Option<HandedArray> {
        #[expect(deprecated, reason = "other functions that count references need a raw pointer")]
        let is_alone = holder.get_refcnt(py) == 1;
        holder.get().held.lock().unwrap_or_else(PoisonError::into_inner).take_if(|_| is_alone)
    }

    /// Makes the NumPy arrays that read and write the holder's numbers and its mask; `None` in place of the mask's array if there is no mask.
    fn views<'py>(holder: &Bound<'py, Self>) -> (Option<Bound<'py, PyAny>>, Option<Bound<'py, PyAny>>) {
        let mut held = holder.get().held.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(HandedArray { array: Value::Array(_, array), mask }) = &mut *held else { return (None, None) };
        let scalar = array.scalar();
        macro_rules! numbers {
            ($($rust:ident $scalar:ident),*) => {
                match (scalar, Arc::get_mut(array)) {
                    $((Scalar::$scalar, Some(own)) => own.numbers_mut::<$rust>().map(|numbers| Holder::lent(holder, numbers)),)*
                    _ => None,
                }
            };
        }
        let values = for_each_number!(numbers);
        (values, (!mask.is_empty()).then(|| Holder::lent(holder, mask)))
    }

    /// Makes a NumPy array that reads and writes `elements`, memory that the holder owns. The array keeps the holder alive.
    fn lent<'py, T: numpy::Element>(holder: &Bound<'py, Self>, elements: &mut [T]) -> Bound<'py, PyAny> {
        let elements = ArrayViewMut1::from(elements);
        // SAFETY: NUMPY-MEMORY: the holder owns the elements as long as an array refers to the holder.
        unsafe { PyArray1::borrow_from_array(&elements, holder.clone().into_any()) }.into_any()
    }
}

/// Returns true if NumPy stores elements of this type as the library does.
const fn is_number(scalar: Scalar) -> bool {
    macro_rules! one_of {
        ($($rust:ident $scalar:ident),*) => { matches!(scalar, $(Scalar::$scalar)|*) };
    }
    for_each_number!(one_of)
}

/// Returns true if NumPy can view `array` without a copy: the array has at least `LEAST_LENT` elements, they are numbers, and it has no other owner.
pub(crate) fn can_be_viewed(array: &Arc<Array>) -> bool {
    is_number(array.scalar()) && array.len() >= LEAST_LENT && Arc::strong_count(array) == 1
}

/// Makes a NumPy array that views the numbers of the array `value` without a copy. Returns it with the holder, the Python object that owns the
/// numbers. Missing elements are masked; the mask is written to `spare`. `value` becomes `Value::Nothing`.
///
/// Returns `None`, and leaves `value` unchanged, if `value` is not an array, if the array is shared or shorter than `LEAST_LENT`, or if its elements
/// are not numbers.
pub(crate) fn numpy_view_of<'py>(
    py: Python<'py>,
    value: &mut Value,
    spare: Vec<bool>,
) -> PyResult<Option<(Bound<'py, PyAny>, Py<Holder>)>> {
    let Value::Array(_, array) = &*value else { return Ok(None) };
    if !can_be_viewed(array) {
        return Ok(None);
    }
    let mask = missing(array, spare).unwrap_or_default();
    // The holder owns the memory before there is a view of it, because an exception may keep views alive.
    let held = HandedArray { array: std::mem::replace(value, Value::Nothing), mask };
    let holder = Bound::new(py, Holder { held: Mutex::new(Some(held)) })?;
    let (values, mask) = Holder::views(&holder);
    let values =
        values.ok_or_else(|| PyValueError::new_err("an array that is passed without a copy must have numbers"))?;
    let made = mask.map_or_else(|| Ok(values.clone()), |mask| masked(&values, &mask))?;
    Ok(Some((made, holder.unbind())))
}
