//! Writes files of checkpoints under temporary names, to be renamed when they are complete. The contents of files are described in
//! `manifest.rs` and `shard.rs`.

use crate::tiled::files::refused;
use cembra_value::Error;
use std::fs;
#[cfg(unix)]
use std::fs::File;
use std::io;
use std::path::Path;
use tempfile::NamedTempFile;

/// The beginning and the end of the name of an incomplete file. Random letters are between them.
const PART: (&str, &str) = (".checkpoint-", ".part");

/// The error of a file or directory that cannot be written.
#[cold]
pub(super) fn unwritten(path: &Path, cause: &io::Error) -> Error {
    refused(path, format_args!("it cannot be written: {cause}"))
}

/// Creates a file in a directory. It is removed unless it is renamed.
///
/// # Errors
/// If nothing can be written there.
pub(super) fn part(directory: &Path) -> Result<NamedTempFile, Error> {
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    {
        // The mode of ordinary new files, which the user's mask restricts, in place of the private mode of temporary files.
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    let part = builder.prefix(PART.0).suffix(PART.1).tempfile_in(directory);
    part.map_err(|cause| unwritten(directory, &cause))
}

/// Returns true for the name of an incomplete file.
pub(super) fn is_part(name: &str) -> bool {
    name.strip_prefix(PART.0).is_some_and(|rest| rest.ends_with(PART.1))
}

/// Creates a directory, unless it exists.
///
/// # Errors
/// If it cannot be created.
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
/// If the system does not confirm it.
#[cfg(unix)]
pub(super) fn sync_directory(path: &Path) -> Result<(), Error> {
    let synced = File::open(path).and_then(|directory| directory.sync_all());
    synced.map_err(|cause| unwritten(path, &cause))
}

/// Does nothing: other systems open no directories, and do not tell when names are on the disk.
#[cfg(not(unix))]
pub(super) fn sync_directory(_: &Path) -> Result<(), Error> {
    Ok(())
}
