//! Products of two matrices in memory: the description of a product, checked once; the trait of its implementations;
//! and a plain implementation. `plan` decides which axes of tensors form the matrices.

use cembra_value::Error;
use cembra_value::tensor::TensorErrorKind;
use std::fmt;

/// The layout of a matrix in memory: the position of its first element, its numbers of rows and columns, and its strides. Positions and strides are
/// in elements.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct MatrixLayout {
    /// The position of the matrix's first element in its memory, in elements.
    pub offset: usize,
    /// The number of rows of the matrix.
    pub rows: usize,
    /// The number of columns of the matrix.
    pub columns: usize,
    /// The distance in memory from an element to the element below it, in the next row, in elements.
    pub row_stride: isize,
    /// The distance in memory from an element to the next element in its row, in elements.
    pub column_stride: isize,
}

impl MatrixLayout {
    /// Returns true if all elements are within memory of `memory` elements.
    fn is_within(&self, memory: usize) -> bool {
        self.rows == 0 || self.columns == 0 || self.last().is_some_and(|last| last < memory)
    }

    /// The largest position of an element, for a matrix that has elements; `None` if a position is negative or overflows.
    fn last(&self) -> Option<usize> {
        let reach = |count: usize, stride: isize| stride.checked_mul(isize::try_from(count - 1).ok()?);
        let (down, along) = (reach(self.rows, self.row_stride)?, reach(self.columns, self.column_stride)?);
        self.offset.checked_add_signed(down.min(0).checked_add(along.min(0))?)?;
        self.offset.checked_add_signed(down.max(0).checked_add(along.max(0))?)
    }

    /// Returns true if it is certain that no two elements have the same position.
    fn is_injective(&self) -> bool {
        let down = (self.row_stride.unsigned_abs(), self.rows);
        let along = (self.column_stride.unsigned_abs(), self.columns);
        let [(near, count), (far, others)] = if down < along { [down, along] } else { [along, down] };
        let is_behind = || near.checked_mul(count.saturating_sub(1)).is_some_and(|reach| far > reach);
        (count <= 1 || near > 0) && (others <= 1 || is_behind())
    }

    fn position(&self, row: usize, column: usize) -> usize {
        let distance = row.cast_signed() * self.row_stride + column.cast_signed() * self.column_stride;
        self.offset.wrapping_add_signed(distance)
    }

    /// The transposed matrix, in the same memory.
    const fn transposed(self) -> MatrixLayout {
        MatrixLayout {
            offset: self.offset,
            rows: self.columns,
            columns: self.rows,
            row_stride: self.column_stride,
            column_stride: self.row_stride,
        }
    }
}

/// A product of two matrices that is to be computed. [`Multiplication::new`] has checked that the sizes agree, that all elements are within their
/// memory, and that no two elements of the result share a position.
#[derive(Debug)]
pub struct Multiplication<'d, T> {
    to: &'d mut [T],
    factors: [&'d [T]; 2],
    layouts: [MatrixLayout; 3],
    adds: bool,
}

