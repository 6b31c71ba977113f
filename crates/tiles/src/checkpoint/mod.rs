//! Checkpoints: tiled tensors in the files of a directory, which are read as a whole or tile by tile. `manifest.rs` and
//! `shard.rs` describe the contents of files, and `writing.rs` the order in which they are written.

mod manifest;
mod names;
mod parts;
mod reading;
mod shard;
mod writing;

use crate::{Evaluator, Tile, Tiled, Tiling};
use cembra_runtime::Scalar;
use cembra_value::Error;
use cembra_value::tensor::{TensorErrorKind as Kind, check_room};
use manifest::Manifest;
use reading::StoredTiles;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A checkpoint: tiled tensors in the files of a directory, by their names.
///
/// The directory has `manifest.json`, which lists the tensors and their tilings, and files of tiles for each tensor.
/// Elements and norms are stored exactly. All data is covered by hashes, so a file that was damaged, cut short or
/// exchanged causes an error of the kind [`File`](Kind::File), which names the file.
///
/// ```
/// use cembra_tiles::{Checkpoint, MOST_TILES, Shape, Tiled, Tiling, Tiling1};
///
/// let axis = Tiling1::new([-2, 0, 3])?;
/// let shape = Shape::dense(&Tiling::new([&axis, &axis])?, MOST_TILES)?;
/// let a = Tiled::from_fn(&shape, |at| (10 * at[0] + at[1]) as f64)?;
/// # let directory = tempfile::tempdir().expect("a directory");
/// # let directory = directory.path();
/// Checkpoint::write(directory, [("a", &a), ("half", &a.block(&[0..1, 0..2], Default::default())?)])?;
///
/// let checkpoint = Checkpoint::open(directory)?;
/// assert_eq!(checkpoint.names().collect::<Vec<_>>(), ["a", "half"]);
/// assert_eq!(checkpoint.tiling("a")?, a.tiling());
/// assert_eq!(checkpoint.read("a")?.to_tensor()?, a.to_tensor()?);
/// // One tile is read: the first.
/// assert_eq!(checkpoint.lazy("a")?.get::<f64>(&[-1, -2])?, -12.0);
/// # Ok::<(), cembra_value::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Checkpoint {
    directory: PathBuf,
    manifest: Manifest,
}

impl Checkpoint {
    /// Writes `tensors` as the checkpoint in `directory`, which is created if it does not exist. The tiles of a lazy
    /// tensor are computed and written one by one, with norms computed from their elements.
    ///
    /// An older checkpoint in the directory stays until all files of the new one are on the disk. Then the new one
    /// replaces it, and the files of the older one are removed. Tensors that are read lazily from the older checkpoint
    /// may be among `tensors`. Only one process may write to a directory at a time.
    ///
    /// # Errors
    /// If two tensors have the same name, a lazy tile cannot be computed, or a file cannot be written. Then the older checkpoint is
    /// unchanged.
    pub fn write<'t>(
        directory: impl AsRef<Path>,
        tensors: impl IntoIterator<Item = (&'t str, &'t Tiled)>,
    ) -> Result<(), Error> {
        writing::write(directory.as_ref(), &by_name(tensors)?)
    }

    /// Returns true if `directory` has a checkpoint, even if it is damaged.
    #[must_use]
    pub fn is_in(directory: impl AsRef<Path>) -> bool {
        directory.as_ref().join(names::MANIFEST).exists()
    }

    /// Opens the checkpoint in `directory`. Only its manifest is read. If a newer checkpoint replaces this one, lazy tensors that were
    /// opened before can still be read, but the checkpoint's other tensors are no longer found.
    ///
    /// # Errors
    /// If the manifest is missing, damaged or of another version, or the entry of a tensor is not valid.
    pub fn open(directory: impl AsRef<Path>) -> Result<Checkpoint, Error> {
        let directory = directory.as_ref().to_owned();
        let manifest = Manifest::read(&directory)?;
        Ok(Checkpoint { directory, manifest })
    }

    /// The names of the tensors in the checkpoint, sorted.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.manifest.tensors.keys().map(String::as_str)
    }

    /// Returns the tiling of the tensor `name`.
    ///
    /// # Errors
    /// If there is no such tensor.
    pub fn tiling(&self, name: &str) -> Result<&Tiling, Error> {
        Ok(&self.manifest.entry(name, &self.directory)?.tiling)
    }

    /// Returns the type of the elements of the tensor `name`.
    ///
    /// # Errors
    /// If there is no such tensor.
    pub fn scalar_type(&self, name: &str) -> Result<Scalar, Error> {
        Ok(self.manifest.entry(name, &self.directory)?.scalar)
    }

    /// Reads the tensor `name` with all its tiles, and compares all data with the hashes in the checkpoint.
    ///
    /// # Errors
    /// If there is no such tensor, a file is missing, damaged or exchanged, or there is no memory for the tiles.
    pub fn read(&self, name: &str) -> Result<Tiled, Error> {
        let lazy = self.lazy(name)?;
        // The lengths of the files were checked, so the tiles take no more than these.
        check_room(lazy.memory_bytes())?;
        let tiles = lazy.tiles().map(|read| Ok(read?.1)).collect::<Result<Vec<Tile>, Error>>()?;
        Ok(Tiled::stored(lazy.shape().clone(), lazy.scalar_type(), tiles))
    }

    /// Returns the tensor `name` as a lazy tensor: a tile is read when it is needed, and compared with its hash; so the tensor may be larger than
    /// memory. The list of present tiles is read now. Files stay open until the tensor is dropped.
    ///
    /// # Errors
    /// If there is no such tensor, a file is missing or does not have the length that the manifest gives, or the index of a file is damaged or
    /// exchanged.
    pub fn lazy(&self, name: &str) -> Result<Tiled, Error> {
        let entry = self.manifest.entry(name, &self.directory)?;
        let (shape, tiles) = StoredTiles::open(&self.directory, name, entry)?;
        Tiled::lazy(&shape, entry.scalar, tiles)
    }
}

impl Evaluator {
    /// Writes `tensors` as the checkpoint in `directory`, as [`Checkpoint::write`] does. If several ranks (processes or threads) share evaluations,
    /// each rank writes the tiles that it owns, so all ranks must see the directory. Any number of ranks may read the checkpoint.
    ///
    /// # Errors
    /// The errors of [`Checkpoint::write`] on any rank, returned on all ranks.
    pub fn checkpoint<'t>(
        &self,
        directory: impl AsRef<Path>,
        tensors: impl IntoIterator<Item = (&'t str, &'t Tiled)>,
    ) -> Result<(), Error> {
        let tensors = by_name(tensors)?;
        match self.workers.clone().several() {
            Some(ranks) => writing::write_by(ranks, directory.as_ref(), &tensors),
            None => writing::write(directory.as_ref(), &tensors),
        }
    }
}

/// Sorts tensors by their names.
///
/// # Errors
/// If two have one name.
fn by_name<'t>(tensors: impl IntoIterator<Item = (&'t str, &'t Tiled)>) -> Result<BTreeMap<&'t str, &'t Tiled>, Error> {
    let mut by_name = BTreeMap::new();
    for (name, tensor) in tensors {
        if by_name.insert(name, tensor).is_some() {
            let message = format!("two tensors of a checkpoint are called {}", manifest::quoted(name));
            return Err(Error::tensors(Kind::File, message).hint("give each tensor its own name"));
        }
    }
    Ok(by_name)
}
