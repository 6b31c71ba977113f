//! Random tiled tensors, in which some tiles are absent, zero, or have small elements. The module also makes lazy versions of tiled tensors, whose
//! tiles are computed on demand: requests are counted, some tiles fail, and norms may be unknown. `TiledContents` is a copy of a tiled tensor for
//! comparisons.

use crate::config::{chance, pick};
use cembra::tensor::{Slice, Tensor, TensorErrorKind};
use cembra::{Error, Scalar};
use cembra_tiles::{Float, Screening, Shape, TilePlace, Tiled, Tiling, Tiling1};
use fastrand::Rng;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// The screening (rule for dropping small tiles) that drops no tile: its threshold is 0.
pub(super) const ALL: Screening = Screening::threshold(0.0);

/// The fractions of absent, zero and small tiles in random tiled tensors.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sparsity {
    /// The fraction of tiles that are present.
    share: f64,
    /// The fraction of present tiles that are zero.
    zeros: f64,
    /// The fraction of tiles whose elements are scaled down by a power of two.
    small: f64,
}

impl Sparsity {
    /// Returns random fractions of absent and zero tiles. The fraction of small tiles is 0 unless `is_screened` is set.
    pub(super) fn new(random: &mut Rng, is_screened: bool) -> Sparsity {
        Sparsity {
            share: *pick(random, &[0.0, 0.2, 0.5, 0.5, 0.8, 0.8, 1.0, 1.0, 1.0]),
            zeros: *pick(random, &[0.0, 0.0, 0.1, 0.4]),
            small: if is_screened { 0.7 } else { 0.0 },
        }
    }

    /// Makes a tiled tensor with the tiling `tiling` from the elements of `tensor`. Random tiles are left out, set to zero or scaled down.
    pub(super) fn tiled(&self, random: &mut Rng, tensor: &Tensor, tiling: &Tiling) -> Result<Tiled, Error> {
        match tensor.scalar_type() {
            Scalar::Float32 => self.of::<f32>(random, tensor, tiling),
            _ => self.of::<f64>(random, tensor, tiling),
        }
    }

    fn of<T: Float>(&self, random: &mut Rng, tensor: &Tensor, tiling: &Tiling) -> Result<Tiled, Error> {
        let (mut numbers, mut tiles) = (Vec::new(), Vec::new());
        for number in (0..tiling.tiles()).filter(|number| tiling.volume(*number) > 0.0) {
            if !chance(random, self.share) {
                continue;
            }
            let mut elements = tensor.sliced(&slices(tiling, number))?.to_vec::<T>()?;
            if chance(random, self.zeros) {
                elements.fill(T::of_f64(0.0));
            }
            if chance(random, self.small) {
                let least = *pick(random, &[-24, -5, -5]);
                let factor = T::of_f64(f64::from(random.i32(least..0)).exp2());
                elements.iter_mut().for_each(|element| *element = *element * factor);
            }
            tiles.push(Tensor::new(&tiling.tile_extents(number).unwrap_or_default(), elements)?);
            numbers.push((number, f64::INFINITY));
        }
        Tiled::from_tiles::<T>(&Shape::of_norms(tiling, numbers, &ALL)?, tiles)
    }
}

/// Returns the slices of a tile, counted from 0.
fn slices(tiling: &Tiling, number: u64) -> Vec<Slice> {
    slices_of(tiling, &tiling.ranges(number).unwrap_or_default())
}

/// Converts `ranges`, the ranges of indices on the axes of `tiling`, to slices of a dense tensor. A slice counts indices from 0, while an axis of
/// `tiling` may begin at any index.
pub(super) fn slices_of(tiling: &Tiling, ranges: &[Range<i64>]) -> Vec<Slice> {
    let slice = |(range, axis): (&Range<i64>, &Tiling1)| Slice {
        start: range.start.abs_diff(axis.lower()) as usize,
        step: 1,
        count: range.end.abs_diff(range.start) as usize,
    };
    ranges.iter().zip(tiling.axes()).map(slice).collect()
}

/// Returns the indices of the elements of tile `number` among the elements of the dense tensor in row-major order.
pub(super) fn positions(tiling: &Tiling, number: u64) -> Vec<usize> {
    let (slices, extents) = (slices(tiling, number), tiling.extents());
    let mut all = vec![0];
    for (slice, extent) in slices.iter().zip(&extents) {
        all = all
            .iter()
            .flat_map(|at| (slice.start..slice.start + slice.count).map(move |own| at * extent + own))
            .collect();
    }
    all
}

/// The norms that a lazy tensor promises for its tiles before they are computed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Promise {
    True,
    /// The promised norms are infinite or NaN, so that no tile is dropped.
    Unknown,
}

/// The tiles of a lazy tensor that fail when they are computed: those whose number modulo `each` is `first`.
#[derive(Clone, Copy, Debug)]
pub(super) struct FailingTiles {
    pub(super) each: u64,
    pub(super) first: u64,
}

/// A tiled tensor whose tiles are computed on demand, with a count of the requests.
#[derive(Clone, Debug)]
pub(super) struct LazyTensor {
    pub(super) tiled: Tiled,
    /// The number of requests for each tile, by its index among the present tiles.
    asked: Arc<Vec<AtomicU32>>,
}

