//! Tiled tensors: a shape, which lists the present tiles, and the elements of these tiles, stored or computed on demand. Absent tiles
//! read as exact zeros. `making.rs` constructs tiled tensors from functions, `elements/blocks.rs` reads and replaces parts of tensors,
//! and `graph/plan.rs` makes tensors that have only a shape.

pub(crate) mod array_file;
pub(crate) mod copies;
pub(crate) mod files;
pub(crate) mod making;
pub(crate) mod planned;
pub(crate) mod pool;
pub(crate) mod spread;
pub(crate) mod tile;
pub(crate) mod tile_map;

use crate::error::{caught, limit};
use crate::shape::algebra::common;
use crate::shape::sparse::{MOST_VISITED, ShapeBuilder};
use crate::shape::tiling::{Ranges, TileIndex};
use crate::tiled::copies::{Packed, copy_box};
use crate::tiled::planned::{PlanTiles, without_tiles};
use crate::tiled::spread::LocalTiles;
use crate::tiled::tile::{Float, TILE_BYTES, Tile, check_float, with_float};
use crate::{Screening, Shape, Tiling};
use cembra_runtime::Scalar;
use cembra_value::Error;
use cembra_value::tensor::{Data, Element, Extents, Slice, Tensor, TensorErrorKind as Kind, check_room, index_count};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// The place of a tile in its tensor: the tile's number, its coordinates in the grid, and the index ranges of its elements.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TilePlace {
    /// The tile's number: its position in the grid, where the last axis varies fastest.
    pub number: u64,
    /// The tile's coordinates in the grid, one per axis.
    pub index: TileIndex,
    /// The index range of the tile's elements along each axis.
    pub ranges: Ranges,
}

impl TilePlace {
    /// Returns the place of the tile with this number; `None` if there is no such tile.
    #[must_use]
    pub fn of(tiling: &Tiling, number: u64) -> Option<TilePlace> {
        Some(TilePlace { number, index: tiling.index_of(number)?, ranges: tiling.ranges(number)? })
    }

    /// Returns the place of a tile, or an error if there is no such tile.
    pub(crate) fn known(tiling: &Tiling, number: u64) -> Result<TilePlace, Error> {
        let unknown = || Error::tensors(Kind::Index, format!("there is no tile {number} in {tiling:?}"));
        TilePlace::of(tiling, number).ok_or_else(unknown)
    }

    /// The number of elements of the tile along each axis.
    #[must_use]
    pub fn extents(&self) -> Extents {
        self.ranges.iter().map(|range| range.end.abs_diff(range.start) as usize).collect()
    }
}

/// Computes the tiles of a lazy tensor on demand. Closures that take a place and return a tensor implement this trait.
pub trait TileSource: Send + Sync {
    /// Computes the elements of the tile at `place`, with the extents of the place and the type of the tensor. Each
    /// call for the same place must return the same elements.
    ///
    /// # Errors
    /// If the tile cannot be computed.
    fn tile(&self, place: &TilePlace) -> Result<Tensor, Error>;
}

impl<F: Fn(&TilePlace) -> Result<Tensor, Error> + Send + Sync> TileSource for F {
    fn tile(&self, place: &TilePlace) -> Result<Tensor, Error> {
        self(place)
    }
}

/// The tiles of a tensor: stored in memory, computed on demand, distributed over ranks, or only planned.
#[derive(Clone)]
enum Tiles {
    /// The tiles are stored in memory, in ascending order of their tile numbers, as in the `Shape`.
    Stored(Arc<[Tile]>),
    Lazy(Arc<dyn TileSource>),
    /// The tiles are distributed over ranks.
    Spread(LocalTiles),
    /// The tensor is for plans: its tiles are never computed.
    Planned(PlanTiles),
}

