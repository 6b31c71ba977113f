//! The data files that a command line names: paths, patterns such as `b*.csv` that the shell did not expand, and `-` for standard input. The files
//! are read one after the other, as one table.

use crate::arguments::DataOptions;
use crate::source::STANDARD;
use cembra_table::error::{DataCode, DataError};
use cembra_table::input::Input;
use cembra_table::{BATCH_ROWS, Dataset, FileOpener, Format, ReadOptions};
use indicatif::ProgressBar;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// The paths of the data files, in the order in which they are read.
#[derive(Clone, Debug)]
pub(crate) struct DataFiles(Vec<PathBuf>);

/// The options for opening the data files: their format, the memory limit, and the progress bar.
#[derive(Clone)]
pub(crate) struct Opening {
    pub(crate) options: DataOptions,
    /// The most bytes of the data that are in memory at once.
    pub(crate) most_bytes: u64,
    /// True if rows that cannot be read are skipped.
    pub(crate) tolerant: bool,
    /// The progress bar that counts the bytes read from the files; `None` without a bar.
    pub(crate) bar: Option<ProgressBar>,
}

impl DataFiles {
    /// Returns the data files for the arguments `paths`. A pattern is replaced by the files that match it, sorted by name.
    ///
    /// # Errors
    /// If no file matches a pattern, or standard input is named twice.
    pub(crate) fn of(paths: &[PathBuf]) -> Result<DataFiles, DataError> {
        let mut files = Vec::new();
        for path in paths {
            if path.as_os_str() != STANDARD && is_pattern(path) && fs::symlink_metadata(path).is_err() {
                files.append(&mut matching(path)?);
            } else {
                files.push(path.clone());
            }
        }
        if files.iter().filter(|path| path.as_os_str() == STANDARD).count() > 1 {
            return Err(DataError::new(DataCode::Unreadable, "standard input can be read only once, not twice"));
        }
        Ok(DataFiles(files))
    }

    /// The size of all files together in bytes; `None` without files, or if the size of a file is unknown.
    pub(crate) fn size(&self) -> Option<u64> {
        let size = |path: &PathBuf| fs::metadata(path).ok().filter(fs::Metadata::is_file).map(|known| known.len());
        let sizes = self.0.iter().filter(|path| path.as_os_str() != STANDARD).map(size);
        (!self.0.is_empty() && self.0.iter().all(|path| path.as_os_str() != STANDARD)).then(|| sizes.sum())?
    }

    /// The path of the data file, for commands that read at most one; `None` without files.
    ///
    /// # Errors
    /// If there are several files; the message names the first two.
    pub(crate) fn only(&self) -> Result<Option<&Path>, String> {
        match self.0.as_slice() {
            [] => Ok(None),
            [one] => Ok(Some(one)),
            [one, other, ..] => Err(format!("there are two files of data: {} and {}", one.display(), other.display())),
        }
    }

    /// The paths of the data files; standard input is `-`.
    pub(crate) fn paths(&self) -> &[PathBuf] {
        &self.0
    }

    /// The names of the data files for messages, separated by commas.
    pub(crate) fn names(&self) -> String {
        let names: Vec<String> = self.0.iter().map(|path| path.display().to_string()).collect();
        names.join(", ")
    }

    /// Opens the data files as one table; `None` without files. The format of a file is the one that `--data-format` gives. Without this option,
    /// the file's extension decides, or else a guess from the file's first bytes.
    ///
    /// # Errors
    /// If a file cannot be opened, or has another format than the first one.
    pub(crate) fn open(self, opening: &Opening) -> Result<Option<Dataset>, DataError> {
        let mut paths = self.0.into_iter();
        let Some(first) = paths.next() else { return Ok(None) };
        let dataset = opening.open(&first, true)?;
        let following = paths.map(|path| {
            let reopens = path.as_os_str() != STANDARD && fs::metadata(&path).is_ok_and(|there| there.is_file());
            let opening = opening.clone();
            FileOpener { open: Box::new(move |is_read| opening.open(&path, is_read)), reopens }
        });
        dataset.followed_by(following.collect()).map(Some)
    }
}

