//! Tilings of tensors: a tiling for each axis, and the grid of tiles that they define. A tile's number is its position in the grid,
//! where the last axis varies fastest. No list is as long as the grid: a [`Shape`](crate::Shape) lists only the present tiles.

#![deny(clippy::arithmetic_side_effects)]

use crate::Tiling1;
use crate::error::{limit, unlike_ranks};
use cembra_runtime::MOST_AXES;
use cembra_value::Error;
use cembra_value::tensor::{Extents, TensorErrorKind as Kind};
use smallvec::SmallVec;
use std::borrow::Borrow;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// The coordinates of a tile in the grid of tiles, one for each axis.
pub type TileIndex = SmallVec<[u64; 6]>;

/// A box of elements, such as those of a tile: a range of indices for each axis.
pub type Ranges = SmallVec<[Range<i64>; 6]>;

/// The indices that elements get when a range of a tensor's elements becomes a tensor.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Base {
    /// The first element of the part (a range of a tensor's elements) gets index 0 on each axis.
    #[default]
    Zero,
    /// The elements of the part (a range of a tensor's elements) keep the indices that they have in the tensor.
    Kept,
}

/// The tiling of a tensor, which defines its grid of tiles, present or absent. Cloning it copies nothing.
///
/// ```
/// use cembra_tiles::{Tiling, Tiling1};
///
/// let tiling = Tiling::new([Tiling1::blocked(5, 2)?, Tiling1::new([-1, 0, 4])?])?;
/// assert_eq!(tiling.tiles(), 6);
/// assert_eq!(tiling.index_of(5).as_deref(), Some(&[2, 1][..]));
/// assert_eq!(tiling.number_of(&[2, 1]), Some(5));
/// assert_eq!(tiling.ranges(5).as_deref(), Some(&[4..5, 0..4][..]));
/// assert_eq!(tiling.tile_of(&[4, 3]), Some(5));
/// # Ok::<(), cembra_value::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Tiling {
    axes: Arc<[Tiling1]>,
    tiles: u64,
}

impl Tiling {
    /// Makes the tiling of a tensor from the tilings of its axes.
    ///
    /// # Errors
    /// If there are more axes than a tensor may have, or more tiles than a `u64` counts.
    pub fn new(axes: impl IntoIterator<Item = impl Borrow<Tiling1>>) -> Result<Tiling, Error> {
        let axes: Vec<Tiling1> = axes.into_iter().map(|axis| axis.borrow().clone()).collect();
        if axes.len() > MOST_AXES {
            return Err(limit("axes of a tiling", axes.len(), MOST_AXES).hint("join axes"));
        }
        // An axis without tiles counts as one, so that no product of the other axes overflows either.
        let tiles = axes.iter().try_fold(1_u64, |count, axis| count.checked_mul(axis.tiles().max(1)));
        let Some(tiles) = tiles else {
            let message = format!("a grid of {axes:?} has more than 2^64 tiles");
            return Err(Error::tensors(Kind::Limit, message).hint("make larger tiles"));
        };
        let tiles = if axes.iter().any(|axis| axis.tiles() == 0) { 0 } else { tiles };
        Ok(Tiling { axes: axes.into(), tiles })
    }

    /// The tiling of each axis.
    #[must_use]
    pub fn axes(&self) -> &[Tiling1] {
        &self.axes
    }

