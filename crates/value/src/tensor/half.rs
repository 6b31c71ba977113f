//! Tensors whose elements are stored in 16 bits. This is only a storage format: graphs compute with FLOAT32, to which
//! every 16-bit element widens exactly, and results are rounded once to be stored. No operator, type or backend handles
//! 16-bit elements.

#![deny(clippy::arithmetic_side_effects)]

use super::element::Data;
use super::error::TensorErrorKind;
use super::layout::{Layout, Slice};
use super::tensor::{Tensor, inverse_axes};
use crate::Error;
use half::slice::HalfFloatSliceExt;
use half::vec::HalfFloatVecExt;
use half::{bf16, f16};
use std::fmt;
use std::sync::Arc;

/// A 16-bit float: [`struct@f16`] (11 bits of precision, up to 65,504) or [`bf16`] (8 bits of precision, the range of `f32`).
pub trait Half: Copy + PartialEq + fmt::Debug + Send + Sync + sealed::Sealed + 'static {
    /// The type's name.
    const NAME: &str;

    /// Converts this 16-bit float to an `f32`, which is exact.
    fn widened(self) -> f32;

    /// Returns the 16-bit float nearest to `number`; of two equally near, the one whose last bit is 0. Numbers beyond
    /// the largest become infinite; a NaN stays a NaN.
    fn rounded(number: f32) -> Self;

    /// Converts 16-bit floats to `f32`, which is exact.
    fn widened_all(numbers: &[Self]) -> Vec<f32>;

    /// Returns the nearest 16-bit float for each number, as [`rounded`](Half::rounded) does.
    fn rounded_all(numbers: &[f32]) -> Vec<Self>;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! halves {
    ($($ty:ident)*) => { $(
        impl sealed::Sealed for $ty {}

        impl Half for $ty {
            const NAME: &str = stringify!($ty);

            fn widened(self) -> f32 {
                self.to_f32()
            }

            fn rounded(number: f32) -> Self {
                $ty::from_f32(number)
            }

            fn widened_all(numbers: &[Self]) -> Vec<f32> {
                numbers.to_f32_vec()
            }

            fn rounded_all(numbers: &[f32]) -> Vec<Self> {
                Vec::from_f32_slice(numbers)
            }
        }
    )* };
}

halves! { f16 bf16 }

/// Rounds to odd: a result that is not exact gets 1 as its last bit. If that result is then rounded to fewer digits,
/// the outcome is the same as rounding the number directly. With two roundings to the nearest, the outcome would
/// sometimes be the farther neighbour.
fn rounded_to_odd(number: f64) -> f32 {
    let near = number as f32;
    if number.is_nan() || f64::from(near) == number {
        return near;
    }
    let is_beyond = f64::from(near).abs() > number.abs();
    f32::from_bits(near.to_bits().wrapping_sub(u32::from(is_beyond)) | 1)
}

/// A tensor with 16-bit elements and any number of axes. Clones and views copy no elements.
///
/// ```
/// use cembra_value::tensor::{HalfTensor, Tensor, f16};
///
/// let weights = HalfTensor::<f16>::rounded(&Tensor::new(&[2], vec![0.1_f32, 70_000.0])?)?;
/// assert_eq!(weights.get(&[0])?, f16::from_bits(0x2e66));
/// assert_eq!(weights.widened().to_vec::<f32>()?, [0.099_975_586, f32::INFINITY]);
/// # Ok::<(), cembra_value::Error>(())
/// ```
#[derive(Clone)]
pub struct HalfTensor<T> {
    elements: Arc<Vec<T>>,
    layout: Layout,
}

impl<T: Half> HalfTensor<T> {
    /// Makes a tensor with the extents `extents` from `elements`, which are in row-major order.
    ///
    /// # Errors
    /// If the number of elements differs from the number of indices.
    pub fn new(extents: &[usize], elements: Vec<T>) -> Result<HalfTensor<T>, Error> {
        let layout = Layout::row_major(extents)?;
        if layout.len() != elements.len() {
            let message = format!("{} elements do not fit a tensor of extents {extents:?}", elements.len());
            return Err(Error::tensors(TensorErrorKind::SizeMismatch, message));
        }
        Ok(HalfTensor { elements: Arc::new(elements), layout })
    }

