//! The input of bytes (a file, a pipe, standard input), with its name for messages. Data compressed with gzip or zstd are recognised by their first
//! bytes and decompressed. Text may begin with a byte order mark. Text with such a mark may be UTF-16; all other text is UTF-8.

use super::Format;
use super::chunks::too_large;
use crate::error::DataError;
use flate2::read::MultiGzDecoder;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufReader, Cursor, Read};
use std::path::Path;

/// The buffer size of readers, in bytes.
const BUFFER_BYTES: usize = 1 << 16;

/// The bytes that are read at once to find the format of data whose name does not tell it.
const GUESS_BYTES: usize = 4096;

/// The most bytes of leading white space that are skipped to find the format of data. After more, the format is CSV.
const SPACE_BYTES: usize = 1 << 20;

/// The first bytes of the formats that are recognised by them.
const GZIP: &[u8] = &[0x1f, 0x8b];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
const PARQUET: &[u8] = b"PAR1";
const ARROW_FILE: &[u8] = b"ARROW1";
const ARROW_STREAM: &[u8] = &[0xff, 0xff, 0xff, 0xff];
/// Byte order marks.
const UTF8: &[u8] = &[0xef, 0xbb, 0xbf];
const UTF16_LITTLE: &[u8] = &[0xff, 0xfe];
const UTF16_BIG: &[u8] = &[0xfe, 0xff];

/// A reader of bytes that may be moved to another thread.
pub type Bytes = Box<dyn Read + Send>;

/// An input of bytes (a file, a pipe, standard input), with a name for messages.
pub struct Input {
    name: String,
    reader: Bytes,
    size: Option<u64>,
    /// True if all bytes are available, so that reading on never waits.
    file: bool,
    /// The file of the input, for formats that are read at any position; `None` if the input is not a file.
    stored: Option<File>,
}

/// An input of text, decompressed and converted to UTF-8. Bytes that are not valid UTF-8 are passed on unchanged.
pub struct Text {
    /// The reader of the text's bytes, without a byte order mark.
    pub reader: Bytes,
    /// True if the text comes from a file, so that a read never waits for more bytes.
    pub file: bool,
}

impl Input {
    /// Makes an input that reads from `reader`, with `name` for messages.
    pub fn new(name: impl Into<String>, reader: impl Read + Send + 'static) -> Self {
        Input { name: name.into(), reader: Box::new(reader), size: None, file: false, stored: None }
    }

    /// Opens the file at `path` as an input.
    ///
    /// # Errors
    /// If the file cannot be opened.
    pub fn file(path: &Path) -> Result<Self, DataError> {
        let name = path.display().to_string();
        let file = File::open(path).map_err(|cause| DataError::io("cannot open", cause).in_file(&name))?;
        let size = file.metadata().ok().filter(std::fs::Metadata::is_file).map(|known| known.len());
        let stored = size.and_then(|_| file.try_clone().ok());
        Ok(Input { size, file: size.is_some(), stored, ..Input::new(name, file) })
    }

    /// Standard input as an input.
    pub fn stdin() -> Self {
        Input::new("<stdin>", io::stdin())
    }

    /// The name of the input, for messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The number of bytes of the input before decompression; `None` if it is unknown.
    pub fn size(&self) -> Option<u64> {
        self.size
    }

