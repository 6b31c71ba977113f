//! Sparse shapes: the present tiles of a grid, and the norms of their elements. A shape stores only the present tiles, so a grid of 2^40
//! tiles takes little memory if few are present. `algebra.rs` estimates the norms of results from those of operands.

#![deny(clippy::arithmetic_side_effects)]

use crate::Tiling;
use crate::error::limit;
use cembra_value::Error;
use cembra_value::tensor::TensorErrorKind as Kind;
use std::fmt;
use std::sync::Arc;

/// The most tiles that a shape may store, by default.
pub const MOST_TILES: usize = 16 << 20;

/// The most tiles of a grid whose norms may be computed tile by tile. A larger grid would take minutes, so its present tiles and their
/// norms must be given as a list.
pub const MOST_VISITED: u64 = 1 << 28;

/// Returns an error if a grid has too many tiles to visit them one by one.
pub(crate) fn check_visited(tiling: &Tiling) -> Result<(), Error> {
    if tiling.tiles() <= MOST_VISITED {
        return Ok(());
    }
    let error = limit("tiles of a grid whose norms must be computed", tiling.tiles(), MOST_VISITED);
    Err(error.hint("in Rust, list the present tiles with `Shape::of_norms`"))
}

/// The rule that decides whether a tile is present in a tensor's shape.
///
/// A tile is absent if its norm is less than `threshold`. A norm that is NaN or infinite is not less, so the tile is present.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Screening {
    /// The smallest norm of a present tile. A norm is the root of the sum of the squares of a tile's elements, divided by their number.
    /// A threshold of 0 keeps all tiles.
    pub threshold: f64,
    /// The most tiles that may be present in a shape.
    pub most_tiles: usize,
}

impl Screening {
    /// Makes a rule with this threshold, and with the limit [`MOST_TILES`].
    #[must_use]
    pub const fn threshold(threshold: f64) -> Screening {
        Screening { threshold, most_tiles: MOST_TILES }
    }

    /// Returns true if a tile with the norm `norm` is present, because the norm is not less than the threshold.
    #[must_use]
    #[inline]
    pub fn keeps(&self, norm: f64) -> bool {
        // Not `norm >= threshold`: a NaN keeps the tile.
        !matches!(norm.partial_cmp(&self.threshold), Some(std::cmp::Ordering::Less))
    }

    /// Returns an error if `tiles` is greater than the number of tiles that may be present.
    pub(crate) fn check_count(&self, tiles: u64) -> Result<(), Error> {
        // Plans count tiles in 32 bits.
        let most = (self.most_tiles as u64).min(u64::from(u32::MAX));
        if tiles <= most {
            return Ok(());
        }
        Err(limit("present tiles", tiles, most)
            .hint("raise the threshold, make larger tiles, or raise `most_tiles` or `most_bytes`"))
    }

    /// Returns an error if the threshold is negative or NaN.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.threshold >= 0.0 {
            return Ok(());
        }
        let message = format!("the threshold must be at least 0, found {}", self.threshold);
        Err(Error::tensors(Kind::Norm, message).hint("use a threshold of at least 0"))
    }
}

/// The present tiles of a grid, with the norm of each: the root of the sum of squares of its elements, divided by their number. Tiles
/// without elements are always absent. Cloning a shape copies nothing.
///
/// ```
/// use cembra_tiles::{Screening, Shape, Tiling, Tiling1};
///
/// let axis = Tiling1::blocked(1 << 40, 1 << 10)?;
/// let tiling = Tiling::new([&axis, &axis])?;
/// let shape = Shape::of_norms(&tiling, [(7, 0.5), (1 << 40, 1e-9)], &Screening::threshold(1e-6))?;
/// assert_eq!(shape.tiles(), [7]);
/// assert_eq!(shape.norm(7), Some(0.5));
/// assert_eq!(shape.norm(8), None);
/// # Ok::<(), cembra_value::Error>(())
/// ```
#[derive(Clone)]
pub struct Shape {
    tiling: Tiling,
    /// The numbers of the present tiles, ascending. An `Arc` of a `Vec` takes over a list that grew, where an `Arc` of a slice would copy
    /// it.
    tiles: Arc<Vec<u64>>,
    norms: Arc<Vec<f64>>,
}