    /// Makes a tensor whose elements are in the memory `elements`, which may be shared, at the positions that `layout` gives.
    ///
    /// # Errors
    /// If the layout has positions outside of the memory.
    pub fn from_parts(elements: Arc<Vec<T>>, layout: Layout) -> Result<HalfTensor<T>, Error> {
        let layout = Layout::strided(layout.extents(), layout.strides(), layout.offset(), elements.len())?;
        Ok(HalfTensor { elements, layout })
    }

    /// Rounds each element of a tensor once, to the nearest number of this type. If two numbers are equally near, the element
    /// is rounded to the one whose last bit is 0.
    ///
    /// # Errors
    /// If the elements are not floats.
    pub fn rounded(tensor: &Tensor) -> Result<HalfTensor<T>, Error> {
        let elements = match tensor.data() {
            Data::Float32(elements) => match tensor.as_slice()? {
                Some(ordered) => T::rounded_all(ordered),
                None => tensor.positions().map(|at| T::rounded(elements[at])).collect(),
            },
            Data::Float64(elements) => tensor.positions().map(|at| T::rounded(rounded_to_odd(elements[at]))).collect(),
            other => {
                let message =
                    format!("elements of type {} cannot be rounded to {}", other.scalar().short_name(), T::NAME);
                return Err(Error::tensors(TensorErrorKind::ElementType, message).hint("cast them to f32"));
            }
        };
        Ok(HalfTensor { elements: Arc::new(elements), layout: tensor.layout().ordered() })
    }

    /// Copies the elements to a tensor of FLOAT32, which graphs compute with.
    #[must_use]
    pub fn widened(&self) -> Tensor {
        let (first, len) = (self.layout.offset(), self.layout.len());
        let elements = if len == 0 {
            Vec::new()
        } else if self.layout.is_row_major() {
            T::widened_all(&self.elements[first..][..len])
        } else {
            self.layout.positions().map(|at| self.elements[at].widened()).collect()
        };
        Tensor::ordered(&self.layout, elements)
    }

    /// The extents of the tensor: the number of indices of each axis.
    #[must_use]
    pub fn extents(&self) -> &[usize] {
        self.layout.extents()
    }

    /// The layout of the tensor: the map from its indices to positions in memory.
    #[must_use]
    pub const fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The tensor's memory, which may have more elements than the tensor.
    #[must_use]
    pub const fn elements(&self) -> &Arc<Vec<T>> {
        &self.elements
    }

    /// The element of the tensor at `index`.
    ///
    /// # Errors
    /// If there is no such index.
    pub fn get(&self, index: &[usize]) -> Result<T, Error> {
        Ok(self.elements[self.layout.position(index)?])
    }

    /// Copies the tensor's elements to a vector, in row-major order.
    #[must_use]
    pub fn to_vec(&self) -> Vec<T> {
        self.layout.positions().map(|at| self.elements[at]).collect()
    }

    /// Returns a view with permuted axes: axis `i` of the result is axis `of[i]` of this tensor.
    ///
    /// # Errors
    /// If `of` does not name each axis once.
    pub fn transposed(&self, of: &[usize]) -> Result<HalfTensor<T>, Error> {
        Ok(self.seen(self.layout.with_axes(&inverse_axes(of, self.layout.rank())?)?))
    }

    /// Returns a view of the tensor that has one slice of each axis.
    ///
    /// # Errors
    /// If there is not one slice per axis, or if a slice exceeds its axis.
    pub fn sliced(&self, slices: &[Slice]) -> Result<HalfTensor<T>, Error> {
        Ok(self.seen(self.layout.sliced(slices)?))
    }

    /// A view of the same memory under another layout, which must be within it.
    fn seen(&self, layout: Layout) -> HalfTensor<T> {
        HalfTensor { elements: self.elements.clone(), layout }
    }
}

/// Prints the extents and the elements of the first 64 indices.
impl<T: Half> fmt::Debug for HalfTensor<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 64;
        write!(f, "{}{:?} ", T::NAME, self.extents())?;
        let mut list = f.debug_list();
        list.entries(self.layout.positions().take(SHOWN).map(|at| self.elements[at]));
        if self.layout.len() > SHOWN { list.finish_non_exhaustive() } else { list.finish() }
    }
}
