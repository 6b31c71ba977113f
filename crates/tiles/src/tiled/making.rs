//! Constructs tiled tensors: from a function of an element's index, from a seed, or from tiles, such as those of another tensor. Also
//! constructs random shapes.

use crate::error::caught;
use crate::shape::mixing::{STEP, mixed};
use crate::shape::sparse::{ShapeBuilder, check_visited};
use crate::shape::tiling::Ranges;
use crate::tiled::tile::{Float, Tile, TileMemory};
use crate::tiled::{TilePlace, bytes_of, check_tile};
use crate::{Screening, Shape, Tiled, Tiling, Tiling1};
use cembra_value::Error;
use cembra_value::tensor::{Tensor, TensorErrorKind as Kind, check_room};
use smallvec::SmallVec;

impl Shape {
    /// Makes a shape in which about the fraction `part` of all tiles is present, chosen pseudo-randomly by `seed`. Nothing is known
    /// about the norms, which are infinite, as in [`dense`](Shape::dense).
    ///
    /// ```
    /// use cembra_tiles::{MOST_TILES, Shape, Tiling, Tiling1};
    ///
    /// let tiling = Tiling::new([Tiling1::blocked(1 << 20, 64)?])?;
    /// let shape = Shape::random(&tiling, 0.25, 1, MOST_TILES)?;
    /// assert!(shape.len().abs_diff(4096) < 200, "{shape:?}");
    /// # Ok::<(), cembra_value::Error>(())
    /// ```
    ///
    /// # Errors
    /// If `part` is not from 0 to 1, the grid has more than [`MOST_VISITED`](crate::MOST_VISITED) tiles, or more than `most_tiles` are
    /// present.
    pub fn random(tiling: &Tiling, part: f64, seed: u64, most_tiles: usize) -> Result<Shape, Error> {
        if !(0.0..=1.0).contains(&part) {
            let message = format!("the fraction of all tiles must be from 0 to 1, found {part}");
            return Err(Error::tensors(Kind::Norm, message).hint("use a fraction from 0 to 1"));
        }
        check_visited(tiling)?;
        let mut made = ShapeBuilder::new(tiling, Screening { threshold: f64::MIN_POSITIVE, most_tiles });
        // Tiles that differ in the last coordinate alone share the hash of the others.
        let along = tiling.axes().last().map_or(1, Tiling1::tiles);
        for first in 0..tiling.tiles().checked_div(along).unwrap_or(0) {
            let index = tiling.index_of(first * along).unwrap_or_default();
            let others = index.len().saturating_sub(1);
            let hash = index.iter().take(others).fold(first_hash(seed), |hash, at| next_hash(hash, *at));
            for at in 0..along {
                let hash = if index.is_empty() { hash } else { next_hash(hash, at) };
                // Numbers are at least -1 and below 1.
                if number_of(hash) < 2.0 * part - 1.0 {
                    made.add(first * along + at, f64::INFINITY)?;
                }
            }
        }
        Ok(made.finish())
    }
}

impl Tiled {
    /// Makes a tensor by calling `element` with the index of each element. `element` is not called for absent tiles.
    ///
    /// ```
    /// use cembra_tiles::{MOST_TILES, Shape, Tiled, Tiling, Tiling1};
    ///
    /// let tiling = Tiling::new([Tiling1::new([-2, 0, 3])?])?;
    /// let tiled = Tiled::from_fn(&Shape::dense(&tiling, MOST_TILES)?, |at| at[0] as f64)?;
    /// assert_eq!(tiled.to_tensor()?.to_vec::<f64>()?, [-2.0, -1.0, 0.0, 1.0, 2.0]);
    /// # Ok::<(), cembra_value::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there is no memory for the tiles, or `element` panics.
    pub fn from_fn<T: Float>(shape: &Shape, mut element: impl FnMut(&[i64]) -> T) -> Result<Tiled, Error> {
        check_room(bytes_of(T::SCALAR, shape.present_elements()))?;
        let places = shape.tiles().iter().filter_map(|number| TilePlace::of(shape.tiling(), *number));
        let tiles = places.map(|place| {
            let extents = place.extents();
            let mut memory = TileMemory::<T>::of_extents(&extents)?;
            caught("the function of elements", || {
                fill(&place.ranges, memory.elements_mut(), &mut element);
                Ok(())
            })?;
            memory.into_tile(&extents)
        });
        Ok(Tiled::with_true_norms(shape, T::SCALAR, tiles.collect::<Result<_, Error>>()?))
    }