impl Opening {
    /// Opens a file. The progress bar counts its bytes if `is_read`.
    fn open(&self, path: &Path, is_read: bool) -> Result<Dataset, DataError> {
        let mut input = open(path)?;
        if let Some(bar) = self.bar.as_ref().filter(|_| is_read) {
            input = input.through(|reader| bar.wrap_read(reader));
        }
        let DataOptions { null, delimiter, data_format, batch_rows, .. } = &self.options;
        let known = data_format.map(Format::from).or_else(|| Format::of_path(path));
        let (input, format) = match known {
            Some(format) => (input, format),
            None => input.guess()?,
        };
        let read = ReadOptions {
            format,
            nulls: null.clone(),
            delimiter: *delimiter,
            spelling: self.options.spelling(),
            batch_rows: batch_rows.map_or(BATCH_ROWS, |rows| rows as usize),
            most_bytes: self.most_bytes,
            tolerant: self.tolerant,
        };
        Dataset::open(input, &read)
    }
}

/// Opens the file at `path`, or standard input for `-`.
pub(crate) fn open(path: &Path) -> Result<Input, DataError> {
    if path.as_os_str() == STANDARD { Ok(Input::stdin()) } else { Input::file(path) }
}

/// Returns true if the path has a `*` or `?`, so that it may stand for several files.
fn is_pattern(path: &Path) -> bool {
    path.to_str().is_some_and(|text| text.contains(['*', '?']))
}

/// The files whose names match a pattern, sorted.
fn matching(pattern: &Path) -> Result<Vec<PathBuf>, DataError> {
    let mut found = vec![PathBuf::new()];
    for component in pattern.components() {
        let name = match component {
            Component::Normal(name) if is_pattern(Path::new(name)) => name.to_string_lossy(),
            other => {
                found.iter_mut().for_each(|path| path.push(other));
                continue;
            }
        };
        let mut next = Vec::new();
        for folder in &found {
            let here = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
            // A file that is not a folder has no entries.
            let entries = fs::read_dir(here).into_iter().flatten().flatten();
            let names = entries.map(|entry| entry.file_name());
            let fits = names.filter(|entry| is_match(name.as_bytes(), entry.to_string_lossy().as_bytes()));
            next.extend(fits.map(|entry| folder.join(entry)));
        }
        found = next;
    }
    found.retain(|path| fs::metadata(path).is_ok_and(|there| !there.is_dir()));
    if found.is_empty() {
        let error = DataError::new(DataCode::Io, "no file matches the pattern").in_file(&pattern.display().to_string());
        return Err(error.hint("`*` stands for any characters of a name, and `?` for one"));
    }
    found.sort_unstable();
    Ok(found)
}

/// Returns true if `name` matches `pattern`. A name that begins with a dot needs a pattern that begins with a dot.
fn is_match(pattern: &[u8], name: &[u8]) -> bool {
    if name.starts_with(b".") && !pattern.starts_with(b".") {
        return false;
    }
    let (mut at, mut of) = (0, 0);
    // The index of the last `*` in the pattern, and the end of its match in the name.
    let mut star: Option<(usize, usize)> = None;
    while at < name.len() {
        // The bytes of the character here: `?` stands for one character, not for one byte.
        let width = name[at..].iter().skip(1).take_while(|byte| **byte & 0xc0 == 0x80).count() + 1;
        match pattern.get(of) {
            Some(b'*') => {
                star = Some((of, at));
                of += 1;
            }
            Some(b'?') => (of, at) = (of + 1, at + width),
            Some(byte) if *byte == name[at] => (of, at) = (of + 1, at + 1),
            _ => {
                let Some((star_of, end)) = star else { return false };
                star = Some((star_of, end + 1));
                (of, at) = (star_of + 1, end + 1);
            }
        }
    }
    pattern[of..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_have_stars_and_question_marks() {
        for (pattern, name, expected) in [
            ("b*.csv", "b1.csv", true),
            ("b*.csv", "b.csv", true),
            ("b*.csv", "b1.csv.gz", false),
            ("*", "anything", true),
            ("*", ".hidden", false),
            (".*", ".hidden", true),
            ("a?c", "abc", true),
            ("a?c", "aéc", true),
            ("a?c", "ac", false),
            ("*a*b*c", "xaybzc", true),
            ("*a*b*c", "xaybz", false),
            ("a*a*a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false),
        ] {
            assert_eq!(is_match(pattern.as_bytes(), name.as_bytes()), expected, "{pattern} {name}");
        }
    }
}
