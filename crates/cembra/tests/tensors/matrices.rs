//! Tests products of two matrices by the matrix library and by plain loops, for all layouts of rows and columns. The
//! file `products.rs` tests how a product of tensors is split into products of matrices.

use cembra_engine::matrices;
use cembra_engine::{MatrixLayout, MatrixProduct, Multiplication, PlainProduct};
use fastrand::Rng;

/// Returns a random layout of a matrix, and the length of its memory: row-major or column-major, in ascending or
/// descending order, with or without gaps.
fn layout(rng: &mut Rng, rows: usize, columns: usize) -> (MatrixLayout, usize) {
    let gap = rng.usize(0..3);
    let by_rows = rng.bool();
    let [near, far] = if by_rows { [columns, rows] } else { [rows, columns] };
    let step = rng.usize(1..3);
    let strides = [step, near * step + gap];
    let mut offset = 0;
    let [near_stride, far_stride] = [(near, strides[0]), (far, strides[1])].map(|(count, stride)| {
        if rng.bool() {
            return stride.cast_signed();
        }
        offset += (count - 1) * stride;
        -stride.cast_signed()
    });
    let [row_stride, column_stride] = if by_rows { [far_stride, near_stride] } else { [near_stride, far_stride] };
    (MatrixLayout { offset, rows, columns, row_stride, column_stride }, far * strides[1] + 1)
}

macro_rules! same_as_plain_loops {
    ($ty:ty, $multiply:ident, $rng:expr, $sizes:expr) => {
        let (rng, [rows, columns, terms]): (&mut Rng, [usize; 3]) = ($rng, $sizes);
        let [left, right, to] = [(rows, terms), (terms, columns), (rows, columns)].map(|(a, b)| layout(rng, a, b));
        // Small whole numbers: sums of their products are exact in any order.
        let mut numbers = |len: usize| -> Vec<$ty> { (0..len).map(|_| rng.i32(-8..=8) as $ty).collect() };
        let (a, b, before) = (numbers(left.1), numbers(right.1), numbers(to.1));
        // The second left matrix is one element that is broadcast: its strides are 0.
        for left in [left.0, MatrixLayout { offset: left.1 / 2, row_stride: 0, column_stride: 0, ..left.0 }] {
            for adds in [false, true] {
                let by = |matrices: &dyn MatrixProduct| {
                    let mut made = before.clone();
                    let product = Multiplication::new((&mut made, to.0), (&a, left), (&b, right.0), adds);
                    matrices.$multiply(product.expect("fits"));
                    made
                };
                let expected = by(&PlainProduct);
                assert_eq!(by(matrices()), expected, "{left:?} times {right:?} to {to:?}, {adds}");
            }
        }
    };
}

#[test]
fn matrices_in_any_order_of_memory_are_multiplied() {
    let mut rng = Rng::with_seed(14);
    for _ in 0..500 {
        let most = if rng.u8(..) < 30 { 130 } else { 20 };
        let sizes = std::array::from_fn(|_| rng.usize(2..=most));
        same_as_plain_loops!(f32, multiply_f32, &mut rng, sizes);
        same_as_plain_loops!(f64, multiply_f64, &mut rng, sizes);
    }
}