    /// Makes a tensor of pseudo-random elements between -1 and 1. An element depends only on `seed` and its index, so
    /// it is the same for every tiling. The elements have only the randomness of a hash function: use them for tests
    /// and measurements.
    ///
    /// # Errors
    /// If there is no memory for the tiles.
    pub fn random<T: Float>(shape: &Shape, seed: u64) -> Result<Tiled, Error> {
        Tiled::from_fn(shape, |index| T::of_f64(number_at(seed, index)))
    }

    /// Makes a tensor from a list of tiles: one for each tile of `shape`, in ascending order of tile numbers. Norms are computed from
    /// the elements.
    ///
    /// # Errors
    /// If the number of tiles differs from that of `shape`, or if a tile has other extents than `shape` gives, or elements of another
    /// type than `T`.
    pub fn from_tiles<T: Float>(shape: &Shape, tiles: impl IntoIterator<Item = Tensor>) -> Result<Tiled, Error> {
        let mut made = Vec::new();
        let mut given = tiles.into_iter();
        for number in shape.tiles() {
            let Some((place, tensor)) = TilePlace::of(shape.tiling(), *number).zip(given.next()) else { break };
            check_tile(&tensor, &place, T::SCALAR)?;
            made.push(Tile::of(&tensor)?);
        }
        let count = made.len() + given.count();
        if count != shape.len() {
            return Err(Error::tensors(
                Kind::SizeMismatch,
                format!("{count} tiles are given for a shape with {} tiles", shape.len()),
            ));
        }
        Ok(Tiled::with_true_norms(shape, T::SCALAR, made))
    }

    /// Returns the tensor whose tiles are computed by `map` from this tensor's tiles. Absent tiles stay absent, and `map` is not called for
    /// them.
    ///
    /// # Errors
    /// If `map` fails or panics, or returns a tile of other extents or another type, or a lazy tile cannot be computed.
    pub fn map_tiles(&self, mut map: impl FnMut(&TilePlace, &Tensor) -> Result<Tensor, Error>) -> Result<Tiled, Error> {
        let mut made = Vec::with_capacity(self.shape().len());
        for tile in self.tiles() {
            let (number, tile) = tile?;
            let Some(place) = TilePlace::of(self.tiling(), number) else { continue };
            let mapped = caught("the function of tiles", || map(&place, tile.tensor()))?;
            check_tile(&mapped, &place, self.scalar_type())?;
            made.push(Tile::of(&mapped)?);
        }
        Ok(Tiled::with_true_norms(self.shape(), self.scalar_type(), made))
    }
}

/// Fills `elements`, the packed elements of the box `ranges`, by calling `element` with each index. The last axis varies fastest.
pub(crate) fn fill<T: Float>(ranges: &Ranges, elements: &mut [T], element: &mut impl FnMut(&[i64]) -> T) {
    let mut index: SmallVec<[i64; 6]> = ranges.iter().map(|range| range.start).collect();
    for made in elements {
        *made = element(&index);
        // Advances to the next index. After the last index comes the first.
        for (at, range) in index.iter_mut().zip(ranges).rev() {
            *at += 1;
            if *at < range.end {
                break;
            }
            *at = range.start;
        }
    }
}

/// Returns a pseudo-random number, at least -1 and below 1, for a seed and an element's index.
pub(crate) fn number_at(seed: u64, index: &[i64]) -> f64 {
    number_of(index.iter().fold(first_hash(seed), |hash, at| next_hash(hash, at.cast_unsigned())))
}

const fn first_hash(seed: u64) -> u64 {
    mixed(seed.wrapping_add(STEP))
}

/// Returns the hash of an index to which the coordinate `at` is appended. `hash` is the hash of the index before.
const fn next_hash(hash: u64, at: u64) -> u64 {
    mixed((hash ^ at).wrapping_add(STEP))
}

/// The number for a hash, at least -1 and below 1.
fn number_of(hash: u64) -> f64 {
    // The upper 53 bits are a number in [0, 1) that is exact.
    (hash >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
}
