//! Tiled tensors: a shape, and a tile for each tile of the shape, stored or made on demand. Absent tiles read as exact zeros. `making.rs`
//! makes tiled tensors by functions, `elements/blocks.rs` cuts tensors and puts them together, and `graph/plan.rs` makes tensors that have
//! a shape alone.

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
use crate::shape::sparse::{Building, MOST_VISITED};
use crate::shape::tiling::{Ranges, TileIndex};
use crate::tiled::copies::{Packed, copy_box};
use crate::tiled::planned::{Planned, without_tiles};
use crate::tiled::spread::Spread;
use crate::tiled::tile::{Float, TILE_BYTES, Tile, check_float, with_float};
use crate::{Screening, Shape, Tiling};
use cembra_runtime::Scalar;
use cembra_value::Error;
use cembra_value::tensor::{Data, Element, Extents, Slice, Tensor, TensorErrorKind as Kind, check_room, index_count};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// The place of a tile in a tensor: its number, its coordinates in the grid, and its elements.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TilePlace {
    /// The position of the tile in the grid, the last axis the fastest.
    pub number: u64,
    /// The coordinates of the tile in the grid.
    pub index: TileIndex,
    /// The elements, as a range for each axis.
    pub ranges: Ranges,
}

impl TilePlace {
    /// The place of a tile; `None` if there is no such tile.
    #[must_use]
    pub fn of(tiling: &Tiling, number: u64) -> Option<TilePlace> {
        Some(TilePlace { number, index: tiling.index_of(number)?, ranges: tiling.ranges(number)? })
    }

    /// Returns the place of a tile, or an error if there is no such tile.
    pub(crate) fn known(tiling: &Tiling, number: u64) -> Result<TilePlace, Error> {
        let unknown = || Error::tensors(Kind::Index, format!("tile {number} of {tiling:?}"));
        TilePlace::of(tiling, number).ok_or_else(unknown)
    }

    /// The number of elements of the tile along each axis.
    #[must_use]
    pub fn extents(&self) -> Extents {
        self.ranges.iter().map(|range| range.end.abs_diff(range.start) as usize).collect()
    }
}

/// Makes tiles on demand. Functions from a place to a tensor implement this.
pub trait TileSource: Send + Sync {
    /// Makes the elements of a tile, with the extents of the place and the type of the tensor. They must be the same each time.
    ///
    /// # Errors
    /// If the tile cannot be made.
    fn tile(&self, place: &TilePlace) -> Result<Tensor, Error>;
}

impl<F: Fn(&TilePlace) -> Result<Tensor, Error> + Send + Sync> TileSource for F {
    fn tile(&self, place: &TilePlace) -> Result<Tensor, Error> {
        self(place)
    }
}

/// The tiles of a tensor.
#[derive(Clone)]
enum Tiles {
    /// Stored tiles, in the order of the shape.
    Stored(Arc<[Tile]>),
    Lazy(Arc<dyn TileSource>),
    /// Tiles that are shared out to ranks.
    Spread(Spread),
    /// The tiles of a plan, which are never made.
    Planned(Planned),
}

