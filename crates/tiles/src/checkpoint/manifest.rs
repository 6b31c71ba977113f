//! The manifest of a checkpoint, `manifest.json`: it lists the tensors, their tilings, and the shard files that contain their tiles.
//!
//! ```json
//! {
//! "format": "cembra-tiles",
//! "version": 1,
//! "tensors": [
//! {"axes":[{"lower":-3,"size":4,"upper":5},{"boundaries":[0,3,3,7]}],"name":"h","shards":[{"bytes":248,"file":"h-1f..e0.0","index":"1f..9c"}],"type":"f64"}
//! ],
//! "blake3": "70..3b"
//! }
//! ```
//!
//! An axis whose tiles all have one size, except that the last may be shorter, has `lower`, `size` and `upper` instead of `boundaries`. `index` is
//! the hash of a shard's index, which has the hashes of the shard's tiles (`shard.rs`). So a shard whose hashes agree is complete. `blake3` is the
//! hash of all entries of `tensors`, each written as compact JSON with sorted keys and followed by a line feed.

use super::names::{MANIFEST, is_shard};
use crate::tiled::files::{InputFile, refused};
use crate::{Tiling, Tiling1};
use blake3::{Hash, Hasher};
use cembra_runtime::{Excerpt, Scalar};
use cembra_value::Error;
use cembra_value::tensor::{TensorErrorKind as Kind, check_room};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// The value of the field `format`, the first field of a manifest.
const FORMAT: &str = "cembra-tiles";
/// The version of manifests that is written, and the only one that can be read.
const VERSION: u64 = 1;

/// The contents of a manifest: an entry for each tensor of the checkpoint, by name.
#[derive(Clone, Default, Debug)]
pub(super) struct Manifest {
    pub(super) tensors: BTreeMap<String, Entry>,
}

/// The entry of one tensor in a checkpoint's manifest.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) tiling: Tiling,
    pub(super) scalar: Scalar,
    /// The shard files with the tensor's tiles, one for each rank (process) that wrote some of them.
    pub(super) shards: Vec<Shard>,
}

/// The entry of one shard file in a checkpoint's manifest.
#[derive(Clone, Debug)]
pub(super) struct Shard {
    pub(super) file: String,
    pub(super) bytes: u64,
    pub(super) index: Hash,
}

/// The fields of a manifest that all versions have. They are read first, to decide whether the other fields can be
/// read.
#[derive(Deserialize)]
struct Header {
    format: Option<String>,
    version: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Whole {
    #[serde(rename = "format")]
    _format: String,
    #[serde(rename = "version")]
    _version: u64,
    tensors: Vec<TensorLine>,
    blake3: String,
}

// The fields of these lines are in the order of their names, in which they are hashed.

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TensorLine {
    axes: Vec<AxisLine>,
    name: String,
    shards: Vec<ShardLine>,
    #[serde(rename = "type")]
    scalar: String,
}

/// An axis of a tiling in the manifest: either its list of `boundaries`, or the three fields `lower`, `size` and `upper`.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct AxisLine {
    #[serde(skip_serializing_if = "Option::is_none")]
    boundaries: Option<Vec<i64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lower: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    upper: Option<i64>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ShardLine {
    bytes: u64,
    file: String,
    index: String,
}

impl AxisLine {
    fn of(axis: &Tiling1) -> AxisLine {
        let size = axis.range(0).map(|first| first.end.abs_diff(first.start)).filter(|size| *size > 0);
        // Equal tilings have one form, so comparing tells whether this axis is uniform.
        let is_uniform = |size: &u64| uniform(axis.lower(), axis.upper(), *size).is_ok_and(|uniform| uniform == *axis);
        match size.filter(is_uniform) {
            None => AxisLine { boundaries: Some(axis.boundaries().collect()), ..AxisLine::default() },
            size => AxisLine { lower: Some(axis.lower()), size, upper: Some(axis.upper()), boundaries: None },
        }
    }

    fn tiling(self) -> Result<Tiling1, String> {
        let made = match self {
            AxisLine { boundaries: Some(boundaries), lower: None, size: None, upper: None } => Tiling1::new(boundaries),
            AxisLine { boundaries: None, lower: Some(lower), size: Some(size), upper: Some(upper) } => {
                if upper < lower {
                    return Err(format!("an axis ends at {upper}, before it begins at {lower}"));
                }
                uniform(lower, upper, size)
            }
            _ => return Err("an axis must have `boundaries`, or `lower`, `size` and `upper`".to_owned()),
        };
        made.map_err(|error| error.to_string())
    }
}

/// Cuts the range from `lower` to `upper` into tiles of one size. `upper` must not be below `lower`.
fn uniform(lower: i64, upper: i64, size: u64) -> Result<Tiling1, Error> {
    Tiling1::blocked(upper.abs_diff(lower), size)?.rebased(lower)
}

impl TensorLine {
    fn of(name: &str, entry: &Entry) -> TensorLine {
        let shard = |shard: &Shard| ShardLine {
            bytes: shard.bytes,
            file: shard.file.clone(),
            index: shard.index.to_hex().as_str().to_owned(),
        };
        TensorLine {
            axes: entry.tiling.axes().iter().map(AxisLine::of).collect(),
            name: name.to_owned(),
            shards: entry.shards.iter().map(shard).collect(),
            scalar: entry.scalar.short_name().to_owned(),
        }
    }

