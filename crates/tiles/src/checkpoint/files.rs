//! The files of checkpoints: read at positions, written beside their place and renamed. Errors name the file. What the bytes of files mean is
//! said in `manifest.rs` and `shard.rs`.

#![deny(clippy::arithmetic_side_effects)]

use cembra_value::Error;
use cembra_value::tensor::TensorErrorKind as Kind;
use std::fmt::Display;
use std::fs::{self, File, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// What files are called that are not whole yet, around letters that differ.
const PART: (&str, &str) = (".checkpoint-", ".part");

/// A file or directory that is damaged, or that cannot be read or written.
#[cold]
pub(super) fn refused(path: &Path, what: impl Display) -> Error {
    Error::tensors(Kind::File, format!("{}: {what}", path.display()))
}

/// A file or directory that the system does not read.
#[cold]
pub(super) fn unread(path: &Path, cause: &io::Error) -> Error {
    match cause.kind() {
        io::ErrorKind::NotFound => refused(path, "there is no such file"),
        _ => refused(path, format_args!("it cannot be read: {cause}")),
    }
}

/// A file or directory that the system does not write.
#[cold]
pub(super) fn unwritten(path: &Path, cause: &io::Error) -> Error {
    refused(path, format_args!("it cannot be written: {cause}"))
}

/// A file that is read.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) path: PathBuf,
    /// How many bytes it had when it was opened.
    pub(super) bytes: u64,
    file: File,
}

impl Opened {
    /// Opens a file.
    ///
    /// # Errors
    /// There is none, it is a directory, a pipe or a device, or it cannot be read.
    pub(super) fn open(path: PathBuf) -> Result<Opened, Error> {
        // Looked at first: to open a pipe could take for ever.
        let about = |found: io::Result<Metadata>| match found {
            Ok(about) if about.is_file() => Ok(about.len()),
            Ok(_) => Err(refused(&path, "it is no file")),
            Err(cause) => Err(unread(&path, &cause)),
        };
        about(fs::metadata(&path))?;
        let file = File::open(&path).map_err(|cause| unread(&path, &cause))?;
        let bytes = about(file.metadata())?;
        Ok(Opened { path, bytes, file })
    }

    /// Reads as many bytes as there is room for, from a position on. Several threads may read at once.
    ///
    /// # Errors
    /// The file ends before, or cannot be read.
    pub(super) fn read_exact_at(&self, bytes: &mut [u8], position: u64) -> Result<(), Error> {
        let (mut rest, mut at) = (bytes, position);
        while !rest.is_empty() {
            match read_at(&self.file, rest, at) {
                Ok(0) => return Err(refused(&self.path, format_args!("it ends behind {at} bytes"))),
                Ok(count) => {
                    rest = rest.get_mut(count..).unwrap_or_default();
                    at = at.saturating_add(count as u64);
                }
                Err(cause) if cause.kind() == io::ErrorKind::Interrupted => {}
                Err(cause) => return Err(unread(&self.path, &cause)),
            }
        }
        Ok(())
    }
}

/// Reads some bytes from a position on, wherever the file was read before.
#[cfg(unix)]
fn read_at(file: &File, bytes: &mut [u8], position: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, bytes, position)
}

#[cfg(windows)]
fn read_at(file: &File, bytes: &mut [u8], position: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, bytes, position)
}

#[cfg(not(any(unix, windows)))]
fn read_at(_: &File, _: &mut [u8], _: u64) -> io::Result<usize> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "the system reads no files at positions"))
}

/// A new file of a directory, which is removed unless it is renamed.
///
/// # Errors
/// Nothing can be written there.
pub(super) fn part(directory: &Path) -> Result<NamedTempFile, Error> {
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    {
        // The mode a new file gets, which the user's mask restricts; not the private one of temporary files.
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    let part = builder.prefix(PART.0).suffix(PART.1).tempfile_in(directory);
    part.map_err(|cause| unwritten(directory, &cause))
}

/// True for the name of a file that is not whole.
pub(super) fn is_part(name: &str) -> bool {
    name.strip_prefix(PART.0).is_some_and(|rest| rest.ends_with(PART.1))
}

/// Makes a directory, unless it is there.
///
/// # Errors
/// It cannot be made.
pub(super) fn create_directory(path: &Path) -> Result<(), Error> {
    if path.is_dir() {
        return Ok(());
    }
    fs::create_dir_all(path).map_err(|cause| unwritten(path, &cause))?;
    let above = path.parent().filter(|above| !above.as_os_str().is_empty());
    sync_directory(above.unwrap_or(Path::new(".")))
}

/// Waits until the names of a directory are on the disk.
///
/// # Errors
/// The system does not say so.
#[cfg(unix)]
pub(super) fn sync_directory(path: &Path) -> Result<(), Error> {
    let synced = File::open(path).and_then(|directory| directory.sync_all());
    synced.map_err(|cause| unwritten(path, &cause))
}

/// Other systems open no directories, and say nothing of when names are on the disk.
#[cfg(not(unix))]
pub(super) fn sync_directory(_: &Path) -> Result<(), Error> {
    Ok(())
}
