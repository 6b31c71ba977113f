//! Reads tiles from shard files (a shard has the tiles of one tensor that one rank wrote) when they are needed, and
//! compares each tile with its hash. Files are opened once and read by position, so several threads can read at the
//! same time, and a shard can still be read after a newer checkpoint replaced it.

#![deny(clippy::arithmetic_side_effects)]

use super::manifest::Entry;
use super::shard::{Record, read_index};
use crate::shape::sparse::{Screening, Shape, ShapeBuilder};
use crate::tiled::files::{InputFile, PIECE_BYTES, refused};
use crate::tiled::tile::{Float, Tile, TileMemory, with_float};
use crate::tiled::{TilePlace, TileSource};
use blake3::Hasher;
use cembra_runtime::Scalar;
use cembra_value::Error;
use cembra_value::tensor::{Tensor, TensorErrorKind as Kind};
use std::path::Path;

/// The tiles of one tensor in the shard files of a checkpoint, read when they are needed.
#[derive(Debug)]
pub(super) struct StoredTiles {
    scalar: Scalar,
    files: Vec<InputFile>,
    /// The record of each tile in ascending order of tiles, and the position of the tile's file in the list of shard files.
    records: Vec<(Record, usize)>,
}

impl StoredTiles {
    /// Opens the shard files of the tensor `name` and reads their indices, but no tiles. The returned shape (the list of present tiles) has the tiles
    /// of all shards.
    ///
    /// # Errors
    /// If a shard is missing, damaged or of another tensor, or two shards have the same tile.
    pub(super) fn open(directory: &Path, name: &str, entry: &Entry) -> Result<(Shape, StoredTiles), Error> {
        let identity = entry.identity(name);
        let mut tiles = StoredTiles { scalar: entry.scalar, files: Vec::new(), records: Vec::new() };
        for shard in &entry.shards {
            let file = InputFile::open(directory.join(&shard.file))?;
            let index = read_index(&file, shard, entry, &identity)?;
            let at = tiles.files.len();
            tiles.records.extend(index.into_iter().map(|record| (record, at)));
            tiles.files.push(file);
        }
        // The tiles of each shard ascend already.
        tiles.records.sort_unstable_by_key(|(record, file)| (record.tile, *file));
        let twice = tiles.records.array_windows().find(|[(a, _), (b, _)]| a.tile == b.tile);
        if let Some([(record, first), (_, second)]) = twice
            && let [Some(first), Some(second)] = [first, second].map(|at| tiles.files.get(*at))
        {
            let message = format!("tile {} is in {} too", record.tile, first.path.display());
            return Err(refused(&second.path, message));
        }
        // The lengths of files were compared with their tiles, so there are no more records than there is room for.
        let screening = Screening { threshold: 0.0, most_tiles: usize::MAX };
        let mut shape = ShapeBuilder::new(&entry.tiling, screening).with_room(tiles.records.len());
        for (record, _) in &tiles.records {
            shape.add(record.tile, record.norm)?;
        }
        Ok((shape.finish(), tiles))
    }

    /// Reads the tile at a place from its shard, and compares it with its hash.
    fn read<T: Float>(&self, place: &TilePlace) -> Result<Tile, Error> {
        let found = self.records.binary_search_by_key(&place.number, |(record, _)| record.tile);
        let found = found.ok().and_then(|at| self.records.get(at));
        let Some((record, file)) = found.and_then(|(record, file)| Some((record, self.files.get(*file)?))) else {
            return Err(Error::tensors(Kind::Index, format!("tile {} is absent", place.number)));
        };
        let extents = place.extents();
        let mut memory = TileMemory::<T>::of_extents(&extents)?;
        let mut piece = vec![0; PIECE_BYTES.min(size_of_val(memory.elements()))];
        let mut hasher = Hasher::new();
        file.read_elements(memory.elements_mut(), record.offset, &mut piece, |bytes| _ = hasher.update(bytes))?;
        if hasher.finalize() != record.hash {
            let message = format!("tile {} was changed: its hash differs", record.tile);
            return Err(refused(&file.path, message));
        }
        memory.into_tile(&extents)
    }
}

impl TileSource for StoredTiles {
    fn tile(&self, place: &TilePlace) -> Result<Tensor, Error> {
        with_float!(self.scalar, T => Ok(self.read::<T>(place)?.tensor().clone()))
    }
}