impl Shape {
    /// Makes a shape in which all tiles with elements are present. Nothing is known about the norms, so they are infinite, and no
    /// threshold drops a tile.
    ///
    /// # Errors
    /// If the grid has more than `most_tiles` tiles.
    pub fn dense(tiling: &Tiling, most_tiles: usize) -> Result<Shape, Error> {
        let screening = Screening { threshold: 0.0, most_tiles };
        screening.check_count(tiling.tiles())?;
        Shape::of_norms(tiling, (0..tiling.tiles()).map(|tile| (tile, f64::INFINITY)), &screening)
    }

    /// Makes a shape without present tiles.
    #[must_use]
    pub fn empty(tiling: &Tiling) -> Shape {
        Shape::of_sorted(tiling.clone(), Vec::new(), Vec::new())
    }

    /// Makes a shape from a list of tile numbers with norms. Tiles that are not in the list, or whose norms are below the threshold, are
    /// absent.
    ///
    /// # Errors
    /// If a tile is not in the grid, the tile numbers do not ascend, a norm is negative, or more tiles are left than `screening` allows.
    pub fn of_norms(
        tiling: &Tiling,
        norms: impl IntoIterator<Item = (u64, f64)>,
        screening: &Screening,
    ) -> Result<Shape, Error> {
        screening.check()?;
        let mut made = ShapeBuilder::new(tiling, *screening);
        let mut before = None;
        for (tile, norm) in norms {
            if before.is_some_and(|before| tile <= before) {
                let message = format!("tile {tile} comes after tile {}", before.unwrap_or(0));
                return Err(Error::tensors(Kind::Norm, message).hint("list tiles in ascending order, each once"));
            }
            before = Some(tile);
            made.add(tile, norm)?;
        }
        Ok(made.finish())
    }

    /// Makes a shape with the tiles of the grid whose norms are not below the threshold. `norm` returns the norm for a tile's
    /// coordinates; it is called once for each tile that has elements, in the order of tile numbers.
    ///
    /// # Errors
    /// If the grid has more than [`MOST_VISITED`] tiles, a norm is negative, more tiles are left than `screening` allows, or `norm`
    /// fails.
    pub fn from_fn(
        tiling: &Tiling,
        screening: &Screening,
        mut norm: impl FnMut(&[u64]) -> Result<f64, Error>,
    ) -> Result<Shape, Error> {
        screening.check()?;
        check_visited(tiling)?;
        let mut made = ShapeBuilder::new(tiling, *screening);
        for tile in 0..tiling.tiles() {
            let Some(index) = tiling.index_of(tile).filter(|_| tiling.volume(tile) > 0.0) else { continue };
            let norm = crate::error::caught("the function of norms", || norm(&index))?;
            made.add(tile, norm)?;
        }
        Ok(made.finish())
    }

    /// Makes a shape from tiles that ascend and have elements, and from norms that are not negative. The caller must ensure this.
    pub(crate) fn of_sorted(tiling: Tiling, mut tiles: Vec<u64>, mut norms: Vec<f64>) -> Shape {
        debug_assert!(tiles.is_sorted_by(|a, b| a < b) && tiles.len() == norms.len());
        // Shapes live long, and these lists have room for all tiles that there might have been.
        tiles.shrink_to_fit();
        norms.shrink_to_fit();
        Shape { tiling, tiles: Arc::new(tiles), norms: Arc::new(norms) }
    }

    /// Returns a copy of this shape with other norms: `norms` has one for each present tile.
    pub(crate) fn with_norms(&self, norms: Vec<f64>) -> Shape {
        debug_assert_eq!(self.tiles.len(), norms.len());
        Shape { norms: Arc::new(norms), ..self.clone() }
    }

    /// The tiling of the tensor, which defines the grid.
    #[must_use]
    pub const fn tiling(&self) -> &Tiling {
        &self.tiling
    }

    /// The numbers of the present tiles in the grid, in ascending order.
    #[must_use]
    pub fn tiles(&self) -> &[u64] {
        &self.tiles
    }

    /// The norms (root of the sum of squares, per element) of the present tiles, in the order of [`tiles`](Shape::tiles).
    #[must_use]
    pub fn norms(&self) -> &[f64] {
        &self.norms
    }