    /// Returns this input with its reader wrapped by `wrap`, for example to count the bytes.
    pub fn through<R: Read + Send + 'static>(self, wrap: impl FnOnce(Bytes) -> R) -> Self {
        Input { reader: Box::new(wrap(self.reader)), ..self }
    }

    /// Guesses the format of the data from their first bytes: the format whose file signature they begin with, JSON if they begin with an array or
    /// object, else CSV. The returned input still begins with the inspected bytes.
    ///
    /// # Errors
    /// If the input cannot be read.
    pub fn guess(self) -> Result<(Self, Format), DataError> {
        let name = self.name.clone();
        self.try_guess().map_err(|cause| DataError::unread(cause).in_file(&name))
    }

    fn try_guess(self) -> io::Result<(Self, Format)> {
        let mut input = self.decompressed()?;
        let start = input.peek(ARROW_FILE.len())?;
        if start.starts_with(PARQUET) {
            return Ok((input, Format::Parquet));
        }
        if start.starts_with(ARROW_FILE) || start.starts_with(ARROW_STREAM) {
            return Ok((input, Format::Arrow));
        }
        let Text { mut reader, file } = input.try_into_text()?;
        let (mut start, mut looked_at) = (Vec::<u8>::new(), 0);
        let format = loop {
            match start[looked_at..].trim_ascii_start().first() {
                Some(b'{' | b'[') => break Format::JsonLines,
                Some(_) => break Format::Csv,
                None => looked_at = start.len(),
            }
            // Reads only what is available: waiting for more would delay the first rows of a slow pipe.
            if looked_at >= SPACE_BYTES || read_some(&mut reader, &mut start, GUESS_BYTES)? == 0 {
                break Format::Csv;
            }
        };
        let reader = Box::new(Cursor::new(start).chain(reader));
        Ok((Input { reader, file, name: input.name, size: input.size, stored: input.stored }, format))
    }

    /// Returns the first `most` bytes without consuming them; fewer if the input ends before.
    fn peek(&mut self, most: usize) -> io::Result<Vec<u8>> {
        let mut start = Vec::new();
        while start.len() < most && read_some(&mut self.reader, &mut start, most)? > 0 {}
        let rest = std::mem::replace(&mut self.reader, Box::new(io::empty()));
        self.reader = Box::new(Cursor::new(start.clone()).chain(rest));
        Ok(start)
    }

    /// Decompresses the input if it is compressed; other data stay as they are.
    fn decompressed(mut self) -> io::Result<Input> {
        let start = self.peek(1)?;
        // For other data, only one byte is waited for.
        let long = match start.first() {
            Some(first) if [GZIP[0], ZSTD[0]].contains(first) => self.peek(ZSTD.len())?,
            _ => start,
        };
        Ok(if long.starts_with(GZIP) {
            // The file itself has the compressed bytes, not the decompressed ones.
            let input = Input { stored: None, ..self };
            input.through(|reader| MultiGzDecoder::new(BufReader::with_capacity(BUFFER_BYTES, reader)))
        } else if long.starts_with(ZSTD) {
            let reader = std::mem::replace(&mut self.reader, Box::new(io::empty()));
            let decoder = zstd::stream::read::Decoder::new(reader)?;
            Input { reader: Box::new(decoder), stored: None, ..self }
        } else {
            self
        })
    }

    /// Returns the input as text: decompressed, without a byte order mark, and converted from UTF-16.
    ///
    /// # Errors
    /// If the input cannot be read.
    pub fn into_text(mut self) -> Result<Text, DataError> {
        self.try_into_text().map_err(DataError::unread)
    }

    fn try_into_text(&mut self) -> io::Result<Text> {
        let reader = std::mem::replace(&mut self.reader, Box::new(io::empty()));
        let input = Input { reader, name: self.name.clone(), size: self.size, file: self.file, stored: None };
        let mut input = input.decompressed()?;
        let start = input.peek(1)?;
        let start = match start.first() {
            Some(first) if [UTF8[0], UTF16_LITTLE[0], UTF16_BIG[0]].contains(first) => input.peek(UTF8.len())?,
            _ => start,
        };
        let skip = |mut reader: Bytes, mark: &[u8]| -> io::Result<Bytes> {
            reader.read_exact(&mut vec![0; mark.len()])?;
            Ok(reader)
        };
        let reader: Bytes = if start.starts_with(UTF8) {
            skip(input.reader, UTF8)?
        } else if start.starts_with(UTF16_LITTLE) {
            Box::new(Utf16::new(skip(input.reader, UTF16_LITTLE)?, u16::from_le_bytes))
        } else if start.starts_with(UTF16_BIG) {
            Box::new(Utf16::new(skip(input.reader, UTF16_BIG)?, u16::from_be_bytes))
        } else {
            input.reader
        };
        Ok(Text { reader, file: input.file })
    }

    /// Returns a reader of the input's decompressed bytes, for data that are not text.
    ///
    /// # Errors
    /// If the input cannot be read.
    pub fn into_bytes(self) -> Result<Bytes, DataError> {
        Ok(self.decompressed().map_err(DataError::unread)?.reader)
    }

    /// Returns this input, and its first `most` bytes after decompression (all bytes if there are fewer). The returned input still begins with
    /// these bytes.
    ///
    /// # Errors
    /// If the bytes cannot be read.
    pub fn with_start(self, most: usize) -> Result<(Input, Vec<u8>), DataError> {
        let mut input = self.decompressed().map_err(DataError::unread)?;
        let start = input.peek(most).map_err(DataError::unread)?;
        Ok((input, start))
    }

    /// Returns a file with the input's bytes that can be read at any position: the input's own file, or a temporary copy if the input is a
    /// pipe or compressed. A copy has at most `most_bytes` bytes.
    ///
    /// # Errors
    /// If the input cannot be read, if the temporary copy cannot be created or stored, or if it would have more than `most_bytes` bytes.
    pub fn into_file(self, most_bytes: u64) -> Result<File, DataError> {
        self.try_into_file(most_bytes).map_err(DataError::unread)?.ok_or_else(|| {
            let message = format!("a compressed file or a pipe exceeds the limit of {most_bytes} bytes");
            too_large(message).hint("or name a file that is not compressed")
        })
    }

    /// Returns `None` if the copy would have more than `most_bytes` bytes.
    fn try_into_file(mut self, most_bytes: u64) -> io::Result<Option<File>> {
        let start = self.peek(ZSTD.len())?;
        let compressed = start.starts_with(GZIP) || start.starts_with(ZSTD);
        if let Some(file) = self.stored.take().filter(|_| !compressed) {
            return Ok(Some(file));
        }
        let mut copy = tempfile::tempfile()?;
        let mut left = self.decompressed()?.reader.take(most_bytes.saturating_add(1));
        let copied = io::copy(&mut left, &mut copy)?;
        Ok((copied <= most_bytes).then_some(copy))
    }
}

