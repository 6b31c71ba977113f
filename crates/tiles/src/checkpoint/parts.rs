//! Temporary files and directories for writing a checkpoint: its files have temporary names until they are complete,
//! and are then renamed. `manifest.rs` and `shard.rs` describe the contents of files.

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

/// Returns the error for a file or directory that cannot be written.
#[cold]
pub(super) fn unwritten(path: &Path, cause: &io::Error) -> Error {
    refused(path, format_args!("the file cannot be written: {cause}"))
}

/// Creates a temporary file in `directory`. The file is removed when it is dropped, unless it was renamed before.
///
/// # Errors
/// If the file cannot be created.
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

/// Returns true if `name` is the temporary name of an incomplete file.
pub(super) fn is_part(name: &str) -> bool {
    name.strip_prefix(PART.0).is_some_and(|rest| rest.ends_with(PART.1))
}

/// Creates the directory `path`, unless it exists.
///
/// # Errors
/// If the directory cannot be created.
pub(super) fn create_directory(path: &Path) -> Result<(), Error> {
    if path.is_dir() {
        return Ok(());
    }
    fs::create_dir_all(path).map_err(|cause| unwritten(path, &cause))?;
    let above = path.parent().filter(|above| !above.as_os_str().is_empty());
    sync_directory(above.unwrap_or(Path::new(".")))
}

/// Waits until the directory's file names are stored on the disk.
///
/// # Errors
/// If the directory cannot be opened, or the system does not confirm that the names are stored.
#[cfg(unix)]
pub(super) fn sync_directory(path: &Path) -> Result<(), Error> {
    let synced = File::open(path).and_then(|directory| directory.sync_all());
    synced.map_err(|cause| unwritten(path, &cause))
}

/// Does nothing: systems other than Unix cannot open directories, and do not tell when file names are on the disk.
#[cfg(not(unix))]
pub(super) fn sync_directory(_: &Path) -> Result<(), Error> {
    Ok(())
}
