//! Writes checkpoints. An older checkpoint in the same directory is not changed until the new manifest replaces the
//! older manifest, by a single rename. After a crash before this rename, the older checkpoint is complete; after a
//! later crash, the new checkpoint is complete.

use super::manifest::{Entry, Manifest, Shard};
use super::names::{self, MANIFEST, is_shard};
use super::parts::{create_directory, is_part, part, sync_directory, unwritten};
use super::shard::{Record, header, index_bytes};
use crate::Tiled;
use crate::error::limit;
use crate::link::{Failure, Ranks};
use crate::tiled::files::{PIECE_BYTES, refused};
use crate::tiled::tile::{Float, Tile, with_float};
use blake3::{Hash, Hasher};
use cembra_value::Error;
use cembra_value::tensor::check_room;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use tempfile::TempPath;

/// Writes `tensors`, given by their names, as the checkpoint in `directory`.
///
/// # Errors
/// If a file cannot be written, or a lazy tile cannot be computed.
pub(super) fn write(directory: &Path, tensors: &BTreeMap<&str, &Tiled>) -> Result<(), Error> {
    create_directory(directory)?;
    let (manifest, unlisted) = write_shards(directory, tensors, [0, 1])?;
    publish(directory, &manifest)?;
    unlisted.keep();
    sync_directory(directory)?;
    remove_leftovers(directory, &manifest);
    Ok(())
}

/// Writes one checkpoint together with the other ranks, into a directory that all ranks see. Of a distributed tensor,
/// each rank writes the tiles that it owns. Of a tensor that every rank has, each rank writes some of the tiles.
///
/// # Errors
/// The errors of [`write`] on any rank, returned on all of them; or the link failed.
pub(super) fn write_by(ranks: &Ranks, directory: &Path, tensors: &BTreeMap<&str, &Tiled>) -> Result<(), Error> {
    let (rank, size) = (ranks.link().rank(), ranks.link().size());
    ranks.settle(if rank == 0 { create_directory(directory).map_err(Failure::from) } else { Ok(()) })?;
    let (own, unlisted) = match write_shards(directory, tensors, [rank, size]) {
        Ok((own, unlisted)) => (Ok(own.to_bytes()), Some(unlisted)),
        Err(error) => (Err(Failure::from(error)), None),
    };
    let mut manifest = Manifest::default();
    for own in ranks.settle_with(own)? {
        manifest.add(Manifest::of_bytes(&own).map_err(|what| refused(directory, what))?);
    }
    let published = if rank == 0 { publish(directory, &manifest).map_err(Failure::from) } else { Ok(()) };
    let all = ranks.settle(published);
    if let Some(unlisted) = unlisted
        && (all.is_ok() || ranks.broken().is_some())
    {
        // The manifest lists the shards, or may do so.
        unlisted.keep();
    }
    all?;
    if rank == 0 {
        sync_directory(directory)?;
        remove_leftovers(directory, &manifest);
    }
    Ok(())
}

/// Writes the shards of rank `of[0]` of `of[1]` ranks under their final names. The manifest of the directory does not
/// list them yet.
fn write_shards(
    directory: &Path,
    tensors: &BTreeMap<&str, &Tiled>,
    of: [usize; 2],
) -> Result<(Manifest, Unlisted), Error> {
    let mut manifest = Manifest::default();
    let mut written = Vec::new();
    for (name, tensor) in tensors {
        let mut entry = Entry { tiling: tensor.tiling().clone(), scalar: tensor.scalar_type(), shards: Vec::new() };
        let (shard, part) = write_shard(directory, name, &entry.identity(name), tensor, of)?;
        written.push((directory.join(&shard.file), part));
        entry.shards.push(shard);
        manifest.tensors.insert((*name).to_owned(), entry);
    }
    let mut unlisted = Unlisted(Vec::new());
    for (place, part) in written {
        let is_new = !place.exists();
        part.persist(&place).map_err(|failed| unwritten(&place, &failed.error))?;
        if is_new {
            unlisted.0.push(place);
        }
    }
    // The manifest must be on the disk only after the files that it lists.
    sync_directory(directory)?;
    Ok((manifest, unlisted))
}

/// Writes a manifest under its final name, by which the checkpoint becomes valid. The shards that it lists must have
/// their final names already.
fn publish(directory: &Path, manifest: &Manifest) -> Result<(), Error> {
    let place = directory.join(MANIFEST);
    let failed = |cause: io::Error| unwritten(&place, &cause);
    let mut part = part(directory)?;
    part.write_all(&manifest.to_bytes()).and_then(|()| part.as_file().sync_all()).map_err(failed)?;
    part.persist(&place).map_err(|error| failed(error.error))?;
    Ok(())
}

