//! Conversions between tensors and the matrices of the crate `faer`. Products of tensors are in `matrices.rs`.

use cembra::Error;
use cembra_tensor::{Element, Tensor, TensorErrorKind};
use faer::MatRef;

/// Returns a tensor of two axes as a matrix view of the crate `faer`. The view has the tensor's memory and strides; nothing is copied.
///
/// # Errors
/// If the tensor does not have two axes, or its elements are not of type `T`.
pub fn as_mat_ref<T: Element>(tensor: &Tensor) -> Result<MatRef<'_, T>, Error> {
    let (&[rows, columns], &[row_stride, column_stride]) = (tensor.extents(), tensor.layout().strides()) else {
        let message = format!("a tensor of {} axes is not a matrix", tensor.extents().len());
        return Err(Error::tensors(TensorErrorKind::RankMismatch, message));
    };
    let Some(elements) = T::of(tensor.data()) else {
        let message = format!("the elements are of type {}, not {}", tensor.scalar_type().name(), T::SCALAR.name());
        return Err(Error::tensors(TensorErrorKind::ElementType, message));
    };
    if tensor.layout().is_empty() {
        return Ok(MatRef::from_column_major_slice(&[], rows, columns));
    }
    let (first, offset) = (elements.as_ptr(), tensor.layout().offset());
    // SAFETY: MATRIX-WITHIN: the layout of a tensor has no position outside of its memory, which is borrowed for as long as the view lives. The
    // pointer is that of the whole memory, because negative strides lead to elements before the first one.
    Ok(unsafe { MatRef::from_raw_parts(first.add(offset), rows, columns, row_stride, column_stride) })
}

/// Copies a matrix of the crate `faer` to a tensor with the same rows and columns. The elements are copied once, into row-major order, because a
/// tensor owns its memory.
///
/// # Errors
/// If there are more elements than a tensor may have.
pub fn from_mat_ref<T: Element>(matrix: MatRef<'_, T>) -> Result<Tensor, Error> {
    let (rows, columns) = (matrix.nrows(), matrix.ncols());
    let elements = (0..rows).flat_map(|row| (0..columns).map(move |column| matrix[(row, column)])).collect();
    Tensor::new(&[rows, columns], elements)
}
