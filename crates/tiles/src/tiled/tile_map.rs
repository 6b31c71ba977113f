//! Maps from the tiles of a grid to the ranks that own them, such as a block-cyclic map. A distributed tensor stores
//! only the resulting list: the owner of each present tile.

use crate::error::no_link;
use crate::shape::mixing::mixed;
use crate::tiled::TilePlace;
use crate::{Shape, Tiling};
use cembra_value::Error;
use std::fmt;
use std::sync::Arc;

/// A user's function from a tile's place in the grid to the rank that owns the tile.
type OwnerOf = dyn Fn(&TilePlace) -> usize + Send + Sync;

/// A map from the tiles of a tensor to the ranks that own them. The choice of a map changes no bit of a result.
///
/// ```
/// use cembra_tiles::{MOST_TILES, Shape, TileMap, Tiling, Tiling1};
///
/// let axis = Tiling1::blocked(8, 2)?;
/// let shape = Shape::dense(&Tiling::new([&axis, &axis])?, MOST_TILES)?;
/// // Rows 0 and 2 of tiles are those of ranks 0 and 1, the others those of ranks 2 and 3.
/// let owners = TileMap::grid(2, 2).owners(&shape, 4)?;
/// assert_eq!(owners[..8], [0, 1, 0, 1, 2, 3, 2, 3]);
/// let by_row = TileMap::by(|place| place.index[0] as usize % 4).owners(&shape, 4)?;
/// assert_eq!(by_row[..8], [0, 0, 0, 0, 1, 1, 1, 1]);
/// # Ok::<(), cembra_value::Error>(())
/// ```
#[derive(Clone)]
pub struct TileMap(Kind);

#[derive(Clone)]
enum Kind {
    Grid { rows: usize, columns: usize },
    Hashed,
    By(Arc<OwnerOf>),
}

impl TileMap {
    /// Makes a block-cyclic map over a grid of `rows` by `columns` ranks. The first half of a tensor's axes (the larger half, if their
    /// number is odd) counts as rows, the others as columns: rank `(i % rows) * columns + j % columns` owns the tile in row `i` and
    /// column `j` of tiles. The tiles of a tensor with one axis are assigned to the ranks in turn.
    #[must_use]
    pub const fn grid(rows: usize, columns: usize) -> TileMap {
        TileMap(Kind::Grid { rows, columns })
    }

    /// Makes a block-cyclic map over the grid of all ranks that is closest to a square, with no more rows than columns.
    #[must_use]
    pub fn square(ranks: usize) -> TileMap {
        let rows = (1..=ranks.isqrt().max(1)).rev().find(|rows| ranks.is_multiple_of(*rows)).unwrap_or(1);
        TileMap::grid(rows, (ranks / rows).max(1))
    }

    /// Makes a map by a hash of the tile's number, for tensors whose present tiles a block-cyclic map would distribute
    /// unevenly.
    #[must_use]
    pub const fn hashed() -> TileMap {
        TileMap(Kind::Hashed)
    }

    /// Makes a map by the function `owner` from a tile's place to the rank that owns the tile. The function must be the same on all
    /// ranks.
    #[must_use]
    pub fn by(owner: impl Fn(&TilePlace) -> usize + Send + Sync + 'static) -> TileMap {
        TileMap(Kind::By(Arc::new(owner)))
    }

    /// Returns, for each tile in `shape`, the rank that owns it, in ascending order of tile numbers. `ranks` is the
    /// number of ranks.
    ///
    /// # Errors
    /// If the map's grid of ranks is empty or larger than `ranks`, or the map's function returns a rank that does not exist.
    pub fn owners(&self, shape: &Shape, ranks: usize) -> Result<Vec<u32>, Error> {
        let grid = match self.0 {
            Kind::Grid { rows, columns } => rows.saturating_mul(columns),
            _ => 1,
        };
        if grid == 0 || grid > ranks {
            return Err(no_link(format!("the grid needs {grid} ranks, but the link has {ranks}")));
        }
        shape.tiles().iter().map(|tile| self.owner(shape.tiling(), *tile, ranks)).collect()
    }

    fn owner(&self, tiling: &Tiling, tile: u64, ranks: usize) -> Result<u32, Error> {
        let owner = match &self.0 {
            Kind::Grid { rows, columns } => {
                let (rows, columns) = (*rows as u64, *columns as u64);
                let axes = tiling.axes();
                if axes.len() < 2 {
                    tile % rows.saturating_mul(columns).max(1)
                } else {
                    let along =
                        axes.iter().skip(axes.len().div_ceil(2)).fold(1, |count: u64, axis| count * axis.tiles());
                    // A grid with a present tile has tiles, so this is at least 1 already.
                    let along = along.max(1);
                    (tile / along % rows.max(1)).saturating_mul(columns).saturating_add(tile % along % columns.max(1))
                }
            }
            Kind::Hashed => mixed(tile) % ranks as u64,
            Kind::By(owner) => {
                let place = TilePlace::of(tiling, tile);
                let owner = place.as_ref().map_or(0, |place| owner(place));
                if owner >= ranks {
                    let at = place.map_or_else(String::new, |place| format!(" {:?}", &place.index[..]));
                    return Err(no_link(format!(
                        "tile{at} is assigned to rank {owner}, but there are only {ranks} ranks"
                    )));
                }
                owner as u64
            }
        };
        if owner >= ranks as u64 {
            return Err(no_link(format!("tile {tile} is assigned to rank {owner}, but there are only {ranks} ranks")));
        }
        Ok(owner as u32)
    }
}

impl fmt::Debug for TileMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Grid { rows, columns } => write!(f, "{rows} x {columns} ranks"),
            Kind::Hashed => f.write_str("hashed"),
            Kind::By(_) => f.write_str("by a function"),
        }
    }
}