/// A tensor in tiles. Its shape lists the tiles that are present. Cloning it copies no elements.
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
    /// Cuts a dense tensor into tiles, and leaves out those whose norms are below the threshold. Norms are those of the elements.
    ///
    /// # Errors
    /// If the tiling is of other extents, the elements are not floats, there are too many tiles, or there is no memory for a copy.
    pub fn from_tensor(tensor: &Tensor, tiling: &Tiling, screening: &Screening) -> Result<Tiled, Error> {
        screening.check()?;
        let scalar = tensor.scalar_type();
        check_float(scalar)?;
        tiling.check_rank(tensor.extents().len())?;
        if tensor.extents() != &tiling.extents()[..] {
            let message = format!("a tensor of {:?} in tiles of {:?}", tensor.extents(), &tiling.extents()[..]);
            return Err(Error::tensors(Kind::SizeMismatch, message));
        }
        if tiling.tiles() > MOST_VISITED {
            return Err(limit("tiles of a dense tensor", tiling.tiles(), MOST_VISITED).hint("make larger tiles"));
        }
        check_room(bytes_of(scalar, tensor.layout().len() as f64))?;
        let mut shape = Building::new(tiling, *screening);
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

    /// A tensor whose tiles are made when they are needed, from their places. The norms of the shape are a promise: they decide which tiles
    /// are asked for at all, and are not compared with elements before [`truncate`](Tiled::truncate) is called.
    ///
    /// # Errors
    /// If tiles have no elements of the type.
    pub fn lazy(shape: &Shape, scalar: Scalar, source: impl TileSource + 'static) -> Result<Tiled, Error> {
        check_float(scalar)?;
        Ok(Tiled { shape: shape.clone(), scalar, tiles: Tiles::Lazy(Arc::new(source)) })
    }

    /// The bytes of the elements of present tiles, stored or not. Of tiles that are shared out to ranks, only those that are here count.
    pub(crate) fn present_bytes(&self) -> usize {
        match &self.tiles {
            Tiles::Spread(spread) => {
                let here = spread.here().map(|at| self.shape.tiling().volume(self.shape.tiles()[at]));
                bytes_of(self.scalar, here.sum())
            }
            _ => bytes_of(self.scalar, self.shape.present_elements()),
        }
    }

    /// The bytes that the tiles take besides their elements. A lazy tile has a number and a norm.
    pub(crate) fn own_bytes(&self) -> usize {
        self.shape.len().saturating_mul(if self.is_lazy() { 2 * size_of::<u64>() } else { TILE_BYTES })
    }

    /// True if all tiles share the memory of another tensor's tiles, in its order, or are made on demand.
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

    /// The plan of a tensor without tiles; `None` for a tensor that has tiles.
    pub(crate) const fn plan(&self) -> Option<&Planned> {
        match &self.tiles {
            Tiles::Planned(planned) => Some(planned),
            _ => None,
        }
    }

    /// The tiles that this rank has; `None` for a tensor that is not distributed.
    pub(crate) const fn spread(&self) -> Option<&Spread> {
        match &self.tiles {
            Tiles::Spread(spread) => Some(spread),
            _ => None,
        }
    }

    /// A tensor whose tiles are shared out to ranks.
    pub(crate) const fn of_spread(shape: Shape, scalar: Scalar, spread: Spread) -> Tiled {
        Tiled { shape, scalar, tiles: Tiles::Spread(spread) }
    }

    /// Returns the tensor with tiles of other ranks that came, by position.
    pub(crate) fn with_tiles(&self, came: Vec<(u32, Tile)>) -> Tiled {
        match &self.tiles {
            Tiles::Spread(spread) if !came.is_empty() => {
                Tiled { tiles: Tiles::Spread(spread.with(came)), ..self.clone() }
            }
            _ => self.clone(),
        }
    }

    /// A tensor of a plan, whose tiles are never made.
    pub(crate) const fn of_plan(shape: Shape, scalar: Scalar, planned: Planned) -> Tiled {
        Tiled { shape, scalar, tiles: Tiles::Planned(planned) }
    }

    /// A stored tensor. `tiles` must be in the order of the shape, with the extents that it gives.
    pub(crate) fn stored(shape: Shape, scalar: Scalar, tiles: Vec<Tile>) -> Tiled {
        debug_assert_eq!(shape.len(), tiles.len());
        Tiled { shape, scalar, tiles: Tiles::Stored(tiles.into()) }
    }

    /// A stored tensor, with the norms of its tiles' elements.
    pub(crate) fn with_true_norms(shape: &Shape, scalar: Scalar, tiles: Vec<Tile>) -> Tiled {
        let norms = tiles.iter().map(Tile::norm).collect();
        Tiled::stored(shape.with_norms(norms), scalar, tiles)
    }

    /// The tiling of the tensor.
    #[must_use]
    pub const fn tiling(&self) -> &Tiling {
        self.shape.tiling()
    }

    /// The present tiles, and their norms.
    #[must_use]
    pub const fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The type of the tensor's elements.
    #[must_use]
    pub const fn scalar_type(&self) -> Scalar {
        self.scalar
    }

    /// True if tiles are made when they are needed.
    #[must_use]
    pub const fn is_lazy(&self) -> bool {
        match &self.tiles {
            Tiles::Stored(_) | Tiles::Spread(_) => false,
            Tiles::Lazy(_) => true,
            Tiles::Planned(planned) => planned.is_lazy(),
        }
    }

    /// The bytes of the elements of all present tiles, on whichever rank they are; at most `usize::MAX`. Lazy tiles take as many when they
    /// are made.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        bytes_of(self.scalar, self.shape.present_elements())
    }

    /// Returns a tile by its number; `None` if it is absent.
    ///
    /// # Errors
    /// If a lazy tile cannot be made, or has other extents than its place or another type than the tensor.
    pub fn tile(&self, number: u64) -> Result<Option<Tile>, Error> {
        self.shape.position(number).map(|at| self.tile_at(at)).transpose()
    }

    /// Returns a tile by its position among the present tiles, which must exist.
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

    /// A stored tile by its position among the present tiles; `None` for a lazy tensor, or if another rank has the tile.
    pub(crate) fn stored_at(&self, position: usize) -> Option<&Tile> {
        match &self.tiles {
            Tiles::Stored(tiles) => tiles.get(position),
            Tiles::Spread(spread) => spread.at(position),
            Tiles::Lazy(_) | Tiles::Planned(_) => None,
        }
    }

    /// The present tiles in their order. Each is made when the iterator comes to it.
    pub fn tiles(&self) -> impl ExactSizeIterator<Item = Result<(u64, Tile), Error>> {
        self.shape.tiles().iter().enumerate().map(|(at, number)| Ok((*number, self.tile_at(at)?)))
    }

    /// Returns one element by its indices; 0 in an absent tile.
    ///
    /// # Errors
    /// If there is no such element, it is of another type, or a lazy tile cannot be made.
    pub fn get<T: Float>(&self, element: &[i64]) -> Result<T, Error> {
        if T::SCALAR != self.scalar {
            let message =
                format!("an element of type {} of a tensor of {}", T::SCALAR.short_name(), self.scalar.short_name());
            return Err(Error::tensors(Kind::ElementType, message));
        }
        self.tiling().check_rank(element.len())?;
        let Some(number) = self.tiling().tile_of(element) else {
            return Err(Error::tensors(Kind::Index, format!("element {element:?} of {:?}", self.tiling())));
        };
        let Some(tile) = self.tile(number)? else { return Ok(T::default()) };
        let ranges = self.tiling().ranges(number).unwrap_or_default();
        let at = element.iter().zip(&ranges).fold(0, |at, (element, range)| {
            at * range.end.abs_diff(range.start) as usize + element.abs_diff(range.start) as usize
        });
        Ok(tile.elements::<T>()[at])
    }

    /// Keeps the tiles that are present here and in `wanted`. The others become absent.
    ///
    /// # Errors
    /// If the tilings differ.
    pub fn masked(&self, wanted: &Shape) -> Result<Tiled, Error> {
        let shape = self.shape.masked(wanted)?;
        Ok(self.with_part_of_tiles(shape))
    }

    /// Keeps some of the present tiles: those of `shape`, which must have the same grid.
    pub(crate) fn with_part_of_tiles(&self, shape: Shape) -> Tiled {
        let is_stored = matches!(self.tiles, Tiles::Stored(_) | Tiles::Spread(_));
        let kept = if is_stored { common(self.shape.tiles(), shape.tiles()) } else { Vec::new() };
        self.with_sources(shape, kept.iter().map(|(at, _)| *at as usize))
    }

    /// A tensor of some of this tensor's stored tiles, perhaps in another order. `sources` has, for each tile of `shape`, its position in
    /// this tensor.
    pub(crate) fn with_sources(&self, shape: Shape, sources: impl Iterator<Item = usize> + Clone) -> Tiled {
        let tiles = match &self.tiles {
            Tiles::Lazy(source) => Tiles::Lazy(source.clone()),
            Tiles::Planned(planned) => Tiles::Planned(planned.clone()),
            Tiles::Stored(tiles) => Tiles::Stored(sources.map(|at| tiles[at].clone()).collect()),
            Tiles::Spread(spread) => Tiles::Spread(spread.part(sources)),
        };
        Tiled { shape, scalar: self.scalar, tiles }
    }

    /// A tensor whose tiles were made of this tensor's stored tiles. `sources` has, for each tile of `shape`, the position of the tile that
    /// it was made of. `made` has the new tiles of those that this rank has, in the order of the shape.
    pub(crate) fn made_of(&self, shape: Shape, sources: impl Iterator<Item = usize> + Clone, made: Vec<Tile>) -> Tiled {
        let tiles = match &self.tiles {
            Tiles::Spread(spread) => Tiles::Spread(spread.made_of(sources, made)),
            _ => Tiles::Stored(made.into()),
        };
        Tiled { shape, scalar: self.scalar, tiles }
    }

    /// Returns the tensor with another shape, which must have as many tiles with the same extents.
    pub(crate) fn with_shape(&self, shape: Shape) -> Tiled {
        debug_assert_eq!(shape.len(), self.shape.len());
        Tiled { shape, ..self.clone() }
    }

    /// Copies the elements to a dense tensor with the extents of the tiling, 0 where tiles are absent.
    ///
    /// # Errors
    /// If there is no memory for the elements, or a lazy tile cannot be made.
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

