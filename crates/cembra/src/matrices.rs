//! Products of matrices by a library of them, for products of tensors by labels. This is the only file that knows it.

use cembra_tensor::{MatrixLayout, MatrixProduct, Multiplication, PlainProduct};
use faer::linalg::matmul::matmul;
use faer::traits::ComplexField;
use faer::{Accum, MatMut, MatRef, Par};

/// Products of matrices by faer, on the thread that asks for them: sums are split by shapes alone. Vectors are no matrices here, as the
/// library has another way for them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FaerProduct;

impl MatrixProduct for FaerProduct {
    fn multiply_f32(&self, product: Multiplication<'_, f32>) {
        if is_of_matrices(&product) { multiply(product, 1.0) } else { PlainProduct.multiply_f32(product) }
    }

    fn multiply_f64(&self, product: Multiplication<'_, f64>) {
        if is_of_matrices(&product) { multiply(product, 1.0) } else { PlainProduct.multiply_f64(product) }
    }
}

/// True if there are several rows, columns and terms.
fn is_of_matrices<T>(product: &Multiplication<'_, T>) -> bool {
    let ((_, left), (_, right)) = (product.left(), product.right());
    left.rows > 1 && left.columns > 1 && right.columns > 1
}

fn multiply<T: ComplexField>(mut product: Multiplication<'_, T>, one: T) {
    let accum = if product.adds() { Accum::Add } else { Accum::Replace };
    let ((a, left), (b, right)) = (product.left(), product.right());
    let view = |elements: &[T], layout: MatrixLayout| -> MatRef<'_, T> {
        let MatrixLayout { offset, rows, columns, row_stride, column_stride } = layout;
        let first = elements.as_ptr();
        // SAFETY: MATRIX-WITHIN: all elements of a factor are within the slice, which is borrowed for as long as the view lives; the first
        // one's position is one of the slice, and the pointer is the whole slice's, as strides may lead to what is before it.
        unsafe { MatRef::from_raw_parts(first.add(offset), rows, columns, row_stride, column_stride) }
    };
    let (left, right) = (view(a, left), view(b, right));
    let (to, MatrixLayout { offset, rows, columns, row_stride, column_stride }) = product.result();
    let first = to.as_mut_ptr();
    // SAFETY: MATRIX-WITHIN: all elements of the result are within the slice, which is borrowed for us alone, and no two are one; the first
    // one's position is one of the slice.
    let to = unsafe { MatMut::from_raw_parts_mut(first.add(offset), rows, columns, row_stride, column_stride) };
    matmul(to, accum, left, right, one, Par::Seq);
}