/// A tensor that is cut into tiles. Its shape lists the tiles that are present; absent tiles are zeros. Cloning it copies no elements.
///
/// ```
/// use cembra_tiles::{Screening, Tiled, Tiling, Tiling1};
/// use cembra_value::tensor::Tensor;
///
/// let tensor = Tensor::new(&[2, 4], vec![1.0, 2.0, 0.0, 0.0, 3.0, 4.0, 0.0, 0.0])?;
/// let tiling = Tiling::new([Tiling1::blocked(2, 2)?, Tiling1::blocked(4, 2)?])?;
/// let tiled = Tiled::from_tensor(&tensor, &tiling, &Screening::threshold(1e-10))?;
/// assert_eq!(tiled.shape().tiles(), [0]);
/// assert_eq!(tiled.shape().norm(0), Some(30.0_f64.sqrt() / 4.0));
/// assert_eq!(tiled.get::<f64>(&[1, 3])?, 0.0);
/// assert_eq!(tiled.to_tensor()?, tensor);
/// # Ok::<(), cembra_value::Error>(())
/// ```
#[derive(Clone)]
pub struct Tiled {
    shape: Shape,
    scalar: Scalar,
    tiles: Tiles,
}

impl Tiled {
    /// Cuts a dense tensor into tiles, and leaves out those whose norms are below the threshold. Norms are computed from the elements.
    ///
    /// # Errors
    /// If the tiling has other extents than the tensor, the elements are not floats, there are too many tiles, or there is no memory for a
    /// copy.
    pub fn from_tensor(tensor: &Tensor, tiling: &Tiling, screening: &Screening) -> Result<Tiled, Error> {
        screening.check()?;
        let scalar = tensor.scalar_type();
        check_float(scalar)?;
        tiling.check_rank(tensor.extents().len())?;
        if tensor.extents() != &tiling.extents()[..] {
            let message = format!(
                "a tensor has the extents {:?}, but its tiling has {:?}",
                tensor.extents(),
                &tiling.extents()[..]
            );
            return Err(Error::tensors(Kind::SizeMismatch, message));
        }
        if tiling.tiles() > MOST_VISITED {
            return Err(limit("tiles of a dense tensor", tiling.tiles(), MOST_VISITED).hint("make larger tiles"));
        }
        check_room(bytes_of(scalar, tensor.layout().len() as f64))?;
        let mut shape = ShapeBuilder::new(tiling, *screening);
        let mut tiles = Vec::new();
        for number in 0..tiling.tiles() {
            let Some(ranges) = tiling.ranges(number).filter(|_| tiling.volume(number) > 0.0) else { continue };
            let slices = ranges.iter().zip(tiling.axes()).map(|(range, axis)| Slice {
                start: range.start.abs_diff(axis.lower()) as usize,
                step: 1,
                count: range.end.abs_diff(range.start) as usize,
            });
            let tile = Tile::of(&tensor.sliced(&slices.collect::<Vec<Slice>>())?)?;
            if shape.add(number, tile.norm())? {
                tiles.push(tile);
            }
        }
        Ok(Tiled::stored(shape.finish(), scalar, tiles))
    }

    /// Makes a lazy tensor: `source` computes a tile from its place each time it is needed. The caller guarantees the
    /// norms of `shape`: they decide which tiles are needed at all, and are not compared with the elements unless
    /// [`truncate`](Tiled::truncate) is called.
    ///
    /// # Errors
    /// If tiles cannot have elements of the type `scalar`.
    pub fn lazy(shape: &Shape, scalar: Scalar, source: impl TileSource + 'static) -> Result<Tiled, Error> {
        check_float(scalar)?;
        Ok(Tiled { shape: shape.clone(), scalar, tiles: Tiles::Lazy(Arc::new(source)) })
    }

    /// The number of bytes in the elements of present tiles, stored or lazy. If tiles are distributed over ranks, only those on this rank
    /// count.
    pub(crate) fn present_bytes(&self) -> usize {
        match &self.tiles {
            Tiles::Spread(spread) => {
                let here = spread.here().map(|at| self.shape.tiling().volume(self.shape.tiles()[at]));
                bytes_of(self.scalar, here.sum())
            }
            _ => bytes_of(self.scalar, self.shape.present_elements()),
        }
    }

    /// The number of bytes that the tiles take in addition to their elements. A lazy tile takes only a number and a norm.
    pub(crate) fn own_bytes(&self) -> usize {
        self.shape.len().saturating_mul(if self.is_lazy() { 2 * size_of::<u64>() } else { TILE_BYTES })
    }

