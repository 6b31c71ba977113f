//! The files of a folder that models use: what resolves `use` and `table` where models are files.

use crate::model::text_file::{read_text, without_mark};
use cembra_expr::{Resolver, UsedFile};
use std::collections::BTreeMap;
use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// Files that lie in a folder, or in folders inside of it: a [`Resolver`] for [`Sources::gather`](crate::Sources::gather). A file is
/// called by its path, and uses others from where it lies.
///
/// A name that leads out of the folder (`../secret.cem`, `/etc/passwd`) is refused, and so is a link in the file system that does. Links within the
/// folder are followed.
///
/// ```
/// use cembra::{Folder, Limits, Model, Registry, Sources};
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
    /// The files of a folder. Of a file of more bytes than `most_bytes` no more is read than tells that it is too large.
    #[must_use]
    pub fn new(path: &Path, most_bytes: usize) -> Folder {
        Folder { path: path.to_owned(), most_bytes }
    }

    /// Where the file is that the text called `from` means by a name. It need not be there.
    ///
    /// ```
    /// use cembra::Folder;
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
    /// The name leads out of the folder.
    pub fn path_of(&self, name: &str, from: &str) -> io::Result<PathBuf> {
        // The text of a model need not be a file of the folder.
        let beside = Path::new(from).parent().filter(|beside| beside.starts_with(&self.path));
        let mut path = beside.unwrap_or(&self.path).to_owned();
        for part in Path::new(name).components() {
            match part {
                Component::Normal(part) => path.push(part),
                Component::CurDir => {}
                _ => return Err(io::Error::other("a file that is used lies beside the model, or in a folder there")),
            }
        }
        Ok(path)
    }

    /// Reads a file, which is called by its path. A byte order mark is left out.
    ///
    /// # Errors
    /// The file cannot be read, is a link that leads out of the folder, or is not UTF-8.
    pub fn read(&self, path: &Path) -> io::Result<UsedFile> {
        let text = text_of_file(&self.followed(path)?, self.most_bytes)?;
        Ok(UsedFile { name: shown(path), text: text.into() })
    }

    /// The path without links.
    fn followed(&self, path: &Path) -> io::Result<PathBuf> {
        let folder = if self.path.as_os_str().is_empty() { Path::new(".") } else { &self.path };
        let (folder, found) = (std::fs::canonicalize(folder)?, std::fs::canonicalize(path)?);
        match found.starts_with(folder) {
            true => Ok(found),
            false => Err(io::Error::other("it is a link that leads out of the folder; copy the file into the folder")),
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

/// Files that the host has as texts, by their names: a [`Resolver`] for [`Sources::gather`](crate::Sources::gather) that reads nothing. Names lie
/// beside that of the text that uses them, as paths in a [`Folder`] do.
///
/// ```
/// use cembra::{GivenFiles, Limits, Model, Registry, Sources};
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
    /// The files beside a text that is called so.
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

/// What a file is called.
pub(crate) fn shown(path: &Path) -> String {
    path.display().to_string()
}

/// The text of a file, without its byte order mark.
fn text_of_file(path: &Path, most_bytes: usize) -> io::Result<String> {
    Ok(without_mark(&read_text(open(path)?, most_bytes)?).to_owned())
}

/// Opens a regular file. A pipe without a writer would wait for ever, a device need not end.
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
    Err(io::Error::other(format!("it is {kind}, not a file")))
}
