//! Tiles. The elements of a tile are in memory of their own. They are packed so that the last axis varies fastest, and
//! begin at a multiple of 64 bytes. So the layout of a tile depends only on its extents, and a product of two tiles has
//! the same bits whether the tiles were computed, copied or read from a file.

use crate::error::no_floats;
use crate::tiled::pool::{Pool, Pooled, Recycled};
use cembra_runtime::Scalar;
use cembra_tensor::{DataMut, Element, MatrixProduct, Multiplication};
use cembra_value::Error;
use cembra_value::tensor::{CopiedAxis, Layout, Tensor, copy_axes, index_count, zeros};
use std::ops::{Add, Mul, Neg, Sub};
use std::sync::Arc;

/// The alignment of a tile's elements in bytes: the size of a cache line.
pub const ALIGNMENT: usize = 64;

/// The bytes of a stored tile in addition to its elements: its entries in shapes and lists, its header, and the overhead of the allocator.
/// Measured for tiles of one element.
pub(crate) const TILE_BYTES: usize = 448;

/// A type that the elements of tiles can have: `f32` or `f64`.
pub trait Float: Recycled + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Neg<Output = Self> {
    /// Converts the element to FLOAT64.
    fn to_f64(self) -> f64;

    /// Returns the nearest element of this type to `number`.
    fn of_f64(number: f64) -> Self;

    /// Wraps a slice of elements as [`DataMut`], a slice with any element type.
    fn part(elements: &mut [Self]) -> DataMut<'_>;

    /// Computes a matrix product of this type, with the implementation `matrices`.
    fn multiply(matrices: &dyn MatrixProduct, product: Multiplication<'_, Self>);
}

impl Float for f32 {
    fn to_f64(self) -> f64 {
        f64::from(self)
    }

    fn of_f64(number: f64) -> f32 {
        number as f32
    }

    fn part(elements: &mut [f32]) -> DataMut<'_> {
        DataMut::Float32(elements)
    }

    fn multiply(matrices: &dyn MatrixProduct, product: Multiplication<'_, f32>) {
        matrices.multiply_f32(product);
    }
}

impl Float for f64 {
    fn to_f64(self) -> f64 {
        self
    }

    fn of_f64(number: f64) -> f64 {
        number
    }

    fn part(elements: &mut [f64]) -> DataMut<'_> {
        DataMut::Float64(elements)
    }

    fn multiply(matrices: &dyn MatrixProduct, product: Multiplication<'_, f64>) {
        matrices.multiply_f64(product);
    }
}

/// Runs generic code for an element type, which the code calls `$T`. An error if tiles cannot have elements of that type.
macro_rules! with_float {
    ($scalar:expr, $T:ident => $result:expr) => {
        match $scalar {
            cembra_runtime::Scalar::Float32 => {
                type $T = f32;
                $result
            }
            cembra_runtime::Scalar::Float64 => {
                type $T = f64;
                $result
            }
            other => Err($crate::error::no_floats(other)),
        }
    };
}
pub(crate) use with_float;

/// Returns an error if tiles cannot have elements of the type `scalar`.
pub(crate) fn check_float(scalar: Scalar) -> Result<(), Error> {
    if matches!(scalar, Scalar::Float32 | Scalar::Float64) { Ok(()) } else { Err(no_floats(scalar)) }
}

/// A tile of a tensor: its elements, in memory of their own. Cloning it copies no elements.
#[derive(Clone, Debug)]
pub struct Tile(Tensor);

impl Tile {
    /// Makes a tile from the elements of a tensor. The elements are copied, unless they are packed and aligned already, and the tensor's
    /// memory has no other elements.
    ///
    /// # Errors
    /// If the elements are not floats, or there is no memory for a copy.
    pub fn of(tensor: &Tensor) -> Result<Tile, Error> {
        Tile::copied_to(tensor, None)
    }

    /// Makes a tile as [`of`](Tile::of) does, but a copy uses memory of `pool`, if that is given.
    ///
    /// # Errors
    /// The errors of [`of`](Tile::of).
    pub(crate) fn copied_to(tensor: &Tensor, pool: Option<&Arc<Pool>>) -> Result<Tile, Error> {
        check_float(tensor.scalar_type())?;
        with_float!(tensor.scalar_type(), T => {
            let all = T::of(tensor.data()).unwrap_or_default();
            let layout = tensor.layout();
            let first = all.get(layout.offset()..).unwrap_or_default();
            let is_packed = layout.is_row_major()
                && first.as_ptr().align_offset(ALIGNMENT) == 0
                && all.len() - layout.len() <= padding::<T>();
            if is_packed {
                return Ok(Tile(tensor.clone()));
            }
            let mut memory = match pool {
                Some(pool) => TileMemory::<T>::pooled(layout.len(), pool)?,
                None => TileMemory::zeros(layout.len())?,
            };
            let packed = layout.ordered();
            let axes = layout.axes().zip(packed.strides());
            let axes: Vec<CopiedAxis> = axes.map(|((extent, from), to)| CopiedAxis { extent, from, to: *to }).collect();
            if !layout.is_empty() {
                copy_axes(all, layout.offset(), memory.elements_mut(), &axes);
            }
            memory.into_tile(layout.extents())
        })
    }

