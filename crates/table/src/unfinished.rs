//! Files that are being written, in the folder of their final path. On Linux, such a file has no name (`O_TMPFILE`). Where the system or
//! the file system does not support that, the file has a temporary name, and is removed if a signal ends the process.

use std::fs::File;
use std::io;
use std::path::Path;
use tempfile::NamedTempFile;

/// The prefix of temporary file names.
const PREFIX: &str = ".cembra-";

/// A file that is being written, and that moves to its path once it is complete. A file that is dropped before it is complete is removed.
#[derive(Debug)]
pub struct PendingFile(Kind);

/// The two kinds of files under construction.
#[derive(Debug)]
enum Kind {
    #[cfg(target_os = "linux")]
    Nameless(File),
    Named(NamedTempFile),
}

impl PendingFile {
    /// Creates an unfinished file in `folder`, with the usual permissions of a new file.
    ///
    /// # Errors
    /// If no file can be created in `folder`.
    pub fn create(folder: &Path) -> io::Result<PendingFile> {
        #[cfg(target_os = "linux")]
        if let Some(file) = nameless(folder) {
            return Ok(PendingFile(Kind::Nameless(file)));
        }
        PendingFile::named(folder)
    }

    /// Creates an unfinished file with a temporary name in `folder`, as on file systems that do not support files without a name.
    ///
    /// # Errors
    /// If no file can be created in `folder`.
    pub fn named(folder: &Path) -> io::Result<PendingFile> {
        let mut builder = tempfile::Builder::new();
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            builder.permissions(std::fs::Permissions::from_mode(0o666));
        }
        let file = builder.prefix(PREFIX).tempfile_in(folder)?;
        #[cfg(unix)]
        ended::remove(file.path());
        Ok(PendingFile(Kind::Named(file)))
    }

    /// The unfinished file, open for reading and writing.
    pub fn file(&self) -> &File {
        match &self.0 {
            #[cfg(target_os = "linux")]
            Kind::Nameless(file) => file,
            Kind::Named(file) => file.as_file(),
        }
    }

    /// The unfinished file, for writing.
    pub fn file_mut(&mut self) -> &mut File {
        match &mut self.0 {
            #[cfg(target_os = "linux")]
            Kind::Nameless(file) => file,
            Kind::Named(file) => file.as_file_mut(),
        }
    }

    /// Moves the finished file to the path `place`, where it replaces any other file.
    ///
    /// # Errors
    /// If the operating system cannot move the file.
    pub fn finish(self, place: &Path) -> io::Result<()> {
        match self.0 {
            #[cfg(target_os = "linux")]
            Kind::Nameless(file) => linked(&file, place),
            Kind::Named(file) => file.persist(place).map(|_| ()).map_err(|failed| failed.error),
        }
    }
}

/// Removal of temporary files when a signal ends the process.
#[cfg(unix)]
mod ended {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    use signal_hook::iterator::Signals;
    use signal_hook::low_level::emulate_default_handler;
    use std::path::{Path, PathBuf};
    use std::sync::{Mutex, Once, PoisonError};

    /// The temporary files. Files that no longer exist are dropped when one is added, so there are at most as many as are written at the
    /// same time.
    static FILES: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

    /// The signals that the process ignores, for example under `nohup`, as one bit per signal. No handler is installed
    /// for them, so they stay ignored. 0 if the system does not list them.
    fn ignored() -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let bits = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        bits.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok()).unwrap_or(0)
    }

    /// Registers `file` to be removed when a signal ends the process, if it still has its temporary name. No other process uses such a name
    /// by chance.
    pub(super) fn remove(file: &Path) {
        static WATCHED: Once = Once::new();
        let mut files = FILES.lock().unwrap_or_else(PoisonError::into_inner);
        files.retain(|file| file.exists());
        files.push(file.to_owned());
        drop(files);
        WATCHED.call_once(|| {
            let ignored = ignored();
            let watched = [SIGHUP, SIGINT, SIGTERM].into_iter().filter(|signal| ignored >> (signal - 1) & 1 == 0);
            // If no handler can be installed, the file stays.
            let Ok(mut signals) = Signals::new(watched) else { return };
            std::thread::spawn(move || {
                for signal in signals.forever() {
                    let files = FILES.lock().unwrap_or_else(PoisonError::into_inner);
                    for file in files.iter() {
                        let _ = std::fs::remove_file(file);
                    }
                    let _ = emulate_default_handler(signal);
                }
            });
        });
    }
}

/// Makes a file without a name in `folder`; `None` if the file system does not support it, or if the file could not get a name later.
#[cfg(target_os = "linux")]
fn nameless(folder: &Path) -> Option<File> {
    use rustix::fs::{CWD, Mode, OFlags, openat};
    let mode = Mode::from_raw_mode(0o666);
    let file = openat(CWD, folder, OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC, mode).ok()?;
    let file = File::from(file);
    // The file is given its name through this link.
    std::fs::metadata(path_of(&file)).is_ok().then_some(file)
}

/// The path of the system's link to an open file.
#[cfg(target_os = "linux")]
fn path_of(file: &File) -> std::path::PathBuf {
    use std::os::fd::AsRawFd;
    format!("/proc/self/fd/{}", file.as_raw_fd()).into()
}

/// Gives a file without a name the path `place`. A link does not replace a file, so an existing file is replaced by a rename.
#[cfg(target_os = "linux")]
fn linked(file: &File, place: &Path) -> io::Result<()> {
    use rustix::fs::{AtFlags, CWD, linkat};
    let link = |path: &Path| -> io::Result<()> { Ok(linkat(CWD, path_of(file), CWD, path, AtFlags::SYMLINK_FOLLOW)?) };
    match link(place) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let folder = place.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
            let made = tempfile::Builder::new().prefix(PREFIX).make_in(folder, link)?;
            made.into_temp_path().persist(place).map_err(|failed| failed.error)
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Write;

    #[test]
    fn a_file_with_a_name_takes_its_place_too() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = folder.path().join("out");
        for text in ["one", "two"] {
            let mut file = PendingFile::named(folder.path()).expect("a file");
            file.file_mut().write_all(text.as_bytes()).expect("written");
            assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1 + usize::from(text == "two"));
            file.finish(&place).expect("in its place");
            assert_eq!(fs::read_to_string(&place).expect("a text"), text);
        }
        drop(PendingFile::named(folder.path()).expect("a file"));
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1);
    }
}