impl<'d, T> Multiplication<'d, T> {
    /// Describes a product of two matrices. If `adds` is true, the product will be added to the elements of the result's memory; otherwise it will
    /// overwrite them.
    ///
    /// # Errors
    /// If sizes do not agree, elements are outside of their memory, or elements of the result may overlap.
    pub fn new(
        (to, result): (&'d mut [T], MatrixLayout),
        (a, left): (&'d [T], MatrixLayout),
        (b, right): (&'d [T], MatrixLayout),
        adds: bool,
    ) -> Result<Self, Error> {
        if left.columns != right.rows || (result.rows, result.columns) != (left.rows, right.columns) {
            let message = format!(
                "a {} by {} matrix times a {} by {} matrix is not a {} by {} matrix",
                left.rows, left.columns, right.rows, right.columns, result.rows, result.columns
            );
            return Err(Error::tensors(TensorErrorKind::SizeMismatch, message));
        }
        if !(result.is_within(to.len()) && left.is_within(a.len()) && right.is_within(b.len())) {
            return Err(Error::tensors(TensorErrorKind::Index, "a matrix is not within its memory"));
        }
        if !result.is_injective() {
            return Err(Error::tensors(
                TensorErrorKind::OverlappingTarget,
                "the elements of the result of a product overlap in memory",
            ));
        }
        Ok(Multiplication { to, factors: [a, b], layouts: [left, right, result], adds })
    }

    /// The memory of the result, and the layout of the result in it.
    pub const fn result(&mut self) -> (&mut [T], MatrixLayout) {
        (self.to, self.layouts[2])
    }

    /// The memory of the left matrix, and the layout of the matrix in it.
    #[must_use]
    pub const fn left(&self) -> (&'d [T], MatrixLayout) {
        (self.factors[0], self.layouts[0])
    }

    /// The memory of the right matrix, and the layout of the matrix in it.
    #[must_use]
    pub const fn right(&self) -> (&'d [T], MatrixLayout) {
        (self.factors[1], self.layouts[1])
    }

    /// Returns true if the product is added to the result's elements instead of overwriting them.
    #[must_use]
    pub const fn adds(&self) -> bool {
        self.adds
    }

    /// Returns the same product, described as the product of the transposed matrices in the opposite order.
    fn transposed(self) -> Self {
        let Multiplication { to, factors: [a, b], layouts: [left, right, result], adds } = self;
        let layouts = [right.transposed(), left.transposed(), result.transposed()];
        Multiplication { to, factors: [b, a], layouts, adds }
    }
}

/// An implementation of matrix products of floats. A product must have the same bits whenever it is computed: only the
/// sizes of the matrices may decide how an implementation splits its work.
pub trait MatrixProduct: fmt::Debug + Send + Sync {
    /// Computes a matrix product of FLOAT32. Sums are computed in FLOAT32 or a wider type.
    fn multiply_f32(&self, product: Multiplication<'_, f32>);

    /// Computes a matrix product of FLOAT64.
    fn multiply_f64(&self, product: Multiplication<'_, f64>);
}

/// Computes matrix products in plain loops. For each element, the terms are added in order, in the type of the element.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PlainProduct;

impl MatrixProduct for PlainProduct {
    fn multiply_f32(&self, product: Multiplication<'_, f32>) {
        multiply_plainly(product, |sum, a, b| sum + a * b);
    }

    fn multiply_f64(&self, product: Multiplication<'_, f64>) {
        multiply_plainly(product, |sum, a, b| sum + a * b);
    }
}

/// The most terms, and the most columns, of a block: the packed part of the right matrix stays in the cache while all rows use it.
const BLOCK: usize = 128;

/// Computes a matrix product in plain loops: one block of the right matrix after the other, with a row of sums for each
/// row of the left matrix. For each element, the terms are added in order. `add_product(sum, a, b)` returns `sum` plus
/// the product of `a` and `b`.
#[doc(hidden)]
pub fn multiply_plainly<T: Copy + Default>(product: Multiplication<'_, T>, add_product: impl Fn(T, T, T) -> T) {
    // Columns are the inner loop, so the elements of a row of the result should be adjacent.
    let [_, _, result] = product.layouts;
    let is_upright = result.row_stride.unsigned_abs() < result.column_stride.unsigned_abs();
    let product = if is_upright { product.transposed() } else { product };
    let Multiplication { to, factors: [a, b], layouts: [left, right, result], adds } = product;
    let mut packed = vec![T::default(); BLOCK.min(left.columns) * BLOCK.min(result.columns)];
    let mut sums = [T::default(); BLOCK];
    for first_column in (0..result.columns).step_by(BLOCK) {
        let width = BLOCK.min(result.columns - first_column);
        // Without terms the result still is written, as zeros.
        for first in (0..left.columns.max(1)).step_by(BLOCK) {
            let terms = BLOCK.min(left.columns - first);
            for term in 0..terms {
                for (at, element) in packed[term * width..][..width].iter_mut().enumerate() {
                    *element = b[right.position(first + term, first_column + at)];
                }
            }
            for row in 0..result.rows {
                let sums = &mut sums[..width];
                let position = |at: usize| result.position(row, first_column + at);
                if adds || first > 0 {
                    sums.iter_mut().enumerate().for_each(|(at, sum)| *sum = to[position(at)]);
                } else {
                    sums.fill(T::default());
                }
                for term in 0..terms {
                    let factor = a[left.position(row, first + term)];
                    for (sum, element) in sums.iter_mut().zip(&packed[term * width..][..width]) {
                        *sum = add_product(*sum, factor, *element);
                    }
                }
                sums.iter().enumerate().for_each(|(at, sum)| to[position(at)] = *sum);
            }
        }
    }
}
