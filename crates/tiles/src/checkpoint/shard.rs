//! Shard files of a checkpoint: a shard has the tiles of one tensor that one rank wrote. All numbers are little-endian.
//!
//! | bytes | of the header |
//! |---|---|
//! | 12 | `cembra-tiles` |
//! | 4 | the version, 1 |
//! | 32 | the hash of the tensor's name, type and tiling, as the manifest has them |
//! | 8 | the number of tiles |
//!
//! | bytes | of the record of each tile, in ascending order of tiles |
//! |---|---|
//! | 8 | the position of the tile in the grid, the last axis the fastest |
//! | 8 | the norm as FLOAT64 |
//! | 8 | the position of the first element in the file |
//! | 32 | the hash of the elements |
//!
//! Header and records are the index. The elements of the tiles follow in the same order, without gaps; in each tile the
//! last axis varies fastest. So every byte of a shard is covered by a hash: the hashes of elements are in the index,
//! and the hash of the index is in the manifest.

#![deny(clippy::arithmetic_side_effects)]

use super::manifest::{Entry, Shard};
use crate::Tiling;
use crate::tiled::files::{InputFile, refused};
use blake3::{Hash, Hasher};
use cembra_runtime::Scalar;
use cembra_value::Error;
use cembra_value::tensor::{Data, check_room};

const MAGIC: [u8; 12] = *b"cembra-tiles";
const VERSION: u32 = 1;

/// The number of bytes in the header of a shard.
const HEADER: usize = 56;

/// The number of bytes in the record of a tile.
const RECORD: usize = 56;

/// The number of records that are read at once.
const PIECE: usize = 1 << 10;

/// The number of bytes in the index of a shard with `tiles` tiles; `None` if it does not fit a `u64`.
pub(super) fn index_bytes(tiles: u64) -> Option<u64> {
    tiles.checked_mul(RECORD as u64)?.checked_add(HEADER as u64)
}

/// Returns the header of a shard with `tiles` tiles of the tensor whose hash is `identity`.
pub(super) fn header(identity: &Hash, tiles: u64) -> Vec<u8> {
    [&MAGIC[..], &VERSION.to_le_bytes(), identity.as_bytes(), &tiles.to_le_bytes()].concat()
}

/// The record of one tile in a shard's index.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record {
    pub(super) tile: u64,
    pub(super) norm: f64,
    pub(super) offset: u64,
    pub(super) hash: Hash,
}

impl Record {
    pub(super) fn to_bytes(self) -> [u8; RECORD] {
        let mut bytes = [0; RECORD];
        let parts = self.tile.to_le_bytes().into_iter().chain(self.norm.to_le_bytes());
        let parts = parts.chain(self.offset.to_le_bytes()).chain(*self.hash.as_bytes());
        bytes.iter_mut().zip(parts).for_each(|(to, from)| *to = from);
        bytes
    }

    fn of_bytes(bytes: &[u8; RECORD]) -> Option<Record> {
        let (tile, rest) = bytes.split_first_chunk()?;
        let (norm, rest) = rest.split_first_chunk()?;
        let (offset, hash) = rest.split_first_chunk()?;
        Some(Record {
            tile: u64::from_le_bytes(*tile),
            norm: f64::from_le_bytes(*norm),
            offset: u64::from_le_bytes(*offset),
            hash: Hash::from_slice(hash).ok()?,
        })
    }
}

/// The size in bytes of a tile's elements; `None` if there is no such tile, or the size does not fit a `u64`.
fn tile_bytes(tiling: &Tiling, scalar: Scalar, tile: u64) -> Option<u64> {
    let size = Data::element_size(scalar)? as u64;
    tiling.tile_extents(tile)?.iter().try_fold(size, |bytes, extent| bytes.checked_mul(*extent as u64))
}

