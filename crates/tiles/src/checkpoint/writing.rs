//! Writes checkpoints. Nothing that an older checkpoint of the same directory has is touched before the new manifest is in its place: until
//! then a crash leaves the older one, and afterwards it is the new one.

use super::manifest::{Entry, Manifest, Shard};
use super::names::{self, MANIFEST, is_shard};
use super::parts::{create_directory, is_part, part, sync_directory, unwritten};
use super::shard::{Record, header, index_bytes};
use crate::Tiled;
use crate::error::limit;
use crate::files::PIECE_BYTES;
use crate::tile::{Float, Tile, with_float};
use blake3::{Hash, Hasher};
use cembra_value::Error;
use cembra_value::tensor::check_room;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use tempfile::TempPath;

/// The rank that writes.
const RANK: usize = 0;

/// Writes tensors by their names as the checkpoint of a directory.
///
/// # Errors
/// A file cannot be written, or a lazy tile cannot be made.
pub(super) fn write(directory: &Path, tensors: &BTreeMap<&str, &Tiled>) -> Result<(), Error> {
    create_directory(directory)?;
    let mut manifest = Manifest::default();
    let mut written = Vec::new();
    for (name, tensor) in tensors {
        let mut entry = Entry { tiling: tensor.tiling().clone(), scalar: tensor.scalar_type(), shards: Vec::new() };
        let (shard, part) = write_shard(directory, name, &entry.identity(name), tensor)?;
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
    // The manifest is on the disk only after what it lists.
    sync_directory(directory)?;
    let place = directory.join(MANIFEST);
    let failed = |cause: io::Error| unwritten(&place, &cause);
    let mut part = part(directory)?;
    part.write_all(&manifest.to_bytes()).and_then(|()| part.as_file().sync_all()).map_err(failed)?;
    part.persist(&place).map_err(|error| failed(error.error))?;
    unlisted.0.clear();
    sync_directory(directory)?;
    remove_leftovers(directory, &manifest);
    Ok(())
}

/// Shards that no manifest lists, which are removed if that stays so.
struct Unlisted(Vec<PathBuf>);

impl Drop for Unlisted {
    fn drop(&mut self) {
        for place in &self.0 {
            // What cannot be removed is left to the next checkpoint.
            let _left = fs::remove_file(place);
        }
    }
}

/// Writes the shard of a tensor, one tile after the other, into a file that is not in its place yet.
fn write_shard(directory: &Path, name: &str, identity: &Hash, tensor: &Tiled) -> Result<(Shard, TempPath), Error> {
    let part = part(directory)?;
    let failed = |cause: io::Error| unwritten(directory, &cause);
    let tiles = tensor.shape().len() as u64;
    let too_many = || limit("tiles of a shard", tiles, u64::MAX / 64);
    let first = index_bytes(tiles).ok_or_else(too_many)?;
    let room = usize::try_from(first).map_err(|_| too_many())?;
    check_room(room)?;
    // The index is in front, and known last.
    let mut index = Vec::with_capacity(room);
    index.extend(header(identity, tiles));
    let mut out = BufWriter::with_capacity(PIECE_BYTES, part.as_file());
    out.seek(SeekFrom::Start(first)).map_err(failed)?;
    let mut offset = first;
    for (made, promised) in tensor.tiles().zip(tensor.shape().norms()) {
        let (number, tile) = made?;
        // The norm of a lazy tile is a promise, and the norms in a shard are those of the elements.
        let norm = if tensor.is_lazy() { tile.norm() } else { *promised };
        let (hash, bytes) =
            with_float!(tensor.scalar_type(), T => write_elements::<T>(&mut out, &tile).map_err(failed))?;
        index.extend(Record { tile: number, norm, offset, hash }.to_bytes());
        offset += bytes;
    }
    out.seek(SeekFrom::Start(0)).and_then(|_| out.write_all(&index)).and_then(|()| out.flush()).map_err(failed)?;
    drop(out);
    part.as_file().sync_all().map_err(failed)?;
    let index = blake3::hash(&index);
    let shard = Shard { file: names::shard(name, &index, RANK), bytes: offset, index };
    Ok((shard, part.into_temp_path()))
}

/// Writes the elements of a tile, and gives their hash and how many bytes they are.
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

/// Removes the shards of older checkpoints, and the parts that crashes left. Other files of the directory stay.
fn remove_leftovers(directory: &Path, manifest: &Manifest) {
    // Some systems do not see the difference between large and small letters.
    let shards = manifest.tensors.values().flat_map(|entry| &entry.shards);
    let listed: BTreeSet<String> = shards.map(|shard| shard.file.to_ascii_lowercase()).collect();
    let Ok(entries) = fs::read_dir(directory) else { return };
    for entry in entries.filter_map(Result::ok) {
        let is_leftover =
            |name: &str| is_part(name) || (is_shard(name) && !listed.contains(&name.to_ascii_lowercase()));
        if entry.file_name().to_str().is_some_and(is_leftover) {
            // What cannot be removed is left to the next checkpoint.
            let _left = fs::remove_file(entry.path());
        }
    }
}
