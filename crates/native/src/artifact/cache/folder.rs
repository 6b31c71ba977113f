//! The folder of a code cache. It is opened only if no other user can write to it, is read and written without waiting for
//! locks, and is kept below a size limit. A file appears under its name only when it is complete. A failed read or write is a
//! cache miss, not an error.

use super::key::Key;
use cembra_value::{Code, Diagnostic};
use std::fs::{self, File, Metadata};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// The prefix and the suffix of the names of incomplete files. Random letters are between them.
const TEMPORARY_NAME: (&str, &str) = (".cembra-", ".part");

/// A folder for cached machine code that no other user can write to.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    most: u64,
    /// The bytes of all files when they were last counted, plus the bytes written since.
    held: AtomicU64,
}

fn refused(path: &Path, why: impl std::fmt::Display) -> Diagnostic {
    Diagnostic::new(Code::CodeCache, format!("{} cannot be a code cache: {why}", path.display()))
}

impl Folder {
    /// Opens the folder at `path`, and creates it if it does not exist. `most` is the maximum size of all files in the folder
    /// together, in bytes. Fails if other users can write to the folder.
    pub(super) fn open(path: &Path, most: u64) -> Result<Folder, Diagnostic> {
        create(path).map_err(|e| refused(path, e))?;
        // Links are resolved once, here, so that the folder which is checked is the folder which is used.
        let whole = path.canonicalize().map_err(|e| refused(path, e))?;
        check_private(&whole)?;
        let folder = Folder { path: whole, most, held: AtomicU64::new(0) };
        folder.evict();
        Ok(folder)
    }

    /// Reads the cache entry of `key`. Fails if the folder has no entry of this key, or if the entry has more than
    /// `most` bytes.
    pub(super) fn read(&self, key: &Key, most: u64) -> io::Result<Vec<u8>> {
        let path = self.path.join(key.file_name());
        // Checked first, because opening something other than a file could block forever.
        let about = fs::symlink_metadata(&path)?;
        if !about.is_file() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let too_large = || io::Error::from(io::ErrorKind::FileTooLarge);
        let size = usize::try_from(about.len()).ok().filter(|_| about.len() <= most).ok_or_else(too_large)?;
        let mut bytes = Vec::with_capacity(size + 1);
        // The file may have grown since.
        File::open(&path)?.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > most { Err(too_large()) } else { Ok(bytes) }
    }

    /// Writes `entry` as the cache entry of `key`. A failure is ignored: the code will be compiled again when it is needed.
    pub(super) fn write(&self, key: &Key, entry: &[u8]) {
        if self.try_write(key, entry).is_ok()
            && self.held.fetch_add(entry.len() as u64, Ordering::Relaxed) + entry.len() as u64 > self.most
        {
            self.evict();
        }
    }

    fn try_write(&self, key: &Key, entry: &[u8]) -> io::Result<()> {
        let mut file =
            tempfile::Builder::new().prefix(TEMPORARY_NAME.0).suffix(TEMPORARY_NAME.1).tempfile_in(&self.path)?;
        file.write_all(entry)?;
        file.persist(self.path.join(key.file_name()))?;
        Ok(())
    }

    /// Counts the bytes of all entries. If there are too many, removes the oldest entries until three quarters of the limit
    /// are left, so that not every later write causes a count. Other files in the folder are not touched.
    fn evict(&self) {
        let Ok(entries) = fs::read_dir(&self.path) else { return };
        let mut files: Vec<(std::time::SystemTime, u64, PathBuf)> = entries
            .filter_map(|entry| {
                let entry = entry.ok().filter(|entry| entry.file_name().to_str().is_some_and(is_of_cache))?;
                let about = entry.metadata().ok().filter(Metadata::is_file)?;
                Some((about.modified().ok()?, about.len(), entry.path()))
            })
            .collect();
        let mut held: u64 = files.iter().map(|(_, size, _)| size).sum();
        if held > self.most {
            files.sort_unstable();
            for (_, size, path) in files {
                if held <= self.most / 4 * 3 {
                    break;
                }
                // Another process may have removed it.
                if begins_as_entry(&path) && fs::remove_file(path).is_ok() {
                    held -= size;
                }
            }
        }
        self.held.store(held, Ordering::Relaxed);
    }
}

/// Returns true if `name` is the name of a cache entry, complete or not.
fn is_of_cache(name: &str) -> bool {
    let part = name.strip_prefix(TEMPORARY_NAME.0).is_some_and(|rest| rest.ends_with(TEMPORARY_NAME.1));
    part || Key::is_file_name(name)
}

/// Returns true if the file's bytes are the start of an entry, or a part of that start.
fn begins_as_entry(path: &Path) -> bool {
    let mut start = Vec::with_capacity(Key::MAGIC.len());
    let read = File::open(path).and_then(|file| file.take(Key::MAGIC.len() as u64).read_to_end(&mut start));
    read.is_ok() && Key::MAGIC.starts_with(&start)
}

#[cfg(unix)]
fn create(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

#[cfg(not(unix))]
fn create(_: &Path) -> io::Result<()> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "the operating system must have file permissions as in Unix"))
}

/// Checks that only this user (and the system's administrator) can put a file into the folder, or replace the folder.
#[cfg(unix)]
fn check_private(path: &Path) -> Result<(), Diagnostic> {
    use std::os::unix::fs::MetadataExt;
    let about = |path: &Path| fs::symlink_metadata(path).map_err(|e| refused(path, e));
    let folder = about(path)?;
    if !folder.is_dir() {
        return Err(refused(path, "the path is not a folder"));
    }
    // A file that is created here belongs to the user that this process acts as.
    let ours = tempfile::NamedTempFile::new_in(path).and_then(|file| file.as_file().metadata());
    let ours = ours.map_err(|e| refused(path, e))?.uid();
    if folder.uid() != ours {
        return Err(refused(path, "the folder belongs to another user"));
    }
    if folder.mode() & 0o077 != 0 {
        return Err(refused(path, "other users can access the folder")
            .hint("run `chmod 700` on the folder to remove their permissions"));
    }
    for above in path.ancestors().skip(1) {
        let folder = about(above)?;
        // In a folder with the sticky bit, users cannot rename or remove files of others.
        let open = folder.mode() & 0o022 != 0 && folder.mode() & 0o1000 == 0;
        if open || ![0, ours].contains(&folder.uid()) {
            let why = format!("other users can replace the folder, because they can write to {}", above.display());
            return Err(refused(path, why));
        }
    }
    Ok(())
}

#[cfg(not(unix))]
fn check_private(path: &Path) -> Result<(), Diagnostic> {
    Err(refused(path, "the operating system must have file permissions as in Unix"))
}
