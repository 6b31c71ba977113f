//! Output of results: to standard output, to standard error, or to a file that appears at its path only when it is complete. Where the system
//! supports it, the file has no name until it is complete, so that nothing remains of an incomplete file however the process ends. On any other
//! system the file has a temporary name in the same folder, and is removed if a signal ends the process. Moving the complete file to its path is
//! the last step, so a failure leaves the previous file unchanged.

use super::error::DataError;
use crate::unfinished::PendingFile;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A destination for results. A file that is dropped without [`Output::commit`] never appears at its path.
pub enum Output {
    /// The results go to the standard output of the process.
    Stdout(io::Stdout),
    /// The results go to the standard error of the process.
    Stderr(io::Stderr),
    /// The results go to a regular file, which is not at its path yet.
    File {
        /// The file while it is written.
        unfinished: PendingFile,
        /// The path that the file gets when it is complete.
        place: PathBuf,
    },
    /// The results go to a pipe or a device. It is opened and written directly, because a new file must not replace it.
    Special(File),
}

impl Output {
    /// Returns the output to standard output.
    pub fn stdout() -> Self {
        Output::Stdout(io::stdout())
    }

    /// Returns the output to standard error, for rows that failed.
    pub fn stderr() -> Self {
        Output::Stderr(io::stderr())
    }

    /// Begins a file of results for `path`. If the path is a symbolic link, its target is written and the link stays.
    ///
    /// # Errors
    /// If no file can be created at `path`.
    pub fn create(path: &Path) -> Result<Self, DataError> {
        Output::try_create(path)
            .map_err(|cause| DataError::io("cannot write here", cause).in_file(&path.display().to_string()))
    }

    fn try_create(path: &Path) -> io::Result<Self> {
        let before = fs::metadata(path).ok();
        if before.as_ref().is_some_and(fs::Metadata::is_dir) {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        if before.as_ref().is_some_and(|there| !there.is_file()) {
            return Ok(Output::Special(File::options().write(true).open(path)?));
        }
        let place = if before.is_some() { fs::canonicalize(path)? } else { path.to_owned() };
        let folder = place.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        // Checked first, because later messages would name a temporary file that the user does not know.
        fs::metadata(folder)?;
        let unfinished = PendingFile::create(folder)?;
        if let Some(there) = before {
            unfinished.file().set_permissions(there.permissions())?;
        }
        Ok(Output::File { unfinished, place })
    }

    /// The file that the results are written to, if it can be written at any position; else `None`.
    pub fn file(&mut self) -> Option<&mut File> {
        match self {
            Output::File { unfinished, .. } => Some(unfinished.file_mut()),
            Output::Stdout(_) | Output::Stderr(_) | Output::Special(_) => None,
        }
    }

    fn writer(&mut self) -> &mut dyn Write {
        match self {
            Output::Stdout(out) => out,
            Output::Stderr(out) => out,
            Output::File { unfinished, .. } => unfinished.file_mut(),
            Output::Special(file) => file,
        }
    }

    /// Moves the file of results to its path. All results must have been written before.
    ///
    /// # Errors
    /// If the last bytes cannot be written, or the file cannot be renamed.
    pub fn commit(mut self) -> Result<(), DataError> {
        let flushed = self.flush();
        flushed.map_err(|cause| DataError::io("cannot write the results", cause))?;
        match self {
            Output::Stdout(_) | Output::Stderr(_) | Output::Special(_) => Ok(()),
            Output::File { unfinished, place } => unfinished.finish(&place).map_err(|cause| {
                DataError::io("cannot move the results to their file", cause).in_file(&place.display().to_string())
            }),
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer().flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).expect("the folder is there");
        let mut names: Vec<_> =
            entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_appears_only_when_it_is_whole() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("out.csv");
        fs::write(&path, "before").expect("written");
        let mut dropped = Output::create(&path).expect("created");
        dropped.write_all(b"half").expect("written");
        drop(dropped);
        assert_eq!(names(folder.path()), ["out.csv"]);
        assert_eq!(fs::read_to_string(&path).expect("read"), "before");

        let mut whole = Output::create(&path).expect("created");
        whole.write_all(b"after").expect("written");
        assert_eq!(fs::read_to_string(&path).expect("read"), "before");
        whole.commit().expect("committed");
        assert_eq!(fs::read_to_string(&path).expect("read"), "after");
        assert_eq!(names(folder.path()), ["out.csv"]);
    }

    #[test]
    fn what_cannot_be_written_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("none/out.csv");
        let error = Output::create(&path).err().expect("there is no such folder");
        assert_eq!(error.code().as_str(), "io");
        assert_eq!(error.file(), path.to_str());
        assert!(Output::create(folder.path()).is_err(), "a folder is no file");
    }

    #[cfg(unix)]
    #[test]
    fn links_devices_and_modes_stay_what_they_are() {
        use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
        let folder = tempfile::tempdir().expect("a folder");
        let (target, link) = (folder.path().join("target"), folder.path().join("link"));
        fs::write(&target, "before").expect("written");
        fs::set_permissions(&target, fs::Permissions::from_mode(0o640)).expect("set");
        symlink(&target, &link).expect("linked");
        let mut output = Output::create(&link).expect("created");
        output.write_all(b"after").expect("written");
        output.commit().expect("committed");
        assert!(fs::symlink_metadata(&link).expect("there").is_symlink());
        assert_eq!(fs::read_to_string(&target).expect("read"), "after");
        assert_eq!(fs::metadata(&target).expect("there").permissions().mode() & 0o777, 0o640);

        // Not committed: a renaming over the device would be the very accident this test is about.
        let null = Output::create(Path::new("/dev/null")).expect("opened");
        assert!(matches!(null, Output::Special(_)));
        assert!(fs::metadata("/dev/null").expect("there").file_type().is_char_device());
    }
}