impl LazyTensor {
    /// Returns a lazy version of the tensor `whole`: it has the same elements, but computes its tiles on demand. A request for a tile that is
    /// absent in `whole` is an error.
    pub(super) fn of(whole: &Tiled, promise: Promise, failing: Option<FailingTiles>) -> Result<LazyTensor, Error> {
        let shape = match promise {
            Promise::True => whole.shape().clone(),
            Promise::Unknown => {
                let norm = |tile: u64| if tile.is_multiple_of(2) { f64::INFINITY } else { f64::NAN };
                Shape::of_norms(whole.tiling(), whole.shape().tiles().iter().map(|tile| (*tile, norm(*tile))), &ALL)?
            }
        };
        let asked: Arc<Vec<AtomicU32>> = Arc::new((0..whole.shape().len()).map(|_| AtomicU32::new(0)).collect());
        let (own, counts) = (whole.clone(), asked.clone());
        let source = move |place: &TilePlace| {
            let Some((position, tile)) = own.shape().position(place.number).zip(own.tile(place.number)?) else {
                return Err(Error::tensors(TensorErrorKind::Index, format!("tile {} is absent", place.number)));
            };
            counts[position].fetch_add(1, Ordering::Relaxed);
            if failing.is_some_and(|failing| place.number % failing.each == failing.first) {
                return Err(Error::tensors(TensorErrorKind::Evaluation, format!("tile {} fails", place.number)));
            }
            // The view is not packed, as a user may return it.
            let back: Vec<usize> = (0..tile.extents().len()).rev().collect();
            tile.tensor().transposed(&back)?.row_major().transposed(&back)
        };
        Ok(LazyTensor { tiled: Tiled::lazy(&shape, whole.scalar_type(), source)?, asked })
    }

    /// Returns the number of requests for the tile that was requested most often.
    pub(super) fn most_asked(&self) -> u32 {
        self.asked.iter().map(|count| count.load(Ordering::Relaxed)).max().unwrap_or(0)
    }
}

/// The content of a tiled tensor in a form that can be compared: its tiling, the present tiles, and the bits of their norms and elements, with all
/// NaNs equal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct TiledContents {
    pub(super) tiling: Tiling,
    pub(super) scalar: Scalar,
    pub(super) tiles: Vec<u64>,
    pub(super) norms: Vec<u64>,
    pub(super) elements: Vec<Vec<u64>>,
}

impl TiledContents {
    /// Returns the content of `tiled`: its present tiles, with their norms and elements as bits.
    pub(super) fn of(tiled: &Tiled) -> Result<TiledContents, Error> {
        let mut elements = Vec::with_capacity(tiled.shape().len());
        for tile in tiled.tiles() {
            let (_, tile) = tile?;
            let bits = match tiled.scalar_type() {
                Scalar::Float32 => tile.elements::<f32>().iter().map(|element| bits(f64::from(*element))).collect(),
                _ => tile.elements::<f64>().iter().map(|element| bits(*element)).collect(),
            };
            elements.push(bits);
        }
        Ok(TiledContents {
            tiling: tiled.tiling().clone(),
            scalar: tiled.scalar_type(),
            tiles: tiled.shape().tiles().to_vec(),
            norms: tiled.shape().norms().iter().map(|norm| bits(*norm)).collect(),
            elements,
        })
    }

    /// Returns the elements of tile `number` as floats; `None` if the tile is absent.
    pub(super) fn tile(&self, number: u64) -> Option<Vec<f64>> {
        let position = self.tiles.binary_search(&number).ok()?;
        Some(self.elements[position].iter().map(|bits| f64::from_bits(*bits)).collect())
    }

    /// Describes the first tile whose stored norm differs from the norm of the tile's elements; `None` if all stored norms are right.
    pub(super) fn wrong_norm(&self) -> Option<String> {
        for ((number, norm), elements) in self.tiles.iter().zip(&self.norms).zip(&self.elements) {
            let elements: Vec<f64> = elements.iter().map(|bits| f64::from_bits(*bits)).collect();
            let (found, expected) = (f64::from_bits(*norm), norm_of(&elements));
            let is_same = found == expected || (found.is_nan() && expected.is_nan());
            // Near the smallest floats, the precision is lower.
            let most = 1e-9 * expected + 1e-320 * elements.len() as f64;
            let is_near = expected.is_finite() && (found - expected).abs() <= most;
            if !(is_same || is_near) {
                return Some(format!("tile {number} has a norm of {found:e}, its elements of {expected:e}"));
            }
        }
        None
    }
}

pub(super) fn bits(float: f64) -> u64 {
    if float.is_nan() { f64::NAN.to_bits() } else { float.to_bits() }
}

/// Returns the norm of a tile with the elements `elements`: the square root of the sum of squares, divided by the number of elements. The norm is
/// NaN if an element is NaN.
pub(super) fn norm_of(elements: &[f64]) -> f64 {
    if elements.iter().any(|element| element.is_nan()) {
        return f64::NAN;
    }
    let largest = elements.iter().fold(0.0, |largest: f64, element| largest.max(element.abs()));
    if largest == 0.0 || !largest.is_finite() {
        return largest;
    }
    let squares = elements.iter().map(|element| (element / largest).powi(2));
    squares.sum::<f64>().sqrt() / elements.len() as f64 * largest
}
