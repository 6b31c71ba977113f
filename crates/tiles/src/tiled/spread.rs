//! The tiles of a distributed tensor, as one rank has them: the owner of each tile, and the tiles that this rank owns.
//! During a step, a rank may temporarily have tiles of other ranks, too.

use crate::error::no_link;
use crate::tiled::tile::Tile;
use cembra_value::Error;
use std::sync::Arc;

/// The tiles of a distributed tensor that this rank has, and the owner of each tile of the tensor.
#[derive(Clone)]
pub(crate) struct LocalTiles {
    /// For each stored tile of the tensor, the rank that owns it. The tiles are in ascending order of their tile
    /// numbers, as in the tensor's `Shape`.
    owners: Arc<[u32]>,
    /// For each stored tile of the tensor, in the same order as `owners`: the tile, or `None` if only other ranks have
    /// it.
    tiles: Arc<[Option<Tile>]>,
}

impl LocalTiles {
    /// Combines the owners of all stored tiles with the tiles that this rank has. Both lists are in ascending order of
    /// tile numbers, as in the tensor's `Shape`. The list `tiles` has `None` for a tile that only other ranks have.
    pub(crate) fn new(owners: impl Into<Arc<[u32]>>, tiles: Vec<Option<Tile>>) -> LocalTiles {
        let spread = LocalTiles { owners: owners.into(), tiles: tiles.into() };
        debug_assert_eq!(spread.owners.len(), spread.tiles.len());
        spread
    }

    /// For each stored tile of the tensor, the rank that owns it. The tiles are in ascending order of their tile
    /// numbers, as in the tensor's `Shape`.
    pub(crate) const fn owners(&self) -> &Arc<[u32]> {
        &self.owners
    }

    /// Returns the tile at `position` in the list of stored tiles; `None` if this rank does not have the tile.
    pub(crate) fn at(&self, position: usize) -> Option<&Tile> {
        self.tiles.get(position)?.as_ref()
    }

    /// Selects the tiles at `positions`, in this order, with their owners.
    pub(crate) fn part(&self, positions: impl Iterator<Item = usize> + Clone) -> LocalTiles {
        let owners: Vec<u32> = positions.clone().map(|at| self.owners[at]).collect();
        LocalTiles::new(owners, positions.map(|at| self.tiles[at].clone()).collect())
    }

    /// Selects the tiles at `positions`, in this order, and replaces them by tiles that were computed from them. `made`
    /// has one new tile for each selected tile that is on this rank.
    pub(crate) fn made_of(&self, positions: impl Iterator<Item = usize> + Clone, made: Vec<Tile>) -> LocalTiles {
        let owners: Vec<u32> = positions.clone().map(|at| self.owners[at]).collect();
        let mut made = made.into_iter();
        let tile = |at: usize| self.tiles[at].as_ref().and_then(|_| made.next());
        LocalTiles::new(owners, positions.map(tile).collect())
    }

    /// Adds tiles that arrived from other ranks, each with its position in the list of stored tiles.
    pub(crate) fn with_tiles(&self, received: Vec<(u32, Tile)>) -> LocalTiles {
        let mut tiles = self.tiles.to_vec();
        received.into_iter().for_each(|(at, tile)| tiles[at as usize] = Some(tile));
        LocalTiles { owners: self.owners.clone(), tiles: tiles.into() }
    }

    /// The positions, in the shape, of the tiles that this rank has.
    pub(crate) fn here(&self) -> impl Iterator<Item = usize> {
        self.tiles.iter().enumerate().filter(|(_, tile)| tile.is_some()).map(|(at, _)| at)
    }

    /// Returns true if all tiles on this rank share the memory of `other`'s tiles, in the same order.
    pub(crate) fn shares_tiles(&self, other: &LocalTiles) -> bool {
        let mut others = other.tiles.iter().flatten();
        let mut own = self.tiles.iter().flatten();
        own.all(|own| others.any(|other| own.tensor().shares_memory(other.tensor())))
    }

    /// Returns the error for a tile that another rank has. The tile is given by its position in the shape and its number in the grid.
    #[cold]
    pub(crate) fn elsewhere(&self, position: usize, number: u64) -> Error {
        let owner = self.owners.get(position).copied().unwrap_or_default();
        let error = no_link(format!("tile {number} is on rank {owner}"));
        error.hint("in Rust, call `Evaluator::tile` on all ranks for this tile, or `gathered` for all tiles")
    }
}
