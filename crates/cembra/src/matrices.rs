//! Products of matrices by a library of them, for products of tensors by labels, and its matrices as tensors. This is the only file that
//! knows it.

use cembra_tensor::{Element, Error, ErrorKind, MatrixLayout, MatrixProduct, Multiplication, PlainProduct, Tensor};
use cembra_wide::Isa;
use faer::linalg::matmul::matmul;
use faer::reborrow::ReborrowMut;
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

/// How many columns of a product whose rows lie together are made at a time at the most, and how many are left for the last time, about, at
/// the least.
///
/// Of FLOAT32 the library makes 96 columns in one go where vectors are of 512 bits, and what is left over in another one: few of them take as
/// long as half of all. With few terms it is a tenth faster in pieces, of which none is small: what it copies of the right matrix stays in
/// the nearest cache then. Where vectors are shorter it is up to a fifth slower in pieces. Of FLOAT64 it makes 48 in two goes if it is given no
/// more, and reads eight rows of the left matrix together, which is up to a quarter faster if the terms do not. And it takes up to a third
/// longer for wide matrices than for some columns of them after others.
fn columns_at_a_time<T>(rows: usize, columns: usize, left: &MatRef<'_, T>) -> [usize; 2] {
    const FEW_TERMS: usize = 384;
    /// What there is to multiply for each column: less is not worth beginning twice.
    const LEAST: usize = 64 * 64;
    let terms = left.ncols();
    match size_of::<T>() {
        _ if rows.saturating_mul(terms) < LEAST => {}
        4 if terms <= FEW_TERMS => return if Isa::Avx512.is_supported() { [96, 48] } else { [columns, 0] },
        8 if left.col_stride() != 1 => return [48, 0],
        _ => {}
    }
    if columns > rows { [384, 0] } else { [columns, 0] }
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
    // Rows of the result are to lie together.
    let is_upright = row_stride.unsigned_abs() < column_stride.unsigned_abs();
    let (mut to, left, right) =
        if is_upright { (to.transpose_mut(), right.transpose(), left.transpose()) } else { (to, left, right) };
    let [most, least_left] = columns_at_a_time(to.nrows(), to.ncols(), &left);
    let mut first = 0;
    while first < to.ncols() {
        let rest = to.ncols() - first;
        let count = if rest > most { (rest - least_left).next_multiple_of(16).min(most) } else { rest };
        let to = to.rb_mut().subcols_mut(first, count);
        matmul(to, accum, left, right.subcols(first, count), one.clone(), Par::Seq);
        first += count;
    }
}

/// A tensor of two axes as a matrix of faer, which sees its memory under any strides. Nothing is copied.
///
/// # Errors
/// There are not two axes, or the elements are of another type.
pub fn as_mat_ref<T: Element>(tensor: &Tensor) -> Result<MatRef<'_, T>, Error> {
    let (&[rows, columns], &[row_stride, column_stride]) = (tensor.extents(), tensor.layout().strides()) else {
        let message = format!("a tensor of {} axes is no matrix", tensor.extents().len());
        return Err(Error::new(ErrorKind::RankMismatch, message));
    };
    let Some(elements) = T::of(tensor.data()) else {
        let message = format!("elements of type {} are not {}", tensor.scalar_type().name(), T::SCALAR.name());
        return Err(Error::new(ErrorKind::ElementType, message));
    };
    if tensor.layout().is_empty() {
        return Ok(MatRef::from_column_major_slice(&[], rows, columns));
    }
    let (first, offset) = (elements.as_ptr(), tensor.layout().offset());
    // SAFETY: MATRIX-WITHIN: the layout of a tensor has no position outside of its memory, which is borrowed for as long as the view lives;
    // the pointer is that of all of it, as strides may lead to what is before the first element.
    Ok(unsafe { MatRef::from_raw_parts(first.add(offset), rows, columns, row_stride, column_stride) })
}

/// A matrix of faer as a tensor of its rows and columns. The elements are copied, once, into the order of their indices: a tensor has
/// memory of its own.
///
/// # Errors
/// There are more elements than a tensor may have.
pub fn from_mat_ref<T: Element>(matrix: MatRef<'_, T>) -> Result<Tensor, Error> {
    let (rows, columns) = (matrix.nrows(), matrix.ncols());
    let elements = (0..rows).flat_map(|row| (0..columns).map(move |column| matrix[(row, column)])).collect();
    Tensor::new(&[rows, columns], elements)
}