    fn entry(self) -> Result<(String, Entry), String> {
        let scalar = match &*self.scalar {
            "f32" => Scalar::Float32,
            "f64" => Scalar::Float64,
            other => return Err(format!("tiles cannot have elements of type {}", quoted(other))),
        };
        let axes = self.axes.into_iter().map(AxisLine::tiling).collect::<Result<Vec<Tiling1>, String>>()?;
        let tiling = Tiling::new(axes).map_err(|error| error.to_string())?;
        let shards = self.shards.into_iter().map(ShardLine::shard).collect::<Result<Vec<Shard>, String>>()?;
        Ok((self.name, Entry { tiling, scalar, shards }))
    }

    /// Adds the line, as compact JSON with a line feed after it, to the hash of the manifest.
    fn hash(&self, hasher: &mut Hasher) {
        // Writing to a hash cannot fail, and these fields always have a form.
        let _never_fails = serde_json::to_writer(&mut *hasher, self);
        hasher.update(b"\n");
    }
}

impl ShardLine {
    fn shard(self) -> Result<Shard, String> {
        let ShardLine { bytes, file, index } = self;
        if !is_shard(&file) {
            return Err(format!("{} is not the name of a shard", quoted(&file)));
        }
        let index = Hash::from_hex(&index).map_err(|_| format!("{} is not a hash", quoted(&index)))?;
        Ok(Shard { file, bytes, index })
    }
}

impl Entry {
    /// Returns a hash of a tensor's name, type and tiling, but not of its tiles: the hash of the tensor's line in the manifest, with an empty list of
    /// shards, and of a line feed. Each shard begins with this hash, so that a shard of another tensor is recognized.
    pub(super) fn identity(&self, name: &str) -> Hash {
        let mut hasher = Hasher::new();
        TensorLine { shards: Vec::new(), ..TensorLine::of(name, self) }.hash(&mut hasher);
        hasher.finalize()
    }
}

impl Manifest {
    /// Formats the manifest as the bytes of its file.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut text = format!("{{\n\"format\": \"{FORMAT}\",\n\"version\": {VERSION},\n\"tensors\": [").into_bytes();
        let mut hasher = Hasher::new();
        for (at, (name, entry)) in self.tensors.iter().enumerate() {
            let line = TensorLine::of(name, entry);
            line.hash(&mut hasher);
            text.extend_from_slice(if at > 0 { b",\n" } else { b"\n" });
            // Writing to memory cannot fail.
            let _never_fails = serde_json::to_writer(&mut text, &line);
        }
        text.extend_from_slice(format!("\n],\n\"blake3\": \"{}\"\n}}\n", hasher.finalize().to_hex()).as_bytes());
        text
    }

    /// Merges the manifest `other` into this one. A tensor that is in both manifests gets the shard files of both entries.
    pub(super) fn add(&mut self, other: Manifest) {
        for (name, entry) in other.tensors {
            match self.tensors.get_mut(&name) {
                Some(known) => known.shards.extend(entry.shards),
                None => {
                    self.tensors.insert(name, entry);
                }
            }
        }
    }

    /// Reads the manifest of the checkpoint in `directory`.
    ///
    /// # Errors
    /// If the manifest is missing, damaged or of another version, or the entry of a tensor is not valid.
    pub(super) fn read(directory: &Path) -> Result<Manifest, Error> {
        let file = InputFile::open(directory.join(MANIFEST))?;
        let bytes = usize::try_from(file.bytes).unwrap_or(usize::MAX);
        check_room(bytes)?;
        let mut text = vec![0; bytes];
        file.read_exact_at(&mut text, 0)?;
        Manifest::of_bytes(&text).map_err(|what| refused(&file.path, what))
    }

    /// Parses the bytes of a manifest. The error is a description of the flaw, for a message.
    pub(super) fn of_bytes(text: &[u8]) -> Result<Manifest, String> {
        let no_manifest = |error: serde_json::Error| format!("the file is not a manifest of a checkpoint: {error}");
        let header: Header = serde_json::from_slice(text).map_err(no_manifest)?;
        if header.format.as_deref() != Some(FORMAT) {
            return Err(format!("the file is not a manifest of a checkpoint, because its format is not `{FORMAT}`"));
        }
        match header.version {
            Some(VERSION) => {}
            Some(other) => {
                return Err(format!("the file has version {other}, but this cembra reads version {VERSION}"));
            }
            None => return Err("the file has no version".to_owned()),
        }
        let Whole { tensors, blake3, .. } = serde_json::from_slice(text).map_err(no_manifest)?;
        let mut hasher = Hasher::new();
        let mut manifest = Manifest::default();
        for line in tensors {
            line.hash(&mut hasher);
            let name = quoted(&line.name);
            let (key, entry) = line.entry().map_err(|what| format!("tensor {name}: {what}"))?;
            if manifest.tensors.insert(key, entry).is_some() {
                return Err(format!("tensor {name} is in the manifest twice"));
            }
        }
        let hash = Hash::from_hex(&blake3).map_err(|_| format!("{} is not a hash", quoted(&blake3)))?;
        if hash != hasher.finalize() {
            return Err("the file was changed: its hash differs".to_owned());
        }
        Ok(manifest)
    }

    /// Returns the entry of the tensor `name`.
    ///
    /// # Errors
    /// If there is no such tensor.
    pub(super) fn entry(&self, name: &str, directory: &Path) -> Result<&Entry, Error> {
        self.tensors.get(name).ok_or_else(|| {
            let message = format!("{}: the checkpoint has no tensor {}", directory.display(), quoted(name));
            Error::tensors(Kind::UnknownName, message)
        })
    }
}

/// Shortens and quotes a name or hash from a manifest, for a message.
pub(super) fn quoted(text: &str) -> String {
    format!("`{}`", Excerpt::of_value(&text.escape_debug()))
}
