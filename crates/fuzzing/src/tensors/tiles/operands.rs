//! Tiled tensors at random: which tiles of a dense tensor are present, which of these are zeros, how large their elements are; the same tensors
//! with tiles that are made on demand and counted, that fail, or whose norms are not known; and all that one sees of a tiled tensor.

use crate::config::{chance, pick};
use cembra::tensor::{Slice, Tensor, TensorErrorKind};
use cembra::{Error, Scalar};
use cembra_tiles::{Float, Screening, Shape, TilePlace, Tiled, Tiling, Tiling1};
use fastrand::Rng;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// What drops no tile.
pub(super) const ALL: Screening = Screening::threshold(0.0);

/// How tiles of random tensors are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sparsity {
    /// The share of present tiles.
    share: f64,
    /// The share of present tiles that are zeros.
    zeros: f64,
    /// The share of tiles whose elements are smaller, by a power of two.
    small: f64,
}

impl Sparsity {
    pub(super) fn new(random: &mut Rng, is_screened: bool) -> Sparsity {
        Sparsity {
            share: *pick(random, &[0.0, 0.2, 0.5, 0.5, 0.8, 0.8, 1.0, 1.0, 1.0]),
            zeros: *pick(random, &[0.0, 0.0, 0.1, 0.4]),
            small: if is_screened { 0.7 } else { 0.0 },
        }
    }

    /// A dense tensor in tiles. Elements of tiles that are absent are left out.
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

/// The elements of a tile, counted from 0 on.
fn slices(tiling: &Tiling, number: u64) -> Vec<Slice> {
    slices_of(tiling, &tiling.ranges(number).unwrap_or_default())
}

/// Returns slices of a tiling's axes. `ranges` count from 0.
pub(super) fn slices_of(tiling: &Tiling, ranges: &[Range<i64>]) -> Vec<Slice> {
    let slice = |(range, axis): (&Range<i64>, &Tiling1)| Slice {
        start: range.start.abs_diff(axis.lower()) as usize,
        step: 1,
        count: range.end.abs_diff(range.start) as usize,
    };
    ranges.iter().zip(tiling.axes()).map(slice).collect()
}

/// Where the elements of a tile are among those of the dense tensor, the last axis the fastest.
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

/// What is promised of the norms of tiles that are made on demand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Promise {
    True,
    /// Infinite or NaN, which keeps all tiles.
    Unknown,
}

/// Which tiles fail.
#[derive(Clone, Copy, Debug)]
pub(super) struct Failing {
    pub(super) each: u64,
    pub(super) first: u64,
}

/// A tensor whose tiles are made on demand.
#[derive(Clone, Debug)]
pub(super) struct Lazy {
    pub(super) tiled: Tiled,
    /// How often each tile was asked for, by its position among the present ones.
    asked: Arc<Vec<AtomicU32>>,
}

impl Lazy {
    /// The same elements. A tile that is absent, or that is asked for without being present, is an error.
    pub(super) fn of(whole: &Tiled, promise: Promise, failing: Option<Failing>) -> Result<Lazy, Error> {
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
            // A view that is not packed, as users may return.
            let back: Vec<usize> = (0..tile.extents().len()).rev().collect();
            tile.tensor().transposed(&back)?.row_major().transposed(&back)
        };
        Ok(Lazy { tiled: Tiled::lazy(&shape, whole.scalar_type(), source)?, asked })
    }

    /// The most times that a tile was asked for.
    pub(super) fn most_asked(&self) -> u32 {
        self.asked.iter().map(|count| count.load(Ordering::Relaxed)).max().unwrap_or(0)
    }
}

/// All that one sees of a tiled tensor: its tiling, which tiles are present, the bits of their norms and of their elements, any NaN like any other.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct TiledContents {
    pub(super) tiling: Tiling,
    pub(super) scalar: Scalar,
    pub(super) tiles: Vec<u64>,
    pub(super) norms: Vec<u64>,
    pub(super) elements: Vec<Vec<u64>>,
}

impl TiledContents {
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

    /// The elements of a tile as numbers; none if it is absent.
    pub(super) fn tile(&self, number: u64) -> Option<Vec<f64>> {
        let position = self.tiles.binary_search(&number).ok()?;
        Some(self.elements[position].iter().map(|bits| f64::from_bits(*bits)).collect())
    }

    /// What is wrong with the norms, which are to be those of the elements.
    pub(super) fn wrong_norm(&self) -> Option<String> {
        for ((number, norm), elements) in self.tiles.iter().zip(&self.norms).zip(&self.elements) {
            let elements: Vec<f64> = elements.iter().map(|bits| f64::from_bits(*bits)).collect();
            let (found, expected) = (f64::from_bits(*norm), norm_of(&elements));
            let is_same = found == expected || (found.is_nan() && expected.is_nan());
            // Of the least floats there are few.
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

/// The root of the sum of squares, divided by the number of elements. NaN where an element is.
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