    /// Returns the tile as a tensor that shares its memory.
    #[must_use]
    pub const fn tensor(&self) -> &Tensor {
        &self.0
    }

    /// The number of elements of the tile along each axis.
    #[must_use]
    pub fn extents(&self) -> &[usize] {
        self.0.extents()
    }

    /// The elements of the tile, where the last axis varies fastest; empty if they are of another type than `T`.
    #[must_use]
    pub fn elements<T: Float>(&self) -> &[T] {
        let layout = self.0.layout();
        let first = T::of(self.0.data()).and_then(|all| all.get(layout.offset()..));
        first.and_then(|elements| elements.get(..layout.len())).unwrap_or_default()
    }

    /// Returns the norm of the tile: the root of the sum of squares, divided by the number of elements; 0 without
    /// elements. Squares are added in FLOAT64, in an order that depends only on their number.
    #[must_use]
    pub fn norm(&self) -> f64 {
        let norm = with_float!(self.0.scalar_type(), T => Ok::<f64, Error>(norm(self.elements::<T>())));
        norm.unwrap_or(f64::NAN)
    }
}

/// The number of partial sums in a sum of squares: as many as the widest vectors have lanes.
const LANES: usize = 8;

/// Returns the norm of a tile's elements: the root of the sum of squares, divided by their number.
pub(crate) fn norm<T: Float>(elements: &[T]) -> f64 {
    if elements.is_empty() {
        return 0.0;
    }
    let root = {
        let mut sums = [0.0; LANES];
        for chunk in elements.chunks(LANES) {
            for (sum, element) in sums.iter_mut().zip(chunk) {
                let element = element.to_f64();
                *sum += element * element;
            }
        }
        sums.iter().sum::<f64>().sqrt()
    };
    if !(root.is_normal() && root > f64::MIN_POSITIVE.sqrt()) {
        // Squares of large or small elements leave the range of floats where the norm itself does not. A NaN stays NaN.
        let largest = elements.iter().fold(0.0, |largest: f64, element| largest.max(element.to_f64().abs()));
        if largest > 0.0 && largest.is_finite() && !root.is_nan() {
            return scaled_norm(elements, largest);
        }
    }
    root / elements.len() as f64
}

/// The norm of elements whose largest magnitude is `largest`. The root of the sum of squares may leave the range, so it is divided by the
/// number of elements before it is multiplied by `largest`.
fn scaled_norm<T: Float>(elements: &[T], largest: f64) -> f64 {
    let squares = elements.iter().map(|element| (element.to_f64() / largest).powi(2));
    squares.sum::<f64>().sqrt() / elements.len() as f64 * largest
}

/// The most elements that the memory of a tile has beyond the tile's own, so that the tile can begin at an aligned address.
const fn padding<T>() -> usize {
    ALIGNMENT / size_of::<T>() - 1
}

/// Memory for a tile whose elements are being computed.
#[derive(Debug)]
pub(crate) struct TileMemory<T: Float> {
    memory: Pooled<T>,
    first: usize,
    len: usize,
}

impl<T: Float> TileMemory<T> {
    /// Allocates memory for a tile of `len` elements, which are 0.
    pub(crate) fn zeros(len: usize) -> Result<TileMemory<T>, Error> {
        let memory = zeros(len.saturating_add(padding::<T>()))?;
        Ok(TileMemory::of(Pooled::free(memory), len))
    }

    /// Takes memory for a tile of `len` elements from `pool`; they have arbitrary values.
    pub(crate) fn pooled(len: usize, pool: &Arc<Pool>) -> Result<TileMemory<T>, Error> {
        let padded = len.saturating_add(padding::<T>());
        let memory = match pool.take(padded) {
            Some(memory) => memory,
            None => pool.lend(zeros(padded)?),
        };
        Ok(TileMemory::of(memory, len))
    }

    /// Wraps memory in which a tile of `len` elements begins at an aligned address. The memory never grows, so its
    /// elements do not move and stay aligned.
    fn of(memory: Pooled<T>, len: usize) -> TileMemory<T> {
        let first = memory.as_ref().as_ptr().align_offset(ALIGNMENT).min(padding::<T>());
        TileMemory { memory, first, len }
    }

    /// Allocates memory for a tile with these extents, whose elements are 0.
    pub(crate) fn of_extents(extents: &[usize]) -> Result<TileMemory<T>, Error> {
        TileMemory::zeros(index_count(extents)?)
    }

    pub(crate) fn elements(&self) -> &[T] {
        &self.memory.as_ref()[self.first..][..self.len]
    }

    pub(crate) fn elements_mut(&mut self) -> &mut [T] {
        &mut self.memory.elements_mut()[self.first..][..self.len]
    }

    /// Makes a tile with these extents from the memory.
    ///
    /// # Errors
    /// If the number of elements in the memory does not fit the extents.
    pub(crate) fn into_tile(self, extents: &[usize]) -> Result<Tile, Error> {
        let layout = Layout::row_major(extents)?.moved(self.first);
        Ok(Tile(Tensor::from_parts(self.memory.into_data(), layout)?))
    }
}
