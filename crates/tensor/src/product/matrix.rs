//! Products of two matrices in memory: what such a product is of, checked once, the trait of what computes it, and a plain implementation
//! of it. Which matrices tensors are is said by the plan, not here.

use cembra_value::Error;
use cembra_value::tensor::TensorErrorKind;
use std::fmt;

/// Where the elements of a matrix lie: the position of the first, and how far neighbours are apart.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct MatrixLayout {
    /// The position of the first element.
    pub offset: usize,
    /// The number of rows.
    pub rows: usize,
    /// The number of columns.
    pub columns: usize,
    /// From an element to the one below.
    pub row_stride: isize,
    /// From an element to the one beside it.
    pub column_stride: isize,
}

impl MatrixLayout {
    /// True if all elements are within memory of `memory` elements.
    fn is_within(&self, memory: usize) -> bool {
        self.rows == 0 || self.columns == 0 || self.last().is_some_and(|last| last < memory)
    }

    /// The last position of an element of a matrix that has some; none if one is in front of all memory, or further on than memory has positions.
    fn last(&self) -> Option<usize> {
        let reach = |count: usize, stride: isize| stride.checked_mul(isize::try_from(count - 1).ok()?);
        let (down, along) = (reach(self.rows, self.row_stride)?, reach(self.columns, self.column_stride)?);
        self.offset.checked_add_signed(down.min(0).checked_add(along.min(0))?)?;
        self.offset.checked_add_signed(down.max(0).checked_add(along.max(0))?)
    }

    /// True if no two elements have one position.
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

    /// The same elements, rows as columns.
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

/// A product of two matrices to be computed: the rows of the first by the columns of the second. That shapes agree, that all elements
/// are within their memory and that no two of the result share a position was checked when it was made.
#[derive(Debug)]
pub struct Multiplication<'d, T> {
    to: &'d mut [T],
    factors: [&'d [T]; 2],
    layouts: [MatrixLayout; 3],
    adds: bool,
}

impl<'d, T> Multiplication<'d, T> {
    /// The product of two matrices, written to memory or added to what is there.
    ///
    /// # Errors
    /// Shapes do not agree, elements are outside of their memory, or two of the result may be one.
    pub fn new(
        (to, result): (&'d mut [T], MatrixLayout),
        (a, left): (&'d [T], MatrixLayout),
        (b, right): (&'d [T], MatrixLayout),
        adds: bool,
    ) -> Result<Self, Error> {
        if left.columns != right.rows || (result.rows, result.columns) != (left.rows, right.columns) {
            let message = format!(
                "a matrix of {} by {} times one of {} by {} is none of {} by {}",
                left.rows, left.columns, right.rows, right.columns, result.rows, result.columns
            );
            return Err(Error::tensors(TensorErrorKind::SizeMismatch, message));
        }
        if !(result.is_within(to.len()) && left.is_within(a.len()) && right.is_within(b.len())) {
            return Err(Error::tensors(TensorErrorKind::Index, "a matrix that is not within its memory"));
        }
        if !result.is_injective() {
            return Err(Error::tensors(TensorErrorKind::OverlappingTarget, "a product written where elements overlap"));
        }
        Ok(Multiplication { to, factors: [a, b], layouts: [left, right, result], adds })
    }

    /// The elements of the result's memory, and where those of the matrix are.
    pub const fn result(&mut self) -> (&mut [T], MatrixLayout) {
        (self.to, self.layouts[2])
    }

    /// The elements of the left matrix's memory, and where its own are.
    #[must_use]
    pub const fn left(&self) -> (&'d [T], MatrixLayout) {
        (self.factors[0], self.layouts[0])
    }

    /// The elements of the right matrix's memory, and where its own are.
    #[must_use]
    pub const fn right(&self) -> (&'d [T], MatrixLayout) {
        (self.factors[1], self.layouts[1])
    }

    /// True if the product is added to what the result has.
    #[must_use]
    pub const fn adds(&self) -> bool {
        self.adds
    }

    /// The same product, of the transposed matrices in the other order.
    fn transposed(self) -> Self {
        let Multiplication { to, factors: [a, b], layouts: [left, right, result], adds } = self;
        let layouts = [right.transposed(), left.transposed(), result.transposed()];
        Multiplication { to, factors: [b, a], layouts, adds }
    }
}

/// What computes products of matrices of floats. The same product has the same bits each time, whatever else runs: how an implementation
/// splits its work depends on shapes alone.
pub trait MatrixProduct: fmt::Debug + Send + Sync {
    /// Computes a product of FLOAT32; sums are in that type or a wider one.
    fn multiply_f32(&self, product: Multiplication<'_, f32>);

    /// Computes a product of FLOAT64.
    fn multiply_f64(&self, product: Multiplication<'_, f64>);
}

/// Products of matrices as plain loops: each element is summed in the order of its terms, in its own type.
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

/// The terms, and the columns, of a block: what is packed of the right matrix stays in the cache while all rows use it.
const BLOCK: usize = 128;

/// A product as plain loops: a block of the right matrix after the other, with a row of sums for each row of the left one. Each element is summed
/// in the order of its terms. `add_product` adds the product of two elements to a sum.
#[doc(hidden)]
pub fn multiply_plainly<T: Copy + Default>(product: Multiplication<'_, T>, add_product: impl Fn(T, T, T) -> T) {
    // Columns are the inner loop: the result's rows are to lie together.
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
