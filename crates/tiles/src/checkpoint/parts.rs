//! How files of checkpoints are written: beside their place, to be renamed. What the bytes of files mean is said in `manifest.rs` and `shard.rs`.

use crate::tiled::files::refused;
use cembra_value::Error;
use std::fs;
#[cfg(unix)]
use std::fs::File;
use std::io;
use std::path::Path;
use tempfile::NamedTempFile;

/// What files are called that are not whole yet, around letters that differ.
const PART: (&str, &str) = (".checkpoint-", ".part");

/// A file or directory that the system does not write.
#[cold]
pub(super) fn unwritten(path: &Path, cause: &io::Error) -> Error {
    refused(path, format_args!("it cannot be written: {cause}"))
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
