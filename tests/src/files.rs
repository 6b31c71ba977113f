//! Golden files on disk: finding them, unpacking them, reading their lines.

use crate::problem::DataError;
use flate2::read::MultiGzDecoder;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// The project's own golden data.
#[must_use]
pub fn own() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("golden")
}

/// The golden files at these paths, in order; those of a folder and its folders by name.
///
/// # Errors
/// A path cannot be read, or has no golden files.
pub fn find(paths: &[PathBuf]) -> Result<Vec<PathBuf>, DataError> {
    let mut found = Vec::new();
    for path in paths {
        if !metadata(path)?.is_dir() {
            found.push(path.clone());
            continue;
        }
        let before = found.len();
        let mut folders = vec![path.clone()];
        while let Some(folder) = folders.pop() {
            for entry in list(&folder)? {
                if metadata(&entry)?.is_dir() {
                    folders.push(entry);
                } else if is_golden(&entry) {
                    found.push(entry);
                }
            }
        }
        found[before..].sort();
        if found.len() == before {
            return Err(DataError::NoFiles { path: path.clone() });
        }
    }
    Ok(found)
}

/// Calls `line` with every line of a golden file that is not empty, and its number counted from 1.
///
/// # Errors
/// The file cannot be read, or `line` fails.
pub fn for_each_line(path: &Path, mut line: impl FnMut(usize, &str) -> Result<(), DataError>) -> Result<(), DataError> {
    let io = |source| DataError::Io { path: path.to_owned(), source };
    let file = File::open(path).map_err(io)?;
    let packed = path.extension().is_some_and(|extension| extension == "gz");
    let plain: Box<dyn Read> =
        if packed { Box::new(MultiGzDecoder::new(BufReader::new(file))) } else { Box::new(file) };
    let mut reader = BufReader::with_capacity(1 << 16, plain);
    let mut text = String::new();
    for number in 1.. {
        text.clear();
        if reader.read_line(&mut text).map_err(io)? == 0 {
            break;
        }
        let trimmed = text.trim_end();
        if !trimmed.is_empty() {
            line(number, trimmed)?;
        }
    }
    Ok(())
}

fn is_golden(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or("");
    name.ends_with(".jsonl.gz") || name.ends_with(".jsonl")
}

fn metadata(path: &Path) -> Result<fs::Metadata, DataError> {
    fs::metadata(path).map_err(|source| DataError::Io { path: path.to_owned(), source })
}

fn list(folder: &Path) -> Result<Vec<PathBuf>, DataError> {
    let io = |source| DataError::Io { path: folder.to_owned(), source };
    fs::read_dir(folder).map_err(io)?.map(|entry| Ok(entry.map_err(io)?.path())).collect()
}