/// Shard files that no manifest lists yet. When this list is dropped, the files are removed, unless
/// [`keep`](Unlisted::keep) was called because a manifest lists them.
struct Unlisted(Vec<PathBuf>);

impl Unlisted {
    /// Keeps the shards, because a manifest lists them.
    fn keep(mut self) {
        self.0.clear();
    }
}

impl Drop for Unlisted {
    fn drop(&mut self) {
        for place in &self.0 {
            // A file that cannot be removed is left to the next checkpoint.
            let _left = fs::remove_file(place);
        }
    }
}

/// The positions of the tiles that rank `rank` of `ranks` writes: those that it owns, or its part of a tensor that every rank has.
fn positions(tensor: &Tiled, [rank, ranks]: [usize; 2]) -> Vec<usize> {
    let count = tensor.shape().len();
    match tensor.spread() {
        Some(spread) => (0..count).filter(|at| spread.owners()[*at] as usize == rank).collect(),
        None => (count * rank / ranks..count * (rank + 1) / ranks).collect(),
    }
}

/// Writes the shard of a tensor, one tile after the other, to a temporary file.
fn write_shard(
    directory: &Path,
    name: &str,
    identity: &Hash,
    tensor: &Tiled,
    of: [usize; 2],
) -> Result<(Shard, TempPath), Error> {
    let part = part(directory)?;
    let failed = |cause: io::Error| unwritten(directory, &cause);
    let own = positions(tensor, of);
    let tiles = own.len() as u64;
    let too_many = || limit("tiles of a shard", tiles, u64::MAX / 64);
    let first = index_bytes(tiles).ok_or_else(too_many)?;
    let room = usize::try_from(first).map_err(|_| too_many())?;
    check_room(room)?;
    // The index comes first in the file, but is known last.
    let mut index = Vec::with_capacity(room);
    index.extend(header(identity, tiles));
    let mut out = BufWriter::with_capacity(PIECE_BYTES, part.as_file());
    out.seek(SeekFrom::Start(first)).map_err(failed)?;
    let mut offset = first;
    for at in own {
        let (number, tile) = (tensor.shape().tiles()[at], tensor.tile_at(at)?);
        // The norm of a lazy tile is a promise, and the norms in a shard are those of the elements.
        let norm = if tensor.is_lazy() { tile.norm() } else { tensor.shape().norms()[at] };
        let (hash, bytes) =
            with_float!(tensor.scalar_type(), T => write_elements::<T>(&mut out, &tile).map_err(failed))?;
        index.extend(Record { tile: number, norm, offset, hash }.to_bytes());
        offset += bytes;
    }
    out.seek(SeekFrom::Start(0)).and_then(|_| out.write_all(&index)).and_then(|()| out.flush()).map_err(failed)?;
    drop(out);
    part.as_file().sync_all().map_err(failed)?;
    let index = blake3::hash(&index);
    let shard = Shard { file: names::shard(name, &index, of[0]), bytes: offset, index };
    Ok((shard, part.into_temp_path()))
}

/// Writes the elements of a tile, and returns their hash and their number of bytes.
fn write_elements<T: Float>(out: &mut BufWriter<&File>, tile: &Tile) -> io::Result<(Hash, u64)> {
    let mut hasher = Hasher::new();
    let mut bytes = Vec::new();
    for piece in tile.elements::<T>().chunks(PIECE_BYTES / size_of::<T>()) {
        bytes.clear();
        piece.iter().for_each(|element| bytes.extend_from_slice(&element.bits().to_le_bytes()[..size_of::<T>()]));
        hasher.update(&bytes);
        out.write_all(&bytes)?;
    }
    Ok((hasher.finalize(), size_of_val(tile.elements::<T>()) as u64))
}

/// Removes the shards of older checkpoints, and incomplete files that crashes left. Other files of the directory stay.
fn remove_leftovers(directory: &Path, manifest: &Manifest) {
    // Some systems do not distinguish capital and small letters.
    let shards = manifest.tensors.values().flat_map(|entry| &entry.shards);
    let listed: BTreeSet<String> = shards.map(|shard| shard.file.to_ascii_lowercase()).collect();
    let Ok(entries) = fs::read_dir(directory) else { return };
    for entry in entries.filter_map(Result::ok) {
        let is_leftover =
            |name: &str| is_part(name) || (is_shard(name) && !listed.contains(&name.to_ascii_lowercase()));
        if entry.file_name().to_str().is_some_and(is_leftover) {
            // A file that cannot be removed is left to the next checkpoint.
            let _left = fs::remove_file(entry.path());
        }
    }
}
