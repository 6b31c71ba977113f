//! The folder of a code cache: opened only if it is this user's alone, read and written without ever waiting for anybody,
//! kept below a size. Entries appear whole, by renaming, and what goes wrong is no error.

use super::key::Key;
use cembra_expr::{Code, Diagnostic};
use std::fs::{self, File, Metadata};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// The largest entry that is read.
const MOST_OF_ENTRY: u64 = 1 << 30;

/// A folder that only this user can write to.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    most: u64,
    /// The bytes that files held when they were last counted, and what was written since.
    held: AtomicU64,
}

fn refused(path: &Path, why: impl std::fmt::Display) -> Diagnostic {
    Diagnostic::new(Code::CodeCache, format!("{} cannot be a code cache: {why}", path.display()))
}

impl Folder {
    pub(super) fn open(path: &Path, most: u64) -> Result<Folder, Diagnostic> {
        create(path).map_err(|e| refused(path, e))?;
        // Links are followed once, here: what is checked is what is used.
        let whole = path.canonicalize().map_err(|e| refused(path, e))?;
        check_private(&whole)?;
        let folder = Folder { path: whole, most, held: AtomicU64::new(0) };
        folder.evict();
        Ok(folder)
    }

    pub(super) fn read(&self, key: &Key) -> io::Result<Vec<u8>> {
        let file = File::open(self.path.join(key.file_name()))?;
        let size = file.metadata()?.len();
        if size > MOST_OF_ENTRY {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let mut bytes = Vec::with_capacity(size as usize + 1);
        file.take(MOST_OF_ENTRY).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Keeps an entry, if that is possible.
    pub(super) fn write(&self, key: &Key, entry: &[u8]) {
        if self.try_write(key, entry).is_ok()
            && self.held.fetch_add(entry.len() as u64, Ordering::Relaxed) + entry.len() as u64 > self.most
        {
            self.evict();
        }
    }

    fn try_write(&self, key: &Key, entry: &[u8]) -> io::Result<()> {
        let mut file = tempfile::NamedTempFile::new_in(&self.path)?;
        file.write_all(entry)?;
        file.persist(self.path.join(key.file_name()))?;
        Ok(())
    }

    /// Counts the files, and removes the oldest if there are too many bytes: to three quarters, so that not every entry that
    /// is written then is followed by a count.
    fn evict(&self) {
        let Ok(entries) = fs::read_dir(&self.path) else { return };
        let mut files: Vec<(std::time::SystemTime, u64, PathBuf)> = entries
            .filter_map(|entry| {
                let entry = entry.ok()?;
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
                // Somebody else may have removed it.
                if fs::remove_file(path).is_ok() {
                    held -= size;
                }
            }
        }
        self.held.store(held, Ordering::Relaxed);
    }
}

#[cfg(unix)]
fn create(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

#[cfg(not(unix))]
fn create(_: &Path) -> io::Result<()> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "the system has no permissions of the Unix kind"))
}

/// Nobody but this user (and the system's administrator) can put a file into the folder, or another folder in its place.
#[cfg(unix)]
fn check_private(path: &Path) -> Result<(), Diagnostic> {
    use std::os::unix::fs::MetadataExt;
    let about = |path: &Path| fs::symlink_metadata(path).map_err(|e| refused(path, e));
    let folder = about(path)?;
    if !folder.is_dir() {
        return Err(refused(path, "it is no folder"));
    }
    // A file that is made here belongs to whoever this process acts as.
    let ours = tempfile::NamedTempFile::new_in(path).and_then(|file| file.as_file().metadata());
    let ours = ours.map_err(|e| refused(path, e))?.uid();
    if folder.uid() != ours {
        return Err(refused(path, "it belongs to another user"));
    }
    if folder.mode() & 0o077 != 0 {
        return Err(refused(path, "other users can reach into it").hint("take their permissions away: `chmod 700`"));
    }
    for above in path.ancestors().skip(1) {
        let folder = about(above)?;
        // In a folder with the sticky bit, others can neither rename nor remove what is not theirs.
        let open = folder.mode() & 0o022 != 0 && folder.mode() & 0o1000 == 0;
        if open || ![0, ours].contains(&folder.uid()) {
            let why = format!("other users can put another folder in its place, in {}", above.display());
            return Err(refused(path, why));
        }
    }
    Ok(())
}

#[cfg(not(unix))]
fn check_private(path: &Path) -> Result<(), Diagnostic> {
    Err(refused(path, "the system has no permissions of the Unix kind"))
}
