//! Files from which tensors are read. Bytes are read by their position, so that several threads can read at once.
//! Errors name the file. The file formats are in `checkpoint/` and `array_file.rs`.

#![deny(clippy::arithmetic_side_effects)]

use crate::tiled::tile::Float;
use cembra_value::Error;
use cembra_value::tensor::TensorErrorKind as Kind;
use std::fmt::Display;
use std::fs::{self, File, Metadata};
use std::io;
use std::path::{Path, PathBuf};

/// The most bytes of elements that are read or written at a time.
pub(crate) const PIECE_BYTES: usize = 1 << 16;

/// Returns the error for a file or directory that is damaged, or that cannot be read or written.
#[cold]
pub(crate) fn refused(path: &Path, what: impl Display) -> Error {
    Error::tensors(Kind::File, format!("{}: {what}", path.display()))
}

/// Returns the error for a file or directory that the system cannot read.
#[cold]
pub(crate) fn unread(path: &Path, cause: &io::Error) -> Error {
    match cause.kind() {
        io::ErrorKind::NotFound => refused(path, "the file does not exist"),
        _ => refused(path, format_args!("the file cannot be read: {cause}")),
    }
}

/// An open file whose bytes are read by their position, so that several threads can read at once.
#[derive(Debug)]
pub(crate) struct InputFile {
    pub(crate) path: PathBuf,
    /// The number of bytes that the file had when it was opened.
    pub(crate) bytes: u64,
    file: File,
}

impl InputFile {
    /// Opens a file for reading.
    ///
    /// # Errors
    /// If the file does not exist, is a directory, a pipe or a device, or cannot be read.
    pub(crate) fn open(path: PathBuf) -> Result<InputFile, Error> {
        // Checked first, because opening a pipe could take for ever.
        let about = |found: io::Result<Metadata>| match found {
            Ok(about) if about.is_file() => Ok(about.len()),
            Ok(_) => Err(refused(&path, "the path does not lead to a file")),
            Err(cause) => Err(unread(&path, &cause)),
        };
        about(fs::metadata(&path))?;
        let file = File::open(&path).map_err(|cause| unread(&path, &cause))?;
        let bytes = about(file.metadata())?;
        Ok(InputFile { path, bytes, file })
    }

    /// Fills `bytes` with the file's bytes from `position` on. Several threads may read at once.
    ///
    /// # Errors
    /// If the file ends too early, or cannot be read.
    pub(crate) fn read_exact_at(&self, bytes: &mut [u8], position: u64) -> Result<(), Error> {
        let (mut rest, mut at) = (bytes, position);
        while !rest.is_empty() {
            match read_at(&self.file, rest, at) {
                Ok(0) => return Err(refused(&self.path, format_args!("the file ends after {at} bytes"))),
                Ok(count) => {
                    rest = rest.get_mut(count..).unwrap_or_default();
                    at = at.saturating_add(count as u64);
                }
                Err(cause) if cause.kind() == io::ErrorKind::Interrupted => {}
                Err(cause) => return Err(unread(&self.path, &cause)),
            }
        }
        Ok(())
    }

    /// Reads adjacent elements from `position` on, in pieces of at most [`PIECE_BYTES`]. `piece` is a buffer for one piece. `seen` is
    /// called with the bytes of each piece before they are converted to elements; it may reverse the bytes of each element to
    /// little-endian order.
    ///
    /// # Errors
    /// The errors of [`read_exact_at`](InputFile::read_exact_at).
    pub(crate) fn read_elements<T: Float>(
        &self,
        elements: &mut [T],
        mut position: u64,
        piece: &mut [u8],
        mut seen: impl FnMut(&mut [u8]),
    ) -> Result<(), Error> {
        for elements in elements.chunks_mut(PIECE_BYTES.checked_div(size_of::<T>()).unwrap_or(1)) {
            let bytes = piece.get_mut(..size_of_val(elements)).unwrap_or_default();
            self.read_exact_at(bytes, position)?;
            seen(bytes);
            for (to, bytes) in elements.iter_mut().zip(bytes.chunks_exact(size_of::<T>())) {
                *to = element(bytes);
            }
            position = position.saturating_add(bytes.len() as u64);
        }
        Ok(())
    }
}

/// Reads bytes from a position on, independent of earlier reads, and returns their number: at least 1 unless the file
/// ends.
#[cfg(unix)]
fn read_at(file: &File, bytes: &mut [u8], position: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, bytes, position)
}

#[cfg(windows)]
fn read_at(file: &File, bytes: &mut [u8], position: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, bytes, position)
}

#[cfg(not(any(unix, windows)))]
fn read_at(_: &File, _: &mut [u8], _: u64) -> io::Result<usize> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "the system cannot read a file at a position"))
}

/// Converts the bytes of an element, in little-endian order, to the element.
fn element<T: Float>(bytes: &[u8]) -> T {
    let mut bits = [0; size_of::<u64>()];
    bits.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
    T::from_bits(u64::from_le_bytes(bits))
}
