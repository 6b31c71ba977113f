//! NumPy's files: one array as `.npy`, or named arrays as `.npz`, a zip archive of `.npy` files. Both byte orders, and both C and Fortran
//! order, are read; elements must have a type that tensors have. The header of a file is a Python dictionary with three known keys; no
//! other Python syntax is accepted.

use super::error::DataError;
use super::guard::guarded;
use cembra::tensor::{Data, Element, Layout, MOST_AXES, Tensor};
use cembra_runtime::{Excerpt, Scalar};
use std::io::{self, Read, Seek, Write};
use zip::result::ZipError;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

/// The first bytes of every `.npy` file.
const MAGIC: &[u8] = b"\x93NUMPY";

/// The first bytes of a zip archive, and of one without files.
const ARCHIVES: [&[u8]; 2] = [b"PK\x03\x04", b"PK\x05\x06"];

/// The alignment in bytes of the elements in a file, so that they can be memory-mapped.
const ALIGNMENT: usize = 64;

/// The file extension of an array, also in archives.
const NPY: &str = ".npy";

/// The most bytes of a header: NumPy reads a longer one only on request.
const MOST_HEADER: usize = u16::MAX as usize;

/// The bytes of elements that are read at once.
const PIECE_BYTES: usize = 1 << 16;

/// Returns true if a file whose first bytes are `first` is a `.npy` file.
pub fn is_npy(first: &[u8]) -> bool {
    first.starts_with(MAGIC)
}

/// Returns true if a file whose first bytes are `first` is a zip archive.
pub fn is_npz(first: &[u8]) -> bool {
    ARCHIVES.iter().any(|archive| first.starts_with(archive))
}

/// The fields of a `.npy` header.
#[derive(PartialEq, Eq, Debug)]
struct Header {
    /// The element type in NumPy's notation, such as `<f8`.
    descr: String,
    fortran_order: bool,
    shape: Vec<usize>,
}

/// The unparsed rest of a header.
struct Scan<'t>(&'t str);

impl<'t> Scan<'t> {
    fn take(&mut self, text: &str) -> Option<()> {
        self.0 = self.0.trim_start().strip_prefix(text)?;
        Some(())
    }

    /// Parses a text in quotes. The texts of a header contain no quotes.
    fn text(&mut self) -> Option<&'t str> {
        let rest = self.0.trim_start();
        let quote = rest.chars().next().filter(|first| matches!(first, '\'' | '"'))?;
        let (text, rest) = rest[1..].split_once(quote)?;
        self.0 = rest;
        Some(text)
    }

    /// Parses a tuple of extents.
    fn shape(&mut self) -> Option<Vec<usize>> {
        self.take("(")?;
        let mut shape = Vec::new();
        while self.take(")").is_none() {
            let rest = self.0.trim_start();
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            shape.push(rest[..digits].parse().ok()?);
            // Python 2 wrote long integers with this suffix.
            self.0 = rest[digits..].strip_prefix('L').unwrap_or(&rest[digits..]);
            if self.take(",").is_none() {
                self.take(")")?;
                break;
            }
        }
        Some(shape)
    }

    /// Parses the dictionary of a header; `None` if it is not one, or has other keys.
    fn header(&mut self) -> Option<Header> {
        self.take("{")?;
        let (mut descr, mut fortran_order, mut shape) = (None, None, None);
        while self.take("}").is_none() {
            let key = self.text()?;
            self.take(":")?;
            match key {
                "descr" => descr = Some(self.text()?.to_owned()),
                "fortran_order" if self.take("True").is_some() => fortran_order = Some(true),
                "fortran_order" => fortran_order = self.take("False").map(|()| false),
                "shape" => shape = Some(self.shape()?),
                _ => return None,
            }
            if self.take(",").is_none() {
                self.take("}")?;
                break;
            }
        }
        let is_end = self.0.trim().is_empty();
        Some(Header { descr: descr?, fortran_order: fortran_order?, shape: shape? }).filter(|_| is_end)
    }
}

