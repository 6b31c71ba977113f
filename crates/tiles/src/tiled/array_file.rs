//! Arrays in files of other programs, as lazy tensors: the elements of a tile are read when the tile is needed. The
//! caller knows the file format, reads the file's header, and passes the position and the format of the elements.

#![deny(clippy::arithmetic_side_effects)]

use crate::tiled::files::{InputFile, PIECE_BYTES, refused};
use crate::tiled::tile::{Float, TileMemory, with_float};
use crate::tiled::{TilePlace, TileSource};
use crate::{MOST_TILES, Shape, Tiled, Tiling};
use cembra_runtime::Scalar;
use cembra_value::Error;
use cembra_value::tensor::{Extents, Tensor, element_bytes, index_count};
use smallvec::SmallVec;
use std::path::PathBuf;

/// The location of an array's elements in a file, and their format.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ArrayPlace {
    /// The position of the array's first element in the file, in bytes.
    pub first: u64,
    /// The type of the array's elements.
    pub scalar: Scalar,
    /// True if an element's most significant byte is first.
    pub is_big_endian: bool,
    /// True if the first axis varies fastest, as in Fortran; false if the last one does.
    pub is_column_major: bool,
}

/// An axis of an array in a file: its elements in the whole array, and the range of them that a tile has. Lists of axes
/// begin with the one that varies slowest.
#[derive(Clone, Copy)]
struct Axis {
    /// The distance in the file between two neighbours along the axis, in elements.
    stride: u64,
    whole: u64,
    start: u64,
    count: u64,
}

/// An array in an open file. It is the source of a lazy tensor: it reads the elements of a tile when the tile is
/// needed.
#[derive(Debug)]
struct ArrayFile {
    file: InputFile,
    place: ArrayPlace,
    tiling: Tiling,
}

impl Tiled {
    /// Opens an array in a file as a tensor with the tiling `tiling`. Elements are read when they are needed, so the array may be larger
    /// than memory. All tiles that have elements are present. Their norms are infinite, because nothing is known about them.
    /// [`truncate`](Tiled::truncate) reads all tiles, and keeps those whose norms are not below a threshold.
    ///
    /// ```
    /// use cembra_runtime::Scalar;
    /// use cembra_tiles::{ArrayPlace, Tiled, Tiling, Tiling1};
    ///
    /// # let directory = tempfile::tempdir().expect("a directory");
    /// # let path = directory.path().join("numbers");
    /// let numbers: Vec<u8> = (0..12).flat_map(|number| f64::from(number).to_le_bytes()).collect();
    /// std::fs::write(&path, numbers).expect("written");
    /// let tiling = Tiling::new([Tiling1::blocked(3, 2)?, Tiling1::blocked(4, 2)?])?;
    /// let place = ArrayPlace { first: 0, scalar: Scalar::Float64, is_big_endian: false, is_column_major: false };
    /// let tiled = Tiled::from_file(path, place, &tiling)?;
    /// assert_eq!(tiled.tile(1)?.expect("present").elements::<f64>(), [2.0, 3.0, 6.0, 7.0]);
    /// # Ok::<(), cembra_value::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the file does not exist, or has fewer elements than the tiling; if tiles cannot have elements of the array's type; or if there
    /// are more than [`MOST_TILES`] tiles.
    pub fn from_file(path: impl Into<PathBuf>, place: ArrayPlace, tiling: &Tiling) -> Result<Tiled, Error> {
        let file = InputFile::open(path.into())?;
        let extents = tiling.extents();
        index_count(&extents)?;
        let bytes = element_bytes(place.scalar, &extents).unwrap_or(u128::MAX);
        let end = u128::from(place.first).saturating_add(bytes);
        if end > u128::from(file.bytes) {
            let message = format!(
                "the file has {} bytes, but an array of shape {:?} would end at byte {end}",
                file.bytes,
                &extents[..]
            );
            return Err(refused(&file.path, message));
        }
        let shape = Shape::dense(tiling, MOST_TILES)?;
        Tiled::lazy(&shape, place.scalar, ArrayFile { file, place, tiling: tiling.clone() })
    }
}

impl ArrayFile {
    /// The axes of a tile in the order of the file, the slowest first. Products of extents do not overflow, because the
    /// elements of the whole array were counted.
    fn axes(&self, place: &TilePlace) -> SmallVec<[Axis; 6]> {
        let axes = self.tiling.axes().iter().zip(&place.ranges).map(|(axis, range)| Axis {
            stride: 1,
            whole: axis.extent() as u64,
            start: range.start.abs_diff(axis.lower()),
            count: range.end.abs_diff(range.start),
        });
        let mut axes: SmallVec<[Axis; 6]> = axes.collect();
        if self.place.is_column_major {
            axes.reverse();
        }
        let mut stride = 1_u64;
        for axis in axes.iter_mut().rev() {
            axis.stride = stride;
            stride = stride.saturating_mul(axis.whole);
        }
        axes
    }

    /// Reads the tile at a place from the file.
    fn read<T: Float>(&self, place: &TilePlace) -> Result<Tensor, Error> {
        let axes = self.axes(place);
        // Axes that the tile covers as a whole are one run of elements with the axis in front of them.
        let whole = axes.iter().rev().take_while(|axis| axis.count == axis.whole).count();
        let outer = axes.len().saturating_sub(whole.saturating_add(1));
        let (outer, inner) = axes.split_at(outer);
        let run = inner.iter().fold(1_u64, |run, axis| run.saturating_mul(axis.count));
        let first = axes.iter().fold(0_u64, |at, axis| at.saturating_add(axis.start.saturating_mul(axis.stride)));
        let extents: Extents = axes.iter().map(|axis| axis.count as usize).collect();
        let mut memory = TileMemory::<T>::of_extents(&extents)?;
        let mut index: SmallVec<[u64; 6]> = SmallVec::from_elem(0, outer.len());
        let mut piece = vec![0; PIECE_BYTES.min(size_of_val(memory.elements()))];
        let size = size_of::<T>();
        let reverse = |bytes: &mut [u8]| {
            if self.place.is_big_endian {
                bytes.chunks_exact_mut(size).for_each(<[u8]>::reverse);
            }
        };
        for elements in memory.elements_mut().chunks_mut((run as usize).max(1)) {
            let steps = index.iter().zip(outer).map(|(at, axis)| at.saturating_mul(axis.stride));
            let number = steps.fold(first, u64::saturating_add);
            let at = self.place.first.saturating_add(number.saturating_mul(size as u64));
            self.file.read_elements(elements, at, &mut piece, reverse)?;
            for (at, axis) in index.iter_mut().zip(outer).rev() {
                *at = at.saturating_add(1);
                if *at < axis.count {
                    break;
                }
                *at = 0;
            }
        }
        let read = memory.into_tile(&extents)?.tensor().clone();
        let reversed: SmallVec<[usize; 6]> = (0..extents.len()).rev().collect();
        if self.place.is_column_major { read.transposed(&reversed) } else { Ok(read) }
    }
}

impl TileSource for ArrayFile {
    fn tile(&self, place: &TilePlace) -> Result<Tensor, Error> {
        with_float!(self.place.scalar, T => self.read::<T>(place))
    }
}
