//! Tiled tensors larger than memory in NumPy's `.npy` files: reading takes memory for one tile at a time. Writing takes memory for one row of tiles
//! (those with the same index along the first axis).

use crate::error::DataError;
use crate::numpy::{describe, write_elements, write_header};
use cembra::doors::ArrayPlace;
use cembra::tiles::{Base, Tiled, Tiling};
use std::fs::{self, File};
use std::io::{self, Write};
use std::ops::Range;
use std::path::Path;

/// Opens the array of a `.npy` file as tiles, each of which is read when it is needed. All tiles that have elements are present. The norms of the
/// tiles (their magnitudes, by which small tiles are dropped) are unknown until [`Tiled::truncate`] reads the tiles.
///
/// # Errors
/// If the file cannot be read, is not an array of floats with the tiling's extents, or has more or fewer bytes than its header says.
pub fn tiled_npy(path: &Path, tiling: &Tiling) -> Result<Tiled, DataError> {
    let name = path.display().to_string();
    let read = || {
        let about = fs::metadata(path).map_err(DataError::unread)?;
        // Opening a pipe could block forever.
        if !about.is_file() {
            return Err(DataError::unreadable("it is not a file"));
        }
        let array = describe(&mut File::open(path).map_err(DataError::unread)?, Some(about.len()))?;
        if array.shape[..] != tiling.extents()[..] {
            let message =
                format!("an array of {:?} cannot be read into tiles of {:?}", array.shape, &tiling.extents()[..]);
            return Err(DataError::unreadable(message));
        }
        let place = ArrayPlace {
            first: array.before,
            scalar: array.scalar,
            is_big_endian: array.is_big,
            is_column_major: array.fortran_order,
        };
        Tiled::from_file(path, place, tiling).map_err(|error| DataError::unreadable(error.to_string()))
    };
    read().map_err(|error| error.in_file(&name))
}