/// Fills `bytes` from the reader, and returns the number of bytes read; it is smaller only at the end of the data.
fn fill(reader: &mut impl Read, bytes: &mut [u8]) -> Result<usize, DataError> {
    let mut filled = 0;
    while filled < bytes.len() {
        match reader.read(&mut bytes[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(cause) if cause.kind() == io::ErrorKind::Interrupted => {}
            Err(cause) => return Err(DataError::unread(cause)),
        }
    }
    Ok(filled)
}

/// Reads the header of a `.npy` file, and returns it with the number of bytes up to the elements.
fn header(reader: &mut impl Read) -> Result<(Header, u64), DataError> {
    let unreadable = || DataError::unreadable("this is not a `.npy` file");
    let mut exactly = |bytes: &mut [u8]| {
        let filled = fill(reader, bytes)?;
        if filled == bytes.len() { Ok(()) } else { Err(unreadable()) }
    };
    let mut start = [0; 8];
    exactly(&mut start)?;
    let &[version, _] = start.strip_prefix(MAGIC).and_then(|rest| rest.first_chunk()).ok_or_else(unreadable)?;
    let mut len = [0; 4];
    let width = match version {
        1 => 2,
        2 | 3 => 4,
        _ => return Err(DataError::unreadable(format!("version {version} of the `.npy` format is not supported"))),
    };
    exactly(&mut len[..width])?;
    let len = u32::from_le_bytes(len) as usize;
    if len > MOST_HEADER {
        return Err(DataError::unreadable(format!("the header has {len} bytes; the limit is {MOST_HEADER}")));
    }
    let mut text = vec![0; len];
    exactly(&mut text)?;
    let header = std::str::from_utf8(&text).ok().and_then(|text| Scan(text).header());
    let header = header.ok_or_else(|| {
        DataError::unreadable("the header of this `.npy` file cannot be read")
            .hint("write an array of numbers or truth values: records and arrays of objects cannot be read")
    })?;
    Ok((header, (start.len() + width + len) as u64))
}

/// Reads the array of a `.npy` file from its bytes.
///
/// # Errors
/// If the bytes are not a `.npy` file, if the array has an element type that tensors cannot have, or if the number of elements does not match the
/// header.
pub fn read_npy(bytes: &[u8]) -> Result<Tensor, DataError> {
    read_array(&mut { bytes }, Some(bytes.len() as u64), u64::MAX, u64::MAX).map(|(tensor, _)| tensor)
}

/// Reads the array of a `.npy` file of `bytes` bytes from `file`, piece by piece, so that memory holds the array only once.
///
/// # Errors
/// The errors of [`read_npy`], or an error if the array has more than `most_bytes` bytes.
pub fn read_npy_file(file: &mut impl Read, bytes: u64, most_bytes: u64) -> Result<Tensor, DataError> {
    // The header is not counted.
    let left = most_bytes.saturating_add(MOST_HEADER as u64);
    read_array(file, Some(bytes), left, most_bytes).map(|(tensor, _)| tensor)
}

/// The description of an array, from the header of a `.npy` file.
pub(crate) struct ArrayHeader {
    descr: String,
    /// The extent of each axis of the array.
    pub(crate) shape: Vec<usize>,
    /// True if the elements are in Fortran order, in which the first index varies fastest.
    pub(crate) fortran_order: bool,
    /// The type of the array's elements.
    pub(crate) scalar: Scalar,
    /// True if the elements are stored as big-endian.
    pub(crate) is_big: bool,
    /// The number of bytes in the file before the elements.
    pub(crate) before: u64,
    len: usize,
    bytes: u64,
}

impl ArrayHeader {
    /// The error that the size of a file, `bytes`, does not match the array in its header.
    fn misfit(&self, bytes: u64) -> DataError {
        misfit(&self.shape, &self.descr, bytes)
    }
}

fn misfit(shape: &[usize], descr: &str, bytes: u64) -> DataError {
    DataError::unreadable(format!("{bytes} bytes do not match an array of shape {shape:?} and type `{descr}`"))
}

/// Reads the header of a `.npy` file. `known` is the size of the file in bytes; `None` if it is unknown.
///
/// # Errors
/// If the bytes are not a `.npy` file, if the array has an element type that tensors cannot have, or if `known` is not the file size that follows
/// from the header.
pub(crate) fn describe(reader: &mut impl Read, known: Option<u64>) -> Result<ArrayHeader, DataError> {
    let (Header { descr, fortran_order, shape }, before) = header(reader)?;
    // This is checked before the shape is shown: a header has room for thirty thousand axes.
    if shape.len() > MOST_AXES {
        let message = format!("an array of {} axes: tensors have up to {MOST_AXES}", shape.len());
        return Err(DataError::unreadable(message));
    }
    let len = shape.iter().try_fold(1_usize, |len, extent| len.checked_mul(*extent));
    let (scalar, size, is_big) = match &*descr {
        "|b1" => (Scalar::Boolean, 1, false),
        "<i4" => (Scalar::Int32, 4, false),
        "<f4" => (Scalar::Float32, 4, false),
        "<i8" => (Scalar::Int64, 8, false),
        "<f8" => (Scalar::Float64, 8, false),
        ">i4" => (Scalar::Int32, 4, true),
        ">f4" => (Scalar::Float32, 4, true),
        ">i8" => (Scalar::Int64, 8, true),
        ">f8" => (Scalar::Float64, 8, true),
        _ => {
            let shown = descr.escape_debug().to_string();
            let error = DataError::unreadable(format!(
                "elements of NumPy's type `{}` are not supported",
                Excerpt::quoted(&shown)
            ));
            return Err(error.hint("convert the elements with `astype` to bool, int32, int64, float32 or float64"));
        }
    };
    let known = known.map(|all| all.saturating_sub(before));
    let bytes = len.and_then(|len| len.checked_mul(size)).map(|bytes| bytes as u64);
    match (len, bytes) {
        (Some(len), Some(bytes)) if known.is_none_or(|known| bytes == known) => {
            Ok(ArrayHeader { descr, shape, fortran_order, scalar, is_big, before, len, bytes })
        }
        _ => Err(misfit(&shape, &descr, known.unwrap_or(0))),
    }
}

/// Reads an array, and returns it with the size of its file in bytes. `known` is that size, if it is known. The array must fit into `left`
/// bytes, the rest of the `most` bytes for all arrays. The size in the header is checked before memory is reserved, and the array is in
/// memory only once.
fn read_array(reader: &mut impl Read, known: Option<u64>, left: u64, most: u64) -> Result<(Tensor, u64), DataError> {
    let described = describe(reader, known)?;
    let ArrayHeader { ref descr, ref shape, fortran_order, scalar, is_big, before, len, bytes } = described;
    let all = before.checked_add(bytes).filter(|all| *all <= left).ok_or_else(|| too_many(most))?;
    let short = |error: ReadFailure| match error {
        ReadFailure::At(read) => described.misfit(read),
        ReadFailure::Error(error) => error,
    };
    let data = match scalar {
        Scalar::Boolean => {
            let flags = numbers(reader, len, is_big, |[byte]: [u8; 1]| byte).map_err(short)?;
            if flags.iter().any(|flag| *flag > 1) {
                return Err(DataError::unreadable("a truth value is neither 0 nor 1"));
            }
            Data::Bool(flags.into_iter().map(|flag| flag == 1).collect())
        }
        Scalar::Int32 => Element::data(numbers(reader, len, is_big, i32::from_ne_bytes).map_err(short)?),
        Scalar::Int64 => Element::data(numbers(reader, len, is_big, i64::from_ne_bytes).map_err(short)?),
        Scalar::Float32 => Element::data(numbers(reader, len, is_big, f32::from_ne_bytes).map_err(short)?),
        _ => Element::data(numbers(reader, len, is_big, f64::from_ne_bytes).map_err(short)?),
    };
    if fill(reader, &mut [0])? > 0 {
        return Err(DataError::unreadable(format!(
            "the data go on after the {bytes} bytes of an array of shape {shape:?} and type `{descr}`"
        )));
    }
    let made = tensor(data, shape, fortran_order).map_err(|error| DataError::unreadable(error.to_string()))?;
    Ok((made, all))
}

fn too_many(most: u64) -> DataError {
    let message = format!("the arrays exceed the limit of {most} bytes");
    DataError::unreadable(message).hint("raise the limit: `--set-limit array_bytes=..`")
}

/// Makes a tensor of elements in C or Fortran order.
fn tensor(data: Data, shape: &[usize], fortran_order: bool) -> Result<Tensor, cembra::Error> {
    if !fortran_order {
        return Tensor::from_parts(data, Layout::row_major(shape)?);
    }
    // In Fortran order the first axis is the fastest: this is the row-major layout of the reversed axes, transposed.
    let reversed: Vec<usize> = shape.iter().rev().copied().collect();
    let axes: Vec<usize> = (0..shape.len()).rev().collect();
    Tensor::from_parts(data, Layout::row_major(&reversed)?)?.transposed(&axes)
}

/// The reason why elements cannot be read.
enum ReadFailure {
    /// The data end too early, after this number of bytes.
    At(u64),
    Error(DataError),
}

/// Reads `len` elements, if there is memory for them: an array may be as large as the memory.
fn numbers<const N: usize, T>(
    reader: &mut impl Read,
    len: usize,
    is_big: bool,
    number: fn([u8; N]) -> T,
) -> Result<Vec<T>, ReadFailure> {
    let mut made = Vec::new();
    if made.try_reserve_exact(len).is_err() {
        let message = format!("the array has {len} elements of {N} bytes, for which the system has no memory");
        return Err(ReadFailure::Error(DataError::unreadable(message)));
    }
    let turned = is_big != cfg!(target_endian = "big");
    let of = |bytes: &[u8; N]| {
        let mut bytes = *bytes;
        if turned {
            bytes.reverse();
        }
        number(bytes)
    };
    let mut piece = vec![0; PIECE_BYTES.min(len.saturating_mul(N))];
    while made.len() < len {
        let wanted = piece.len().min((len - made.len()).saturating_mul(N));
        let filled = fill(reader, &mut piece[..wanted]).map_err(ReadFailure::Error)?;
        let (numbers, _) = piece[..filled].as_chunks::<N>();
        if filled < wanted {
            return Err(ReadFailure::At((made.len() * N + filled) as u64));
        }
        made.extend(numbers.iter().map(of));
    }
    Ok(made)
}

/// Writes `tensor` as a `.npy` file in C order, in which the last index varies fastest.
///
/// # Errors
/// If `out` cannot be written.
pub fn write_npy(out: &mut impl Write, tensor: &Tensor) -> io::Result<()> {
    write_header(out, tensor.scalar_type(), tensor.extents())?;
    write_elements(out, tensor)
}

/// Writes the header of a `.npy` file for an array in C order, with the element type `scalar` and the extents `extents`.
pub(crate) fn write_header(out: &mut impl Write, scalar: Scalar, extents: &[usize]) -> io::Result<()> {
    let descr = match scalar {
        Scalar::Boolean => "|b1",
        Scalar::Int32 => "<i4",
        Scalar::Int64 => "<i8",
        Scalar::Float32 => "<f4",
        Scalar::Float64 => "<f8",
        _ => return Err(io::ErrorKind::InvalidInput.into()),
    };
    let mut shape = String::new();
    extents.iter().for_each(|extent| shape.push_str(&format!("{extent}, ")));
    // A tuple with one element ends with a comma.
    let shape = if extents.len() == 1 { shape.trim_end() } else { shape.trim_end_matches(", ") };
    let mut header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({shape}), }}");
    let before = MAGIC.len() + 4;
    let len = (before + header.len() + 1).next_multiple_of(ALIGNMENT) - before;
    header.push_str(&" ".repeat(len - 1 - header.len()));
    header.push('\n');
    // A header is short, because there are at most 16 extents.
    let len = u16::try_from(len).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    out.write_all(MAGIC)?;
    out.write_all(&[1, 0])?;
    out.write_all(&len.to_le_bytes())?;
    out.write_all(header.as_bytes())
}