    /// The number of axes of the tensor.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.axes.len()
    }

    /// The number of tiles in the grid, present or absent.
    #[must_use]
    pub const fn tiles(&self) -> u64 {
        self.tiles
    }

    /// The number of elements of the tensor along each axis.
    #[must_use]
    pub fn extents(&self) -> Extents {
        self.axes.iter().map(Tiling1::extent).collect()
    }

    /// The coordinates of the tile with the number `tile`; `None` if there is no such tile.
    #[must_use]
    pub fn index_of(&self, tile: u64) -> Option<TileIndex> {
        if tile >= self.tiles {
            return None;
        }
        let mut index: TileIndex = SmallVec::from_elem(0, self.rank());
        let mut rest = tile;
        for (at, axis) in index.iter_mut().zip(self.axes.iter()).rev() {
            // If the grid has tiles, each axis has.
            *at = rest.checked_rem(axis.tiles()).unwrap_or(0);
            rest = rest.checked_div(axis.tiles()).unwrap_or(0);
        }
        Some(index)
    }

    /// The number of the tile with the coordinates `index`; `None` if there is no such tile.
    #[must_use]
    pub fn number_of(&self, index: &[u64]) -> Option<u64> {
        if index.len() != self.rank() {
            return None;
        }
        index.iter().zip(self.axes.iter()).try_fold(0_u64, |number, (at, axis)| {
            if *at >= axis.tiles() {
                return None;
            }
            number.checked_mul(axis.tiles())?.checked_add(*at)
        })
    }

    /// For each axis, the difference between the numbers of two tiles that are neighbours along it.
    #[must_use]
    pub fn strides(&self) -> TileIndex {
        let mut strides: TileIndex = SmallVec::from_elem(1, self.rank());
        let mut stride = 1_u64;
        for (at, axis) in strides.iter_mut().zip(self.axes.iter()).rev() {
            *at = stride;
            // The product overflows only if the grid has no tiles, and strides mean nothing.
            stride = stride.saturating_mul(axis.tiles());
        }
        strides
    }

    /// The index range of the tile's elements along each axis; `None` if there is no such tile.
    #[must_use]
    pub fn ranges(&self, tile: u64) -> Option<Ranges> {
        let index = self.index_of(tile)?;
        self.axes.iter().zip(&index).map(|(axis, at)| axis.range(*at)).collect()
    }

    /// The number of the tile's elements along each axis; `None` if there is no such tile.
    #[must_use]
    pub fn tile_extents(&self, tile: u64) -> Option<Extents> {
        let ranges = self.ranges(tile)?;
        // No tile is longer than its axis.
        Some(ranges.iter().map(|range| range.end.abs_diff(range.start) as usize).collect())
    }

    /// The number of elements in a tile, as a float because it may be too large for an integer; 0 if there is no such tile.
    #[must_use]
    pub fn volume(&self, tile: u64) -> f64 {
        self.tile_extents(tile).map_or(0.0, |extents| extents.iter().map(|extent| *extent as f64).product())
    }

    /// The number of the tile that contains the element at an index; `None` if there is no such element.
    #[must_use]
    pub fn tile_of(&self, element: &[i64]) -> Option<u64> {
        if element.len() != self.rank() {
            return None;
        }
        let index: Option<TileIndex> = self.axes.iter().zip(element).map(|(axis, at)| axis.tile_of(*at)).collect();
        self.number_of(&index?)
    }

    /// Returns the tiling of a block: the given range of tiles along each axis. `base` decides whether elements keep their indices.
    ///
    /// # Errors
    /// If there is not one range per axis, or a range exceeds the tiles of its axis.
    pub fn block(&self, tiles: &[Range<u64>], base: Base) -> Result<Tiling, Error> {
        self.check_rank(tiles.len())?;
        let axes = self.axes.iter().zip(tiles).map(|(axis, tiles)| based(axis.block(tiles.clone())?, base));
        Tiling::new(axes.collect::<Result<Vec<_>, Error>>()?)
    }

    /// Returns the tiling of the given range of elements along each axis, with the same boundaries within it. `base` decides whether
    /// elements keep their indices.
    ///
    /// # Errors
    /// If there is not one range per axis, or if a range exceeds the elements of its axis, or begins within a tile and contains more
    /// than 2^24 tiles.
    pub fn elements(&self, elements: &[Range<i64>], base: Base) -> Result<Tiling, Error> {
        self.check_rank(elements.len())?;
        let axes = self.axes.iter().zip(elements).map(|(axis, elements)| based(axis.elements(elements.clone())?, base));
        Tiling::new(axes.collect::<Result<Vec<_>, Error>>()?)
    }

    /// Permutes the axes: axis `i` of the result is axis `of[i]` of this tiling.
    ///
    /// # Errors
    /// If `of` does not name each axis once.
    pub fn permuted(&self, of: &[usize]) -> Result<Tiling, Error> {
        self.check_rank(of.len())?;
        let mut seen: SmallVec<[bool; 8]> = SmallVec::from_elem(false, self.rank());
        for axis in of {
            if seen.get(*axis).is_none_or(|seen| *seen) {
                return Err(Error::tensors(Kind::Axis, format!("{of:?} must name each axis once")));
            }
            seen[*axis] = true;
        }
        Tiling::new(of.iter().map(|axis| &self.axes[*axis]))
    }

    /// Returns an error unless the tiling has `rank` axes.
    pub(crate) fn check_rank(&self, rank: usize) -> Result<(), Error> {
        if rank == self.rank() { Ok(()) } else { Err(unlike_ranks(rank, self.rank())) }
    }
}

fn based(axis: Tiling1, base: Base) -> Result<Tiling1, Error> {
    match base {
        Base::Zero => axis.rebased(0),
        Base::Kept => Ok(axis),
    }
}

impl fmt::Debug for Tiling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.axes.iter()).finish()
    }
}