/// Writes `tensor` as a `.npy` file, with zeros for absent tiles. At any time, memory holds only the tiles with the same index along the
/// first axis.
///
/// # Errors
/// If `out` cannot be written, if a tile that is computed on demand fails, or if there is no memory for a row of tiles.
pub fn write_tiled_npy(out: &mut impl Write, tensor: &Tiled) -> io::Result<()> {
    let tiling = tensor.tiling();
    write_header(out, tensor.scalar_type(), &tiling.extents())?;
    let mut row: Vec<Range<u64>> = tiling.axes().iter().map(|axis| 0..axis.tiles()).collect();
    let Some(first) = tiling.axes().first() else {
        return write_elements(out, &tensor.to_tensor().map_err(io::Error::other)?);
    };
    for at in 0..first.tiles() {
        row[0] = at..at + 1;
        let dense = tensor.block(&row, Base::Zero).and_then(|row| row.to_tensor()).map_err(io::Error::other)?;
        write_elements(out, &dense)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numpy::{read_npy, write_npy};
    use cembra::tensor::{Element, Tensor};
    use cembra::tiles::{Screening, Shape, Tiling1};

    fn tiling() -> Tiling {
        let axes = [Tiling1::new([-1, 1, 1, 4]), Tiling1::blocked(4, 3), Tiling1::new([0, 2, 3])];
        Tiling::new(axes.map(|axis| axis.expect("a tiling"))).expect("a tiling")
    }

    fn bits(tensor: &Tensor) -> Vec<u64> {
        let tensor = tensor.row_major();
        let (first, len) = (tensor.layout().offset(), tensor.layout().len());
        (first..first + len).map(|at| tensor.data().bits(at)).collect()
    }

    /// An array whose elements all differ, with a NaN and a negative zero, and its bytes in the given byte order and order of axes.
    fn file<const N: usize, T: Element>(
        number: fn(f64) -> T,
        bytes: fn(T) -> [u8; N],
        descr: &str,
        is_fortran: bool,
    ) -> (Tensor, Vec<u8>) {
        let mut elements: Vec<T> = (0..60_u8).map(|at| number(f64::from(at) - 7.5)).collect();
        (elements[5], elements[59]) = (number(-0.0), number(f64::NAN));
        let tensor = Tensor::new(&[5, 4, 3], elements).expect("a tensor");
        let order: &[usize] = if is_fortran { &[2, 1, 0] } else { &[0, 1, 2] };
        let stored = tensor.transposed(order).and_then(|turned| turned.to_vec::<T>()).expect("elements");
        let python = if is_fortran { "True" } else { "False" };
        let header = format!("{{'descr': '{descr}', 'fortran_order': {python}, 'shape': (5, 4, 3)}}\n");
        let mut file = [b"\x93NUMPY\x01\x00", &(header.len() as u16).to_le_bytes()[..], header.as_bytes()].concat();
        stored.into_iter().for_each(|element| file.extend(bytes(element)));
        (tensor, file)
    }

    #[test]
    fn tiles_are_those_of_the_array_in_every_order_and_end() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.npy");
        let single = |number: f64| number as f32;
        for is_fortran in [false, true] {
            for (whole, bytes) in [
                file(|number| number, f64::to_le_bytes, "<f8", is_fortran),
                file(|number| number, f64::to_be_bytes, ">f8", is_fortran),
                file(single, f32::to_le_bytes, "<f4", is_fortran),
                file(single, f32::to_be_bytes, ">f4", is_fortran),
            ] {
                assert_eq!(bits(&read_npy(&bytes).expect("an array")), bits(&whole));
                fs::write(&path, &bytes).expect("written");
                let tiled = tiled_npy(&path, &tiling()).expect("an array");
                assert!(tiled.is_lazy() && tiled.shape().norms().iter().all(|norm| *norm == f64::INFINITY));
                assert_eq!(bits(&tiled.to_tensor().expect("a tensor")), bits(&whole));
                let cut = Tiled::from_tensor(&whole, &tiling(), &Screening::threshold(0.0)).expect("tiles");
                assert_eq!(tiled.shape().tiles(), cut.shape().tiles());
                for (one, other) in tiled.tiles().zip(cut.tiles()) {
                    let ((number, one), (same, other)) = (one.expect("a tile"), other.expect("a tile"));
                    assert_eq!((number, bits(one.tensor())), (same, bits(other.tensor())));
                }
                // Written again in C order, it equals the array that is written as a whole.
                let (mut rows, mut once) = (Vec::new(), Vec::new());
                write_tiled_npy(&mut rows, &tiled).expect("written");
                write_npy(&mut once, &whole).expect("written");
                assert_eq!(rows, once);
                let other = Tiling::new([Tiling1::blocked(60, 7).expect("a tiling")]).expect("a tiling");
                let error = tiled_npy(&path, &other).expect_err("another shape").to_string();
                assert!(error.contains("an array of [5, 4, 3] cannot be read into tiles of [60]"), "{error}");
                fs::write(&path, &bytes[..bytes.len() - 1]).expect("written");
                let error = tiled_npy(&path, &tiling()).expect_err("cut short").to_string();
                assert!(error.contains("bytes do not match an array of shape [5, 4, 3]"), "{error}");
            }
        }
    }

    #[test]
    fn absent_tiles_are_written_as_zeros_and_rows_without_tiles_too() {
        let axes = [Tiling1::blocked(7, 2), Tiling1::new([0, 0, 3, 5])].map(|axis| axis.expect("a tiling"));
        let tiling = Tiling::new(axes).expect("a tiling");
        let shape = Shape::of_norms(&tiling, [(1, 1.0), (11, 1.0)], &Screening::threshold(0.0)).expect("a shape");
        let tiled = Tiled::from_fn(&shape, |at| 1.0 + at[0] as f64).expect("a tensor");
        let scalar = Tiled::from_tensor(
            &Tensor::scalar(2.5_f32),
            &Tiling::new(Vec::<Tiling1>::new()).unwrap(),
            &Screening::threshold(0.0),
        );
        for tiled in [tiled, scalar.expect("a tensor")] {
            let (mut rows, mut once) = (Vec::new(), Vec::new());
            write_tiled_npy(&mut rows, &tiled).expect("written");
            write_npy(&mut once, &tiled.to_tensor().expect("a tensor")).expect("written");
            assert_eq!(rows, once);
        }
    }
}