    /// The number of tiles that are present in the shape.
    #[must_use]
    pub fn len(&self) -> usize {
        self.tiles.len()
    }

    /// Returns true if no tile is present.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tiles.is_empty()
    }

    /// The number in the grid and the norm (root of the sum of squares, per element) of each present tile, in ascending order of tiles.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (u64, f64)> {
        self.tiles.iter().copied().zip(self.norms.iter().copied())
    }

    /// The position of `tile` among the present tiles; `None` if the tile is absent.
    #[must_use]
    pub fn position(&self, tile: u64) -> Option<usize> {
        self.tiles.binary_search(&tile).ok()
    }

    /// The norm (root of the sum of squares, per element) of `tile`; `None` if the tile is absent.
    #[must_use]
    pub fn norm(&self, tile: u64) -> Option<f64> {
        self.norms.get(self.position(tile)?).copied()
    }

    /// The number of elements in all present tiles, as a float because it may be too large for an integer.
    #[must_use]
    pub fn present_elements(&self) -> f64 {
        self.tiles.iter().map(|tile| self.tiling.volume(*tile)).sum()
    }
}

/// Two shapes are equal if their tilings, present tiles and norms are equal. Norms that are NaN count as equal.
impl PartialEq for Shape {
    fn eq(&self, other: &Shape) -> bool {
        let is_same = |(a, b): (&f64, &f64)| a == b || (a.is_nan() && b.is_nan());
        self.tiling == other.tiling
            && self.tiles == other.tiles
            && self.norms.iter().zip(other.norms.iter()).all(is_same)
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} tiles of {:?}", self.len(), self.tiling.tiles(), self.tiling)
    }
}

/// A shape (the list of present tiles with their norms) under construction. Tiles are added in ascending order.
pub(crate) struct ShapeBuilder {
    tiling: Tiling,
    screening: Screening,
    tiles: Vec<u64>,
    norms: Vec<f64>,
}

impl ShapeBuilder {
    pub(crate) fn new(tiling: &Tiling, screening: Screening) -> ShapeBuilder {
        ShapeBuilder { tiling: tiling.clone(), screening, tiles: Vec::new(), norms: Vec::new() }
    }

    /// Reserves memory for `tiles` more tiles, but for no more than may be present.
    pub(crate) fn with_room(mut self, tiles: usize) -> ShapeBuilder {
        let room = tiles.min(self.screening.most_tiles);
        // Without room the lists grow.
        let _ = self.tiles.try_reserve_exact(room).and_then(|()| self.norms.try_reserve_exact(room));
        self
    }

    /// Adds a tile to the shape, after the last one, unless its norm is below the threshold or it has no elements.
    /// Returns true if it was added.
    ///
    /// # Errors
    /// If the tile is not in the grid, the norm is negative, or there are too many tiles.
    pub(crate) fn add(&mut self, tile: u64, norm: f64) -> Result<bool, Error> {
        if norm < 0.0 {
            return Err(Error::tensors(
                Kind::Norm,
                format!("the norm of tile {tile} must be at least 0, found {norm}"),
            )
            .hint("use norms of at least 0"));
        }
        if tile >= self.tiling.tiles() {
            let message = format!("there is no tile {tile}: the grid has {}", self.tiling.tiles());
            return Err(Error::tensors(Kind::Index, message));
        }
        if !self.screening.keeps(norm) || self.tiling.volume(tile) == 0.0 {
            return Ok(false);
        }
        self.add_known(tile, norm)
    }

    /// Adds a tile to the shape as [`add`](ShapeBuilder::add) does. The caller must ensure that the tile is in the grid
    /// and has elements, and that the norm is not negative.
    #[inline]
    pub(crate) fn add_known(&mut self, tile: u64, norm: f64) -> Result<bool, Error> {
        let is_kept = self.screening.keeps(norm);
        if is_kept {
            self.screening.check_count((self.tiles.len() as u64).saturating_add(1))?;
            self.tiles.push(tile);
            self.norms.push(norm);
        }
        Ok(is_kept)
    }

    pub(crate) fn finish(self) -> Shape {
        Shape::of_sorted(self.tiling, self.tiles, self.norms)
    }
}