    /// Returns true if this tensor takes no memory of its own: if it is lazy, or if all its tiles share the memory of
    /// tiles of `other`, in the same order.
    pub(crate) fn shares_tiles(&self, other: &Tiled) -> bool {
        match (&self.tiles, &other.tiles) {
            _ if self.is_lazy() => true,
            (Tiles::Stored(own), Tiles::Stored(others)) => {
                let mut others = others.iter();
                own.iter().all(|own| others.any(|other| own.tensor().shares_memory(other.tensor())))
            }
            (Tiles::Spread(own), Tiles::Spread(others)) => own.shares_tiles(others),
            (Tiles::Stored(own), Tiles::Lazy(_)) => own.is_empty(),
            (Tiles::Planned(own), Tiles::Planned(others)) => {
                self.shape.is_empty() || (!other.shape.is_empty() && own.shares_memory(others))
            }
            _ => false,
        }
    }

    /// Returns the facts about a planned tensor: a tensor without tiles, made for the plan of an evaluation. `None` for other tensors.
    pub(crate) const fn plan(&self) -> Option<&PlanTiles> {
        match &self.tiles {
            Tiles::Planned(planned) => Some(planned),
            _ => None,
        }
    }

    /// The owner of each tile, and the tiles that this rank has; `None` if the tensor is not distributed.
    pub(crate) const fn spread(&self) -> Option<&LocalTiles> {
        match &self.tiles {
            Tiles::Spread(spread) => Some(spread),
            _ => None,
        }
    }

    /// Makes a tensor whose tiles are distributed over ranks.
    pub(crate) const fn of_spread(shape: Shape, scalar: Scalar, spread: LocalTiles) -> Tiled {
        Tiled { shape, scalar, tiles: Tiles::Spread(spread) }
    }

    /// Returns the tensor with additional tiles, which arrived from other ranks, each with its position among the present tiles.
    pub(crate) fn with_tiles(&self, received: Vec<(u32, Tile)>) -> Tiled {
        match &self.tiles {
            Tiles::Spread(spread) if !received.is_empty() => {
                Tiled { tiles: Tiles::Spread(spread.with_tiles(received)), ..self.clone() }
            }
            _ => self.clone(),
        }
    }

    /// Makes a tensor for a plan, whose tiles are never computed.
    pub(crate) const fn of_plan(shape: Shape, scalar: Scalar, planned: PlanTiles) -> Tiled {
        Tiled { shape, scalar, tiles: Tiles::Planned(planned) }
    }

    /// Makes a tensor with stored tiles. `tiles` must be in ascending order of tile numbers, as in `shape`, with the
    /// extents that `shape` gives.
    pub(crate) fn stored(shape: Shape, scalar: Scalar, tiles: Vec<Tile>) -> Tiled {
        debug_assert_eq!(shape.len(), tiles.len());
        Tiled { shape, scalar, tiles: Tiles::Stored(tiles.into()) }
    }

    /// Makes a tensor with stored tiles. The norms are computed from the elements of the tiles, not taken from `shape`.
    pub(crate) fn with_true_norms(shape: &Shape, scalar: Scalar, tiles: Vec<Tile>) -> Tiled {
        let norms = tiles.iter().map(Tile::norm).collect();
        Tiled::stored(shape.with_norms(norms), scalar, tiles)
    }

    /// The tiling of the tensor.
    #[must_use]
    pub const fn tiling(&self) -> &Tiling {
        self.shape.tiling()
    }

    /// The shape of the tensor: the tiles that are present, with the norm (root of the sum of squares, per element) of each.
    #[must_use]
    pub const fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The type of the tensor's elements.
    #[must_use]
    pub const fn scalar_type(&self) -> Scalar {
        self.scalar
    }

    /// Returns true if the tensor is lazy: its tiles are computed when they are needed.
    #[must_use]
    pub const fn is_lazy(&self) -> bool {
        match &self.tiles {
            Tiles::Stored(_) | Tiles::Spread(_) => false,
            Tiles::Lazy(_) => true,
            Tiles::Planned(planned) => planned.is_lazy(),
        }
    }

