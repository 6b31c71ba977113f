//! Finds the files that a model's text names with `use` and `table`, in a folder or among texts in memory.

use crate::model::text_file::{read_text, without_mark};
use cembra_expr::{Resolver, UsedFile};
use std::collections::BTreeMap;
use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// A [`Resolver`] for [`Sources::gather`](crate::program::Sources::gather) that finds files in a folder and its subfolders. A file is named by its path, and
/// names in it are relative to its own folder.
///
/// Names that lead out of the folder (`../secret.cem`, `/etc/passwd`) are rejected, and so are file system links that lead out of it. Links within
/// the folder are followed.
///
/// ```
/// use cembra::operators::Registry;
/// use cembra::program::{Folder, Sources};
/// use cembra::{Limits, Model};
///
/// let folder = tempfile::tempdir()?;
/// std::fs::write(folder.path().join("tax.cem"), "let vat = 0.5")?;
/// let limits = Limits::default();
/// let files = Folder::new(folder.path(), limits.source_bytes);
/// let sources = Sources::gather("price.cem", "use \"tax.cem\"; 2.0 * vat", &limits, &files);
/// assert!(Model::parse_sources(sources, Registry::standard(), &limits).is_ok());
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Folder {
    path: PathBuf,
    most_bytes: usize,
}

impl Folder {
    /// Returns a resolver for the files in the folder `path`. Of a file with more than `most_bytes` bytes, the resolver reads only enough to see that
    /// the file is too large.
    #[must_use]
    pub fn new(path: &Path, most_bytes: usize) -> Folder {
        Folder { path: path.to_owned(), most_bytes }
    }

    /// Returns the path that `name` denotes in the text called `from`. The file need not exist.
    ///
    /// ```
    /// use cembra::program::Folder;
    /// use std::path::Path;
    ///
    /// let folder = Folder::new(Path::new("models"), 1_000);
    /// assert_eq!(folder.path_of("./lib/tax.cem", "models/order.cem")?, Path::new("models/lib/tax.cem"));
    /// assert_eq!(folder.path_of("vat.cem", "models/lib/tax.cem")?, Path::new("models/lib/vat.cem"));
    /// assert!(folder.path_of("../tax.cem", "models/lib/tax.cem").is_err());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the name leads out of the folder.
    pub fn path_of(&self, name: &str, from: &str) -> io::Result<PathBuf> {
        // The text of a model need not be a file of the folder.
        let beside = Path::new(from).parent().filter(|beside| beside.starts_with(&self.path));
        let mut path = beside.unwrap_or(&self.path).to_owned();
        for part in Path::new(name).components() {
            match part {
                Component::Normal(part) => path.push(part),
                Component::CurDir => {}
                _ => {
                    return Err(io::Error::other(
                        "the file must be in the folder of the model, or in a folder inside that one",
                    ));
                }
            }
        }
        Ok(path)
    }

    /// Reads the file at `path` and removes its byte order mark. The file's name is its path.
    ///
    /// # Errors
    /// If the file cannot be read, is a link that leads out of the folder, or is not UTF-8.
    pub fn read(&self, path: &Path) -> io::Result<UsedFile> {
        let text = text_of_file(&self.followed(path)?, self.most_bytes)?;
        Ok(UsedFile { name: shown(path), text: text.into() })
    }

    /// Returns the path with all links resolved. Fails if it leads out of the folder.
    fn followed(&self, path: &Path) -> io::Result<PathBuf> {
        let folder = if self.path.as_os_str().is_empty() { Path::new(".") } else { &self.path };
        let (folder, found) = (std::fs::canonicalize(folder)?, std::fs::canonicalize(path)?);
        match found.starts_with(folder) {
            true => Ok(found),
            false => Err(io::Error::other(
                "the file is a link that leads out of the folder of the model; copy the file into that folder",
            )),
        }
    }
}

impl Resolver for Folder {
    fn resolve(&self, name: &str, from: &str) -> io::Result<UsedFile> {
        self.read(&self.path_of(name, from)?)
    }

    fn name_of(&self, name: &str, from: &str) -> Option<String> {
        Some(shown(&self.path_of(name, from).ok()?))
    }
}

/// A [`Resolver`] for [`Sources::gather`](crate::program::Sources::gather) that finds texts in memory by name. A name is relative to the text that
/// uses the name, as a path in a [`Folder`] is.
///
/// ```
/// use cembra::operators::Registry;
/// use cembra::program::{GivenFiles, Sources};
/// use cembra::{Limits, Model};
///
/// let files = GivenFiles::new("models/price.cem", [("models/tax.cem".to_owned(), "let vat = 0.5".into())]);
/// let limits = Limits::default();
/// let sources = Sources::gather("models/price.cem", "use \"tax.cem\"; 2.0 * vat", &limits, &files);
/// assert!(Model::parse_sources(sources, Registry::standard(), &limits).is_ok());
/// ```
#[derive(Clone, Debug)]
pub struct GivenFiles {
    folder: Folder,
    files: BTreeMap<String, Arc<str>>,
}

impl GivenFiles {
    /// Returns a resolver for the texts `files`. `text` is the name of the model's text. The names of `files` must be in the folder of `text`, or in
    /// a folder inside it.
    #[must_use]
    pub fn new(text: &str, files: impl IntoIterator<Item = (String, Arc<str>)>) -> GivenFiles {
        let folder = Path::new(text).parent().unwrap_or(Path::new(""));
        GivenFiles { folder: Folder::new(folder, 0), files: files.into_iter().collect() }
    }
}

impl Resolver for GivenFiles {
    fn resolve(&self, name: &str, from: &str) -> io::Result<UsedFile> {
        let name = shown(&self.folder.path_of(name, from)?);
        let text = self.files.get(&name).ok_or(io::ErrorKind::NotFound)?.clone();
        Ok(UsedFile { name, text })
    }

    fn name_of(&self, name: &str, from: &str) -> Option<String> {
        self.folder.name_of(name, from)
    }
}

/// Returns the name that messages show for a file: its path as text.
pub(crate) fn shown(path: &Path) -> String {
    path.display().to_string()
}

/// Returns the text of a file, without its byte order mark.
fn text_of_file(path: &Path, most_bytes: usize) -> io::Result<String> {
    Ok(without_mark(&read_text(open(path)?, most_bytes)?).to_owned())
}

/// Opens a regular file. Other files are rejected: a pipe without a writer would block forever, and a device may be endless.
fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(target_os = "linux")]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed());
    }
    #[cfg(not(target_os = "linux"))]
    check_regular(&std::fs::metadata(path)?)?;
    let file = options.open(path)?;
    check_regular(&file.metadata()?)?;
    Ok(file)
}

fn check_regular(found: &Metadata) -> io::Result<()> {
    let kind = match found.file_type() {
        kind if kind.is_file() => return Ok(()),
        kind if kind.is_dir() => "a folder",
        _ => "a pipe, a socket or a device",
    };
    Err(io::Error::other(format!("expected a file, found {kind}")))
}