/// Writes the elements of `tensor` in C order, for a `.npy` file.
pub(crate) fn write_elements(out: &mut impl Write, tensor: &Tensor) -> io::Result<()> {
    let tensor = tensor.row_major();
    let (first, len) = (tensor.layout().offset(), tensor.layout().len());
    let place = first..first + len;
    match tensor.data() {
        Data::Bool(elements) => write_all(out, &elements[place], |element| [u8::from(element)]),
        Data::Int32(elements) => write_all(out, &elements[place], i32::to_le_bytes),
        Data::Int64(elements) => write_all(out, &elements[place], i64::to_le_bytes),
        Data::Float32(elements) => write_all(out, &elements[place], f32::to_le_bytes),
        Data::Float64(elements) => write_all(out, &elements[place], f64::to_le_bytes),
    }
}

fn write_all<const N: usize, T: Copy>(out: &mut impl Write, elements: &[T], bytes: fn(T) -> [u8; N]) -> io::Result<()> {
    const PIECE: usize = 1 << 13;
    let mut buffer = Vec::with_capacity(N * PIECE.min(elements.len()));
    for piece in elements.chunks(PIECE) {
        buffer.clear();
        piece.iter().for_each(|element| buffer.extend_from_slice(&bytes(*element)));
        out.write_all(&buffer)?;
    }
    Ok(())
}

