//! Matrix products by a library, for products of tensors by labels (as in einsum). No other file depends on that
//! library. On x86-64 the library is faer, of which only the kernels are used, because the rest takes ten times as long
//! to build. On other processors it is `gemm`.

use crate::tensors::product::{MatrixLayout, MatrixProduct, Multiplication, PlainProduct};

/// Matrix products by a library, on the calling thread, so only the shapes of the matrices decide how sums are split.
/// Products with a vector go to [`PlainProduct`], because the library is not faster for them. On x86-64 processors
/// without AVX2, all products go to [`PlainProduct`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LibraryProduct;

impl MatrixProduct for LibraryProduct {
    fn multiply_f32(&self, product: Multiplication<'_, f32>) {
        multiply(product, library::multiply_f32, |product| PlainProduct.multiply_f32(product));
    }

    fn multiply_f64(&self, product: Multiplication<'_, f64>) {
        multiply(product, library::multiply_f64, |product| PlainProduct.multiply_f64(product));
    }
}

impl LibraryProduct {
    /// The name of the instruction set that the library's kernels use on this processor. The instruction set decides how sums are rounded, so a
    /// processor with another instruction set gives other bits.
    #[must_use]
    pub fn instructions() -> &'static str {
        if library::is_there() { library::instructions() } else { "plain loops" }
    }
}

/// Returns true if the product has several rows, columns and terms.
fn is_of_matrices<T>(product: &Multiplication<'_, T>) -> bool {
    let ((_, left), (_, right)) = (product.left(), product.right());
    left.rows > 1 && left.columns > 1 && right.columns > 1
}

/// A matrix in memory: its first element, the stride from row to row, and the stride from column to column, in elements.
#[derive(Clone, Copy)]
struct Matrix<P> {
    first: P,
    row_stride: isize,
    column_stride: isize,
}

impl<P> Matrix<P> {
    /// The transposed matrix, on the same elements.
    fn transposed(self) -> Matrix<P> {
        Matrix { first: self.first, row_stride: self.column_stride, column_stride: self.row_stride }
    }
}

/// The arguments of the library: the extents of a product, its three matrices, and whether it is added to the result or replaces it.
struct Call<T> {
    rows: usize,
    columns: usize,
    terms: usize,
    to: Matrix<*mut T>,
    adds: bool,
    left: Matrix<*const T>,
    right: Matrix<*const T>,
}

/// The most columns per call, and the number of columns to leave for the last call if possible. The elements of a row are
/// contiguous in the result.
///
/// With AVX-512, a kernel computes 96 columns of FLOAT32 at a time, and a remainder of a few columns takes as long as half
/// of them. With few terms, pieces without a small remainder are a tenth faster, because the packed part of the right
/// matrix stays in the nearest cache. With shorter vectors, pieces are up to a fifth slower. For FLOAT64, 48 columns are
/// computed in two steps if a call has no more, and eight rows of the left matrix are read together: a quarter faster if
/// its terms are not contiguous. Wide matrices take up to a third longer in one call than in several.
fn columns_at_a_time<T>(call: &Call<T>) -> [usize; 2] {
    const FEW_TERMS: usize = 384;
    /// The fewest multiplications per column for which a second call pays off.
    const LEAST: usize = 64 * 64;
    match size_of::<T>() {
        _ if call.rows.saturating_mul(call.terms) < LEAST => {}
        4 if call.terms <= FEW_TERMS => {
            return if cembra_wide::Isa::Avx512.is_supported() { [96, 48] } else { [call.columns, 0] };
        }
        8 if call.left.column_stride != 1 => return [48, 0],
        _ => {}
    }
    if call.columns > call.rows { [384, 0] } else { [call.columns, 0] }
}

/// Computes a product in pieces of columns by calls of `by_library`, each within the product's matrices (MATRIX-WITHIN). `plainly` computes products
/// that are not of matrices, and all products if the library is absent (FEATURE).
fn multiply<'m, T>(
    mut product: Multiplication<'m, T>,
    by_library: unsafe fn(&Call<T>),
    plainly: impl FnOnce(Multiplication<'m, T>),
) {
    if !is_of_matrices(&product) || !library::is_there() {
        return plainly(product);
    }
    let adds = product.adds();
    let ((a, left), (b, right)) = (product.left(), product.right());
    let factor = |elements: &[T], layout: MatrixLayout| {
        // SAFETY: MATRIX-WITHIN: the first element's position is within the slice. The pointer is that of the whole slice,
        // as strides may lead to elements before the first one.
        let first = unsafe { elements.as_ptr().add(layout.offset) };
        Matrix { first, row_stride: layout.row_stride, column_stride: layout.column_stride }
    };
    let (mut rows, mut columns, terms) = (left.rows, right.columns, left.columns);
    let (mut left, mut right) = (factor(a, left), factor(b, right));
    let (elements, layout) = product.result();
    // SAFETY: MATRIX-WITHIN: the position of the first element is within the slice, which this function borrows exclusively.
    let first = unsafe { elements.as_mut_ptr().add(layout.offset) };
    let mut to = Matrix { first, row_stride: layout.row_stride, column_stride: layout.column_stride };
    // The elements of a row of the result must be contiguous.
    if to.row_stride.unsigned_abs() < to.column_stride.unsigned_abs() {
        (left, right) = (right.transposed(), left.transposed());
        (to, rows, columns) = (to.transposed(), columns, rows);
    }
    let mut call = Call { rows, columns, terms, to, adds, left, right };
    let [most, least_left] = columns_at_a_time(&call);
    let mut made = 0;
    while made < columns {
        let rest = columns - made;
        call.columns = if rest > most { (rest - least_left).next_multiple_of(16).min(most) } else { rest };
        let begin = made.cast_signed();
        // SAFETY: MATRIX-WITHIN: the column is one of the matrix, so its first element is within the slice.
        call.to.first = unsafe { to.first.offset(begin * to.column_stride) };
        // SAFETY: MATRIX-WITHIN: the same column of the right matrix, whose first element is within its slice.
        call.right.first = unsafe { right.first.offset(begin * right.column_stride) };
        // SAFETY: MATRIX-WITHIN: all elements of these columns and of the factors are within their slices, which are borrowed until the
        // library returns, and elements of the result do not alias. FEATURE: `is_there` was true.
        unsafe { by_library(&call) };
        made += call.columns;
    }
}

