//! Converts arrays to vectors of Rust types and back, for callers that hold the elements in memory of their own.

#![deny(clippy::arithmetic_side_effects)]

use crate::rows::{Bitmap, ColumnValue, InputColumn};
use cembra_runtime::{Optional, Scalar};
use cembra_value::{Array, ArrayData};
use std::mem::MaybeUninit;

/// An array in the caller's memory whose elements may be missing: contiguous values, and one bit per element that is set where the element is
/// present, as in Arrow.
///
/// ```
/// use cembra_engine::rows::{ArrayView, Bitmap};
///
/// let (values, bits) = ([1.5, 0.0, 2.5], [0b101]);
/// let view = ArrayView::new(&values).present(Bitmap::new(&bits, 0, 3).unwrap());
/// assert_eq!(view.unwrap().array().to_string(), "[1.5, NA, 2.5]");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct ArrayView<'a, T> {
    values: &'a [T],
    presence: Option<Bitmap<'a>>,
}

impl<'a, T: ColumnValue> ArrayView<'a, T> {
    /// Makes a view of `values`, all of which are present.
    #[must_use]
    pub const fn new(values: &'a [T]) -> Self {
        ArrayView { values, presence: None }
    }

    /// Sets the presence bits of the elements: an element is present where its bit is 1. Returns `None` if there are fewer bits than elements.
    #[must_use]
    pub fn present(self, bits: Bitmap<'a>) -> Option<Self> {
        (bits.rows() >= self.values.len()).then_some(ArrayView { presence: Some(bits), ..self })
    }

    /// The values of the elements. A missing element has an unspecified value.
    #[must_use]
    pub const fn values(&self) -> &'a [T] {
        self.values
    }

    /// Copies the elements to an array.
    #[must_use]
    pub fn array(&self) -> Array {
        let column = InputColumn::values(self.values);
        whole(&self.presence.map_or(column, |bits| column.present(bits)), T::SCALAR)
    }
}

/// Copies all rows of a column of scalars to an array of this type.
fn whole(column: &InputColumn<'_>, scalar: Scalar) -> Array {
    let made = column.array(scalar, 0..column.rows().unwrap_or(0));
    made.unwrap_or_else(|| Array::from_scalars(scalar, []))
}

/// Copies optional values to an array.
#[must_use]
pub fn array_of_optionals<T: ColumnValue>(values: &[Optional<T>]) -> Array {
    whole(&InputColumn::optionals(values), T::SCALAR)
}

/// Copies the elements of `array` to a vector; `None` if an element is missing, or the elements do not have the type `T`.
#[must_use]
pub fn elements<T: ColumnValue>(array: &Array) -> Option<Vec<T>> {
    if array.present_count() < array.len() { None } else { all_elements(array) }
}

/// Copies the elements of `array`, any of which may be missing, to a vector; `None` if they do not have the type `T`.
#[must_use]
pub fn optional_elements<T: ColumnValue + Default>(array: &Array) -> Option<Vec<Optional<T>>> {
    let all = all_elements::<T>(array)?.into_iter().enumerate();
    Some(all.map(|(at, value)| array.is_present(at).then_some(value).into()).collect())
}

/// Copies the values of all elements, with unspecified values for missing ones; `None` if they have another type.
fn all_elements<T: ColumnValue>(array: &Array) -> Option<Vec<T>> {
    let len = array.len();
    if array.scalar() != T::SCALAR && array.scalar().representation() != T::SCALAR {
        return None;
    }
    let mut made: Vec<MaybeUninit<T>> = Vec::with_capacity(len);
    match array.data() {
        ArrayData::Numbers(words) => {
            // SAFETY: COLUMNS: the words hold as many values of the type's size, and there is room for them.
            unsafe {
                made.as_mut_ptr()
                    .cast::<u8>()
                    .copy_from_nonoverlapping(words.as_ptr().cast(), len.saturating_mul(size_of::<T>()));
                made.set_len(len);
            }
        }
        ArrayData::Bits(words) => {
            for at in 0..len {
                let mut value = MaybeUninit::<T>::zeroed();
                // SAFETY: COLUMNS: a truth value is a byte that is 0 or 1.
                unsafe { value.as_mut_ptr().cast::<u8>().write((words[at / 64] >> (at % 64) & 1) as u8) };
                made.push(value);
            }
        }
        ArrayData::Units | ArrayData::Strings(_) => return None,
    }
    // SAFETY: COLUMNS: any bits of a value's size are a valid value, and the bytes of truth values were just written.
    Some(made.into_iter().map(|value| unsafe { value.assume_init() }).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use cembra_runtime::Date;

    #[test]
    fn elements_come_back_as_they_were() {
        let view = ArrayView::new(&[1_i32, 2, 3]);
        assert_eq!(elements::<i32>(&view.array()), Some(vec![1, 2, 3]));
        assert_eq!((elements::<f32>(&view.array()), elements::<i64>(&view.array())), (None, None));
        let optionals: [Optional<f64>; 3] = [1.5.into(), Optional::missing(), (-2.5).into()];
        let array = array_of_optionals(&optionals);
        assert_eq!((elements::<f64>(&array), optional_elements(&array)), (None, Some(optionals.to_vec())));
        let flags: Vec<bool> = (0..70).map(|at| at % 3 == 1).collect();
        assert_eq!(elements(&ArrayView::new(&flags).array()), Some(flags));
        let days = [Date(5), Date(-1)];
        assert_eq!(elements(&ArrayView::new(&days).array()), Some(days.to_vec()));
        assert_eq!(elements::<Date>(&view.array()), None);
        assert_eq!(elements::<u64>(&ArrayView::<u64>::new(&[]).array()), Some(vec![]));
        assert!(ArrayView::new(&[1.0, 2.0]).present(Bitmap::new(&[1], 0, 1).unwrap()).is_none());
    }
}
