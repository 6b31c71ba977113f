//! The element types that products can have: their arithmetic, the type of their sums, and their matrix products.

use cembra_tensor::{Element, MatrixProduct, Multiplication, multiply_plainly};

/// An operand of a product: its memory, and the position of its first element.
pub(super) type Memory<'d, T> = (&'d [T], usize);

/// An element type of products. Arithmetic on integers wraps.
pub(super) trait Number: Element {
    /// The type of sums outside of matrix products.
    type Wide: Copy + Default;

    /// The value that changes no sum when added: -0 for floats.
    const NOTHING: Self::Wide;

    /// Adds the product of the elements `a` and `b` to `sum`.
    fn add_product(sum: Self::Wide, a: Self, b: Self) -> Self::Wide;

    /// Adds one element to `sum`.
    fn add(sum: Self::Wide, element: Self) -> Self::Wide;

    fn add_sums(a: Self::Wide, b: Self::Wide) -> Self::Wide;

    /// Rounds a sum to the nearest value of the element type.
    fn narrow(sum: Self::Wide) -> Self;

    /// Computes a matrix product with elements of this type by `matrices`.
    fn multiply(matrices: &dyn MatrixProduct, product: Multiplication<'_, Self>);
}

macro_rules! floats {
    ($($ty:ty: $multiply:ident, |$wide:ident| $narrow:expr;)*) => { $(
        impl Number for $ty {
            type Wide = f64;
            const NOTHING: f64 = -0.0;

            fn add_product(sum: f64, a: Self, b: Self) -> f64 {
                sum + f64::from(a) * f64::from(b)
            }

            fn add(sum: f64, element: Self) -> f64 {
                sum + f64::from(element)
            }

            fn add_sums(a: f64, b: f64) -> f64 {
                a + b
            }

            fn narrow($wide: f64) -> Self {
                $narrow
            }

            fn multiply(matrices: &dyn MatrixProduct, product: Multiplication<'_, Self>) {
                matrices.$multiply(product);
            }
        }
    )* };
}

macro_rules! integers {
    ($($ty:ty)*) => { $(
        impl Number for $ty {
            type Wide = $ty;
            const NOTHING: $ty = 0;

            fn add_product(sum: Self, a: Self, b: Self) -> Self {
                sum.wrapping_add(a.wrapping_mul(b))
            }

            fn add(sum: Self, element: Self) -> Self {
                sum.wrapping_add(element)
            }

            fn add_sums(a: Self, b: Self) -> Self {
                a.wrapping_add(b)
            }

            fn narrow(sum: Self) -> Self {
                sum
            }

            fn multiply(_: &dyn MatrixProduct, product: Multiplication<'_, Self>) {
                multiply_plainly(product, <$ty as Number>::add_product);
            }
        }
    )* };
}

floats! {
    f32: multiply_f32, |sum| sum as f32;
    f64: multiply_f64, |sum| sum;
}
integers!(i32 i64);