/// The kernels of faer, called as faer calls them.
#[cfg(target_arch = "x86_64")]
mod library {
    use super::Call;
    use private_gemm_x86::{Accum, DType, DstKind, IType, InstrSet, gemm};
    use std::ptr::{from_ref, null};

    /// Returns true if the processor has vector instructions for which the library has kernels.
    pub(super) fn is_there() -> bool {
        is_x86_feature_detected!("avx512f") || is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")
    }

    /// The name of the instruction set that the kernels use; `is_there` must be true.
    pub(super) fn instructions() -> &'static str {
        if is_x86_feature_detected!("avx512f") { "AVX-512 kernels" } else { "AVX2 kernels" }
    }

    /// Computes the product of f32 matrices that `call` describes, by the library.
    ///
    /// # Safety
    /// MATRIX-WITHIN (`docs/safety.md`): all elements of the three matrices must be within live memory. The elements of the result must not alias
    /// each other, and no other reference to them may be used during the call. FEATURE: `is_there` must have returned true.
    pub(super) unsafe fn multiply_f32(call: &Call<f32>) {
        // SAFETY: MATRIX-WITHIN and FEATURE, promised by the caller; the type is that of the elements.
        unsafe { multiply(call, DType::F32, &1.0) };
    }

    /// Computes the product of f64 matrices that `call` describes, by the library.
    ///
    /// # Safety
    /// MATRIX-WITHIN (`docs/safety.md`): the requirements of `multiply_f32` must hold.
    pub(super) unsafe fn multiply_f64(call: &Call<f64>) {
        // SAFETY: MATRIX-WITHIN and FEATURE, promised by the caller; the type is that of the elements.
        unsafe { multiply(call, DType::F64, &1.0) };
    }

    /// # Safety
    /// MATRIX-WITHIN: the requirements of `multiply_f32` must hold; `element` must name the type of the elements. FEATURE: `is_there` must have been
    /// true.
    unsafe fn multiply<T>(call: &Call<T>, element: DType, one: &T) {
        let instructions = if is_x86_feature_detected!("avx512f") { InstrSet::Avx512 } else { InstrSet::Avx256 };
        let Call { rows, columns, terms, to, adds, left, right } = call;
        let accum = if *adds { Accum::Add } else { Accum::Replace };
        // SAFETY: MATRIX-WITHIN and FEATURE, promised by the caller. Null stands for rows, columns and
        // a diagonal that are not chosen; strides are in elements.
        unsafe {
            gemm(
                element,
                IType::U64,
                instructions,
                *rows,
                *columns,
                *terms,
                to.first.cast(),
                to.row_stride,
                to.column_stride,
                null(),
                null(),
                DstKind::Full,
                accum,
                left.first.cast(),
                left.row_stride,
                left.column_stride,
                false,
                null(),
                0,
                right.first.cast(),
                right.row_stride,
                right.column_stride,
                false,
                from_ref(one).cast(),
                1,
            );
        }
    }
}

/// The library for other processors.
#[cfg(not(target_arch = "x86_64"))]
mod library {
    use super::Call;
    use gemm::{Parallelism, gemm};

    pub(super) const fn is_there() -> bool {
        true
    }

    /// The name of the instruction set that the kernels use.
    pub(super) const fn instructions() -> &'static str {
        std::env::consts::ARCH
    }

    /// Computes the product of f32 matrices that `call` describes, by the library.
    ///
    /// # Safety
    /// MATRIX-WITHIN (`docs/safety.md`): all elements of the three matrices must be within live memory. The elements of the result must not alias
    /// each other, and no other reference to them may be used during the call.
    pub(super) unsafe fn multiply_f32(call: &Call<f32>) {
        // SAFETY: MATRIX-WITHIN, promised by the caller.
        unsafe { multiply(call, 1.0) };
    }

    /// Computes the product of f64 matrices that `call` describes, by the library.
    ///
    /// # Safety
    /// MATRIX-WITHIN (`docs/safety.md`): the requirements of `multiply_f32` must hold.
    pub(super) unsafe fn multiply_f64(call: &Call<f64>) {
        // SAFETY: MATRIX-WITHIN, promised by the caller.
        unsafe { multiply(call, 1.0) };
    }

    /// # Safety
    /// MATRIX-WITHIN: the requirements of `multiply_f32` must hold.
    unsafe fn multiply<T: Copy + 'static>(call: &Call<T>, one: T) {
        let Call { rows, columns, terms, to, adds, left, right } = call;
        // SAFETY: MATRIX-WITHIN, promised by the caller. The result is read only where it is added to.
        unsafe {
            gemm(
                *rows,
                *columns,
                *terms,
                to.first,
                to.column_stride,
                to.row_stride,
                *adds,
                left.first,
                left.column_stride,
                left.row_stride,
                right.first,
                right.column_stride,
                right.row_stride,
                one,
                one,
                false,
                false,
                false,
                Parallelism::None,
            );
        }
    }
}