/// Appends the bytes that `reader` has available to `bytes`, but at most `most` bytes. Returns the number of bytes; 0 at the end of
/// the data.
pub fn read_some(reader: &mut impl Read, bytes: &mut Vec<u8>, most: usize) -> io::Result<usize> {
    let before = bytes.len();
    bytes.resize(before + most, 0);
    let read = loop {
        match reader.read(&mut bytes[before..]) {
            Err(cause) if cause.kind() == io::ErrorKind::Interrupted => {}
            other => break other,
        }
    };
    bytes.truncate(before + read.as_ref().copied().unwrap_or(0));
    read
}

/// A reader that converts UTF-16 to UTF-8.
struct Utf16 {
    reader: Bytes,
    unit: fn([u8; 2]) -> u16,
    /// Bytes that are not converted yet: an incomplete unit, or the first unit of a surrogate pair.
    rest: Vec<u8>,
    ready: VecDeque<u8>,
}

impl Utf16 {
    fn new(reader: Bytes, unit: fn([u8; 2]) -> u16) -> Self {
        Utf16 { reader, unit, rest: Vec::new(), ready: VecDeque::new() }
    }

    fn convert(&mut self, at_end: bool) -> io::Result<()> {
        let invalid = || io::Error::new(io::ErrorKind::InvalidData, "the text is not UTF-16");
        let mut used = 0;
        let units = self.rest.chunks_exact(2).map(|pair| (self.unit)([pair[0], pair[1]]));
        for decoded in char::decode_utf16(units) {
            match decoded {
                Ok(character) => {
                    used += 2 * character.len_utf16();
                    let mut bytes = [0; 4];
                    self.ready.extend(character.encode_utf8(&mut bytes).as_bytes());
                }
                // The second half of a surrogate pair may be among the next bytes.
                Err(_) if !at_end && used + 2 >= self.rest.len() - self.rest.len() % 2 => break,
                Err(_) => return Err(invalid()),
            }
        }
        self.rest.drain(..used);
        if at_end && !self.rest.is_empty() { Err(invalid()) } else { Ok(()) }
    }
}

impl Read for Utf16 {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.ready.is_empty() && !into.is_empty() {
            let read = read_some(&mut self.reader, &mut self.rest, BUFFER_BYTES)?;
            self.convert(read == 0)?;
            if read == 0 && self.ready.is_empty() {
                return Ok(0);
            }
        }
        self.ready.read(into)
    }
}