/// Writes a tile to its place in the memory of a whole tensor.
fn place<T: Float>(tile: &Tile, ranges: &[Range<i64>], memory: &mut [T], whole: &[Range<i64>]) {
    let from = Packed { memory: tile.elements::<T>(), ranges };
    copy_box(&from, &mut Packed { memory, ranges: whole }, ranges);
}

/// Checks that a tile made by a user has the extents of its place, and the type `scalar`.
pub(crate) fn check_tile(tensor: &Tensor, place: &TilePlace, scalar: Scalar) -> Result<(), Error> {
    let index = &place.index[..];
    if tensor.scalar_type() != scalar {
        let (found, own) = (tensor.scalar_type().short_name(), scalar.short_name());
        let message = format!("tile {index:?} has elements of type {found}, the tensor {own}");
        return Err(Error::tensors(Kind::ElementType, message));
    }
    let (found, own) = (tensor.extents(), &place.extents()[..]);
    if found != own {
        let message = format!("tile {index:?} was made with extents {found:?}, its place has {own:?}");
        return Err(Error::tensors(Kind::SizeMismatch, message));
    }
    Ok(())
}

/// The bytes of `elements` elements; at most `usize::MAX`.
pub(crate) fn bytes_of(scalar: Scalar, elements: f64) -> usize {
    // A float that is too large becomes `usize::MAX`.
    (elements * Data::element_size(scalar).unwrap_or(1) as f64) as usize
}

impl fmt::Debug for Tiled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{} {:?}", if self.is_lazy() { "lazy " } else { "" }, self.scalar.name(), self.shape)
    }
}
