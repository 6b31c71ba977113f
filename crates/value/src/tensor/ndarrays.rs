//! Conversions between tensors and arrays of the crate `ndarray`. Memory is moved or viewed where possible. At most one copy is
//! made, as stated at each conversion.

use super::element::{Data, Element};
use super::error::TensorErrorKind;
use super::layout::Layout;
use super::tensor::{Tensor, wrong_type};
use crate::Error;
use ndarray::{Array, ArrayD, ArrayView, ArrayViewD, Dimension, IxDyn, ShapeBuilder, ShapeError};
use triomphe::Arc;

/// Takes over the array's memory, with any strides. Nothing is copied.
///
/// # Errors
/// If there are more axes than a tensor may have.
impl<T: Element, D: Dimension> TryFrom<Array<T, D>> for Tensor {
    type Error = Error;

    fn try_from(array: Array<T, D>) -> Result<Tensor, Error> {
        let (extents, strides) = (array.shape().to_vec(), array.strides().to_vec());
        let (elements, offset) = array.into_raw_vec_and_offset();
        let layout = Layout::strided(&extents, &strides, offset.unwrap_or(0), elements.len())?;
        Tensor::from_parts(T::data(elements), layout)
    }
}

/// Copies the elements once, in row-major order, because a tensor owns its memory.
///
/// # Errors
/// If there are more axes than a tensor may have.
impl<T: Element, D: Dimension> TryFrom<ArrayView<'_, T, D>> for Tensor {
    type Error = Error;

    fn try_from(view: ArrayView<'_, T, D>) -> Result<Tensor, Error> {
        Tensor::new(view.shape(), view.iter().copied().collect())
    }
}

/// Views the tensor's memory under its layout, including strides of 0 and negative strides. Nothing is copied.
///
/// # Errors
/// If the elements are of another type.
impl<'t, T: Element> TryFrom<&'t Tensor> for ArrayViewD<'t, T> {
    type Error = Error;

    fn try_from(tensor: &'t Tensor) -> Result<ArrayViewD<'t, T>, Error> {
        let elements = T::of(tensor.data()).ok_or_else(|| wrong_type::<T>(tensor.scalar_type()))?;
        let Some((first, last)) = tensor.layout().range() else {
            return ArrayView::from_shape(IxDyn(tensor.extents()), &[]).map_err(misfit);
        };
        let seen = &elements[first as usize..=last as usize];
        ArrayView::from_shape(IxDyn(tensor.extents()).strides(strides(tensor.layout())), seen).map_err(misfit)
    }
}

/// Gives the tensor's memory away if no other tensor shares it, if the tensor has all of its elements, and if no two indices have
/// the same element. Otherwise the elements are copied once, in row-major order.
///
/// # Errors
/// If the elements are of another type.
impl<T: Element> TryFrom<Tensor> for ArrayD<T> {
    type Error = Error;

    fn try_from(tensor: Tensor) -> Result<ArrayD<T>, Error> {
        let (mut data, layout) = tensor.into_parts();
        let last = data.len() as i128 - 1;
        if layout.range() == Some((0, last))
            && layout.is_injective()
            && let Some(elements) = Arc::get_mut(&mut data).and_then(T::of_mut)
        {
            let shape = IxDyn(layout.extents()).strides(strides(&layout));
            return Array::from_shape_vec(shape, std::mem::take(elements)).map_err(misfit);
        }
        let elements = T::of(&data).ok_or_else(|| wrong_type::<T>(Data::scalar(&data)))?;
        let ordered = layout.positions().map(|at| elements[at]).collect();
        Array::from_shape_vec(IxDyn(layout.extents()), ordered).map_err(misfit)
    }
}

/// Strides as `ndarray` represents them: a negative stride is a `usize` by two's complement.
fn strides(layout: &Layout) -> IxDyn {
    IxDyn(&layout.strides().iter().map(|stride| stride.cast_unsigned()).collect::<Vec<usize>>())
}

#[cold]
fn misfit(error: ShapeError) -> Error {
    Error::tensors(TensorErrorKind::SizeMismatch, error.to_string())
}