    /// The number of bytes in the elements of all present tiles, on all ranks together; at most `usize::MAX`. Lazy tiles count as if they
    /// were stored.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        bytes_of(self.scalar, self.shape.present_elements())
    }

    /// Returns the tile with this number in the grid; `None` if it is absent.
    ///
    /// # Errors
    /// If a lazy tile cannot be computed, or does not have the extents of its place and the type of the tensor.
    pub fn tile(&self, number: u64) -> Result<Option<Tile>, Error> {
        self.shape.position(number).map(|at| self.tile_at(at)).transpose()
    }

    /// Returns the tile at `position` among the present tiles, which must exist.
    pub(crate) fn tile_at(&self, position: usize) -> Result<Tile, Error> {
        let source = match &self.tiles {
            Tiles::Stored(tiles) => return Ok(tiles[position].clone()),
            Tiles::Spread(spread) => {
                return spread
                    .at(position)
                    .cloned()
                    .ok_or_else(|| spread.elsewhere(position, self.shape.tiles()[position]));
            }
            Tiles::Lazy(source) => source,
            Tiles::Planned(_) => return Err(without_tiles()),
        };
        let place = TilePlace::known(self.tiling(), self.shape.tiles()[position])?;
        let tensor = caught("the function of tiles", || source.tile(&place))?;
        check_tile(&tensor, &place, self.scalar)?;
        Tile::of(&tensor)
    }

    /// Returns the stored tile at `position` among the present tiles; `None` if the tensor is lazy, or another rank has the tile.
    pub(crate) fn stored_at(&self, position: usize) -> Option<&Tile> {
        match &self.tiles {
            Tiles::Stored(tiles) => tiles.get(position),
            Tiles::Spread(spread) => spread.at(position),
            Tiles::Lazy(_) | Tiles::Planned(_) => None,
        }
    }

    /// The present tiles in their order, each with its number. A lazy tile is computed when the iterator reaches it.
    pub fn tiles(&self) -> impl ExactSizeIterator<Item = Result<(u64, Tile), Error>> {
        self.shape.tiles().iter().enumerate().map(|(at, number)| Ok((*number, self.tile_at(at)?)))
    }

    /// Returns the element at the index `element`; 0 if its tile is absent.
    ///
    /// # Errors
    /// If the tensor has no such element, its elements are not of type `T`, or a lazy tile cannot be computed.
    pub fn get<T: Float>(&self, element: &[i64]) -> Result<T, Error> {
        if T::SCALAR != self.scalar {
            let message = format!(
                "an element of type {} was requested, but the tensor has elements of type {}",
                T::SCALAR.short_name(),
                self.scalar.short_name()
            );
            return Err(Error::tensors(Kind::ElementType, message));
        }
        self.tiling().check_rank(element.len())?;
        let Some(number) = self.tiling().tile_of(element) else {
            return Err(Error::tensors(
                Kind::Index,
                format!("there is no element {element:?} in a tensor of {:?}", self.tiling()),
            ));
        };
        let Some(tile) = self.tile(number)? else { return Ok(T::default()) };
        let ranges = self.tiling().ranges(number).unwrap_or_default();
        let at = element.iter().zip(&ranges).fold(0, |at, (element, range)| {
            at * range.end.abs_diff(range.start) as usize + element.abs_diff(range.start) as usize
        });
        Ok(tile.elements::<T>()[at])
    }

    /// Returns the tensor with only those tiles that are also present in `wanted`; all other tiles become absent.
    ///
    /// # Errors
    /// If the tilings differ.
    pub fn masked(&self, wanted: &Shape) -> Result<Tiled, Error> {
        let shape = self.shape.masked(wanted)?;
        Ok(self.with_part_of_tiles(shape))
    }

    /// Returns the tensor with only the tiles of `shape`. This tensor must have the same grid and all of these tiles.
    pub(crate) fn with_part_of_tiles(&self, shape: Shape) -> Tiled {
        let is_stored = matches!(self.tiles, Tiles::Stored(_) | Tiles::Spread(_));
        let kept = if is_stored { common(self.shape.tiles(), shape.tiles()) } else { Vec::new() };
        self.with_sources(shape, kept.iter().map(|(at, _)| *at as usize))
    }

    /// Makes a tensor from some of the stored tiles of this tensor. `sources` has, for each tile of `shape`, the tile's position among
    /// the present tiles of this tensor.
    pub(crate) fn with_sources(&self, shape: Shape, sources: impl Iterator<Item = usize> + Clone) -> Tiled {
        let tiles = match &self.tiles {
            Tiles::Lazy(source) => Tiles::Lazy(source.clone()),
            Tiles::Planned(planned) => Tiles::Planned(planned.clone()),
            Tiles::Stored(tiles) => Tiles::Stored(sources.map(|at| tiles[at].clone()).collect()),
            Tiles::Spread(spread) => Tiles::Spread(spread.part(sources)),
        };
        Tiled { shape, scalar: self.scalar, tiles }
    }

    /// Makes a tensor whose tiles were computed from stored tiles of this tensor. `sources` has, for each tile of
    /// `shape`, the position of the tile that it was computed from. `made` has the new tiles whose sources are on this
    /// rank, in the order of the tiles in `shape`.
    pub(crate) fn made_of(&self, shape: Shape, sources: impl Iterator<Item = usize> + Clone, made: Vec<Tile>) -> Tiled {
        let tiles = match &self.tiles {
            Tiles::Spread(spread) => Tiles::Spread(spread.made_of(sources, made)),
            _ => Tiles::Stored(made.into()),
        };
        Tiled { shape, scalar: self.scalar, tiles }
    }

    /// Returns the tensor with `shape` in place of its own shape. Both shapes must have the same number of tiles, with the same extents.
    pub(crate) fn with_shape(&self, shape: Shape) -> Tiled {
        debug_assert_eq!(shape.len(), self.shape.len());
        Tiled { shape, ..self.clone() }
    }

    /// Copies the elements to a dense tensor with the extents of the tiling; elements of absent tiles are 0.
    ///
    /// # Errors
    /// If there is no memory for the elements, or a lazy tile cannot be computed.
    pub fn to_tensor(&self) -> Result<Tensor, Error> {
        let extents = self.tiling().extents();
        let mut made = Data::zeros(self.scalar, index_count(&extents)?)?;
        let whole: Ranges = self.tiling().axes().iter().map(|axis| axis.lower()..axis.upper()).collect();
        for tile in self.tiles() {
            let (number, tile) = tile?;
            let ranges = self.tiling().ranges(number).unwrap_or_default();
            with_float!(self.scalar, T => {
                place(&tile, &ranges, T::of_mut(&mut made).map(Vec::as_mut_slice).unwrap_or_default(), &whole);
                Ok(())
            })?;
        }
        Tensor::of_data(&extents, made)
    }
}