/// Reads those arrays of a `.npz` archive that the caller selects by name, and returns them with their names.
///
/// # Errors
/// If the data are not an archive, if an array cannot be read, or if the arrays that are read have more than `most_bytes` bytes together.
pub fn read_npz(
    archive: impl Read + Seek,
    is_wanted: impl Fn(&str) -> bool,
    most_bytes: u64,
) -> Result<Vec<(String, Tensor)>, DataError> {
    guarded("`.npz`", || read_arrays(archive, is_wanted, most_bytes))
}

fn read_arrays(
    archive: impl Read + Seek,
    is_wanted: impl Fn(&str) -> bool,
    most_bytes: u64,
) -> Result<Vec<(String, Tensor)>, DataError> {
    let mut archive = ZipArchive::new(archive).map_err(|error| unzipped(error, "this is not a `.npz` file"))?;
    let (mut read, mut left) = (Vec::new(), most_bytes);
    for at in 0..archive.len() {
        let mut file = archive.by_index(at).map_err(|error| unzipped(error, "a file of the archive cannot be read"))?;
        let name = file.name().map_err(|error| unzipped(error, "a file of the archive cannot be read"))?;
        let Some(name) = name.strip_suffix(NPY).filter(|name| is_wanted(name)).map(str::to_owned) else {
            continue;
        };
        // The sizes in the archive are not trusted: the header of the array gives its size.
        let (tensor, taken) = read_array(&mut file, None, left, most_bytes).map_err(|error| error.in_array(&name))?;
        left = left.saturating_sub(taken);
        read.push((name, tensor));
    }
    Ok(read)
}