/// Reads the index of a shard, and checks it against the manifest and the length of the file. In memory, the index
/// takes less than twice the length of the file.
///
/// # Errors
/// If the file does not have the length and the hash that the manifest gives, if it is a shard of another tensor or
/// version, or if a record is not valid. The records must be of tiles of the tensor, in ascending order, and the
/// elements of these tiles must fill the rest of the file.
pub(super) fn read_index(
    file: &InputFile,
    shard: &Shard,
    entry: &Entry,
    identity: &Hash,
) -> Result<Vec<Record>, Error> {
    let refused = |what: String| refused(&file.path, what);
    if file.bytes != shard.bytes {
        return Err(refused(format!("the file has {} bytes, but the manifest says {}", file.bytes, shard.bytes)));
    }
    if file.bytes < HEADER as u64 {
        return Err(refused(format!("the file has {} bytes, fewer than a header", file.bytes)));
    }
    let mut start = [0; HEADER];
    file.read_exact_at(&mut start, 0)?;
    let tiles = check_header(&start, identity).map_err(refused)?;
    let end = index_bytes(tiles).filter(|end| *end <= file.bytes);
    let Some((end, tiles)) = end.zip(usize::try_from(tiles).ok()) else {
        return Err(refused(format!("the file has {} bytes, too few for {tiles} tiles", file.bytes)));
    };
    check_room(tiles.saturating_mul(size_of::<Record>()))?;
    let mut records = Vec::with_capacity(tiles);
    let mut hasher = Hasher::new();
    hasher.update(&start);
    let (mut piece, mut at) = (vec![0; RECORD.saturating_mul(PIECE.min(tiles))], HEADER as u64);
    while at < end {
        let left = usize::try_from(end.saturating_sub(at)).unwrap_or(usize::MAX).min(piece.len());
        let part = piece.get_mut(..left).unwrap_or_default();
        file.read_exact_at(part, at)?;
        hasher.update(part);
        records.extend(part.as_chunks().0.iter().filter_map(Record::of_bytes));
        at = at.saturating_add(left as u64);
    }
    if hasher.finalize() != shard.index {
        return Err(refused(
            "the file was changed, or belongs to another checkpoint: the hash of its index differs".to_owned(),
        ));
    }
    check_records(&records, entry, end, file.bytes).map_err(refused)?;
    Ok(records)
}

/// Checks a header and returns its number of tiles. The error describes the flaw, for a message.
fn check_header(header: &[u8; HEADER], identity: &Hash) -> Result<u64, String> {
    let parts = header.strip_prefix(&MAGIC).and_then(|rest| rest.split_first_chunk());
    let Some((version, rest)) = parts else { return Err("the file is not a shard of a checkpoint".to_owned()) };
    let version = u32::from_le_bytes(*version);
    if version != VERSION {
        return Err(format!("the file has version {version}, but this cembra reads version {VERSION}"));
    }
    match rest.split_last_chunk() {
        Some((found, tiles)) if found == identity.as_bytes() => Ok(u64::from_le_bytes(*tiles)),
        _ => Err("the file is a shard of another tensor".to_owned()),
    }
}

/// Checks that the records of a shard are of tiles of the tensor, and that the elements of these tiles fill the file
/// after the index. The index has `index` bytes, and the file `bytes`.
fn check_records(records: &[Record], entry: &Entry, index: u64, bytes: u64) -> Result<(), String> {
    let tiling = &entry.tiling;
    let (mut before, mut end) = (None, index);
    for Record { tile, norm, offset, .. } in records {
        match before {
            Some(before) if *tile == before => return Err(format!("tile {tile} is in the shard twice")),
            Some(before) if *tile < before => return Err(format!("tile {tile} comes after tile {before}")),
            _ => before = Some(*tile),
        }
        if *tile >= tiling.tiles() {
            return Err(format!("tile {tile} is not one of the {} tiles of the grid", tiling.tiles()));
        }
        if *norm < 0.0 {
            return Err(format!("tile {tile} has the norm {norm}"));
        }
        let size = tile_bytes(tiling, entry.scalar, *tile);
        if size == Some(0) {
            return Err(format!("tile {tile} has no elements"));
        }
        if *offset != end {
            let what = if *offset < end { "overlaps the tile before it" } else { "leaves a gap" };
            return Err(format!("tile {tile} begins at byte {offset} instead of {end}, so it {what}"));
        }
        match size.and_then(|size| end.checked_add(size)).filter(|end| *end <= bytes) {
            Some(next) => end = next,
            None => {
                return Err(format!("tile {tile} begins at byte {offset} and ends after the last of {bytes} bytes"));
            }
        }
    }
    if end == bytes { Ok(()) } else { Err(format!("the file has {bytes} bytes, but its tiles end at byte {end}")) }
}