/// Copies a tile, which has the index ranges `ranges`, into the packed elements of the whole tensor, whose index ranges
/// are `whole`.
fn place<T: Float>(tile: &Tile, ranges: &[Range<i64>], memory: &mut [T], whole: &[Range<i64>]) {
    let from = Packed { memory: tile.elements::<T>(), ranges };
    copy_box(&from, &mut Packed { memory, ranges: whole }, ranges);
}

/// Returns an error if a tile from a user's code does not have the extents of its place and the type `scalar`.
pub(crate) fn check_tile(tensor: &Tensor, place: &TilePlace, scalar: Scalar) -> Result<(), Error> {
    let index = &place.index[..];
    if tensor.scalar_type() != scalar {
        let (found, own) = (tensor.scalar_type().short_name(), scalar.short_name());
        let message = format!("tile {index:?} has elements of type {found}, but the tensor has {own}");
        return Err(Error::tensors(Kind::ElementType, message));
    }
    let (found, own) = (tensor.extents(), &place.extents()[..]);
    if found != own {
        let message = format!("tile {index:?} has extents {found:?}, but the tiling requires {own:?}");
        return Err(Error::tensors(Kind::SizeMismatch, message));
    }
    Ok(())
}

/// The number of bytes that `elements` elements take; at most `usize::MAX`.
pub(crate) fn bytes_of(scalar: Scalar, elements: f64) -> usize {
    // A float that is too large becomes `usize::MAX`.
    (elements * Data::element_size(scalar).unwrap_or(1) as f64) as usize
}

impl fmt::Debug for Tiled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{} {:?}", if self.is_lazy() { "lazy " } else { "" }, self.scalar.name(), self.shape)
    }
}