fn unzipped(error: ZipError, message: &str) -> DataError {
    match error {
        ZipError::Io(cause) => DataError::unread(cause),
        other => DataError::unreadable(format!("{message}: {other}")),
    }
}

/// Writes arrays as an `.npz` archive, uncompressed like NumPy's `savez`. The length of an array is stored before the array but known only
/// after it is written, so `out` must be able to seek.
///
/// # Errors
/// If `out` cannot be written.
pub fn write_npz<'t>(
    out: &mut (impl Write + Seek),
    tensors: impl Iterator<Item = (&'t str, &'t Tensor)>,
) -> io::Result<()> {
    let mut archive = ZipWriter::new(out);
    for (name, tensor) in tensors {
        let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored).large_file(true);
        archive.start_file(format!("{name}{NPY}"), options).map_err(io::Error::from)?;
        write_npy(&mut archive, tensor)?;
    }
    archive.finish().map_err(io::Error::from)?.flush()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    /// A file with the header `header` and the elements `data`.
    fn file(header: &str, data: &[u8]) -> Vec<u8> {
        let mut bytes = [MAGIC, &[1, 0], &(header.len() as u16).to_le_bytes(), header.as_bytes()].concat();
        bytes.extend_from_slice(data);
        bytes
    }

    fn refused(bytes: &[u8]) -> String {
        read_npy(bytes).expect_err("unreadable").to_string()
    }

    #[test]
    fn what_is_written_is_read_again() {
        let numbers = Tensor::new(&[2, 3], vec![1.5, -0.0, f64::INFINITY, 4.0, 5.0, 6.0]).expect("a tensor");
        for tensor in [
            numbers.clone(),
            numbers.transposed(&[1, 0]).expect("a view"),
            Tensor::new(&[3], vec![true, false, true]).expect("a tensor"),
            Tensor::new(&[2, 1], vec![i32::MIN, 7]).expect("a tensor"),
            Tensor::new(&[1, 1, 1], vec![i64::MAX]).expect("a tensor"),
            Tensor::new(&[0, 4], Vec::<f32>::new()).expect("a tensor"),
            Tensor::scalar(2.5_f32),
        ] {
            let mut bytes = Vec::new();
            write_npy(&mut bytes, &tensor).expect("written");
            let again = read_npy(&bytes).expect("read");
            assert_eq!(again, tensor);
            assert_eq!(again.scalar_type(), tensor.scalar_type());
        }
        let mut bytes = Vec::new();
        write_npy(&mut bytes, &numbers).expect("written");
        // As NumPy writes it: the data begin at a multiple of 64.
        let header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }";
        assert_eq!((&bytes[..10], &bytes[10..10 + header.len()]), (&b"\x93NUMPY\x01\x00v\x00"[..], &header[..]));
        assert_eq!(bytes.len(), 128 + 48);
    }

    #[test]
    fn orders_and_ends_are_those_of_the_header() {
        let big: Vec<u8> = [1_i32, 2, 3, 4, 5, 6].iter().flat_map(|number| number.to_be_bytes()).collect();
        let read = read_npy(&file("{'descr': '>i4', 'fortran_order': True, 'shape': (2, 3)}\n", &big)).expect("read");
        assert_eq!(read.to_vec::<i32>().expect("integers"), [1, 3, 5, 2, 4, 6]);
        let read = read_npy(&file("{\"shape\": (6L,),'fortran_order':False , 'descr': '>i4', }", &big)).expect("read");
        assert_eq!(read.to_vec::<i32>().expect("integers"), [1, 2, 3, 4, 5, 6]);
        let one = read_npy(&file("{'descr': '|b1', 'fortran_order': False, 'shape': ()}", &[1])).expect("read");
        assert!(one.extents().is_empty() && one.get::<bool>(&[]).expect("a truth value"));
    }

    #[test]
    fn what_is_wrong_is_said() {
        let of = |descr: &str, shape: &str| format!("{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}}}");
        for (bytes, message) in [
            (b"PK".to_vec(), "this is not a `.npy` file"),
            (b"\x93NUMPY\x01\x00\xff\xff{".to_vec(), "this is not a `.npy` file"),
            (b"\x93NUMPY\x09\x00\x00\x00".to_vec(), "version 9 of the `.npy` format is not supported"),
            (file(&of("'<f8'", "(2,)"), &[0; 15]), "15 bytes do not match an array of shape [2] and type `<f8`"),
            (file(&of("'<f8'", "(2,)"), &[0; 17]), "17 bytes do not match an array of shape [2] and type `<f8`"),
            (
                file(&of("'<f8'", "(4294967296, 4294967296, 16)"), &[]),
                "0 bytes do not match an array of shape [4294967296, 4294967296, 16]",
            ),
            (file(&of("'<f8'", "(99999999999999999999,)"), &[]), "the header of this `.npy` file cannot be read"),
            (file(&of("'<f8'", "(-1,)"), &[]), "the header of this `.npy` file cannot be read"),
            (file(&of("'<f2'", "(1,)"), &[0; 2]), "elements of NumPy's type `<f2` are not supported"),
            (file(&of("'|O'", "(1,)"), &[0; 2]), "elements of NumPy's type `|O` are not supported"),
            (file(&of(&format!("'<f8{}'", "x".repeat(60_000)), "(1,)"), &[0; 8]), "elements of NumPy's type `<f8xxx"),
            (file(&of("'<f8'", &format!("({})", "9,".repeat(30_000))), &[]), "an array of 30000 axes"),
            (file(&of("[('a', '<f8')]", "(1,)"), &[0; 8]), "the header of this `.npy` file cannot be read"),
            (file(&"(".repeat(60_000), &[]), "the header of this `.npy` file cannot be read"),
            (file(&of("'|b1'", "(1,)"), &[2]), "a truth value is neither 0 nor 1"),
            (
                file(&of("'<f8'", &format!("({})", "1,".repeat(17))), &[0; 8]),
                "an array of 17 axes: tensors have up to 16",
            ),
        ] {
            let said = refused(&bytes);
            assert!(said.starts_with(message), "{said}, not {message}");
            assert!(said.chars().count() < 300, "{said}");
        }
    }

    #[test]
    fn archives_have_names() {
        let [a, b] = [Tensor::scalar(1), Tensor::new(&[2], vec![0.5, 2.0]).expect("a tensor")];
        let mut bytes = Cursor::new(Vec::new());
        write_npz(&mut bytes, [("a", &a), ("b", &b)].into_iter()).expect("written");
        let mut bytes = bytes.into_inner();
        assert!(is_npz(&bytes) && !is_npy(&bytes));
        let read = read_npz(Cursor::new(&bytes), |_| true, 1 << 20).expect("read");
        assert_eq!(read, [("a".to_owned(), a), ("b".to_owned(), b.clone())]);
        let read = read_npz(Cursor::new(&bytes), |name| name == "b", 1 << 20).expect("read");
        assert_eq!(read, [("b".to_owned(), b)]);
        let error = read_npz(Cursor::new(&bytes), |_| true, 100).expect_err("too large").to_string();
        assert!(error.starts_with("array `a`: the arrays exceed the limit of 100 bytes"), "{error}");
        bytes.truncate(bytes.len() / 2);
        assert!(read_npz(Cursor::new(&bytes), |_| true, 1 << 20).is_err());
        // The same arrays give the same bytes.
        let twice = [0, 1].map(|_| {
            let mut bytes = Cursor::new(Vec::new());
            write_npz(&mut bytes, [("a", &Tensor::scalar(1))].into_iter()).map(|()| bytes).expect("written")
        });
        assert_eq!(twice[0], twice[1]);
    }
}
