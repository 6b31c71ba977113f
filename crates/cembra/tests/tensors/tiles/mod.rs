//! Tests of statements and models on tiled tensors: golden cases in random tiles, properties, and errors.

mod beside;
mod blocks;
mod golden;
mod gradients;
mod iterations;
mod models;
mod plans;
mod ranks;
mod refusals;
mod sparse;
mod texts;

use cembra::tensor::Tensor;
use cembra::tiles::{Screening, Tiled, Tiling, Tiling1};
use cembra::{Limits, RunOptions};
use std::collections::BTreeMap;

/// Random tilings of axes. Axes with the same extent get the same tiling, because axes with one label must have it.
pub(crate) struct Tilings {
    random: fastrand::Rng,
    known: BTreeMap<usize, Tiling1>,
}

impl Tilings {
    pub(crate) fn new(seed: u64) -> Tilings {
        Tilings { random: fastrand::Rng::with_seed(seed), known: BTreeMap::new() }
    }

    /// Returns the tiling for axes of the extent `extent`: tiles have any size, some are empty, and the first index is
    /// not always 0.
    fn axis(&mut self, extent: usize) -> Tiling1 {
        let random = &mut self.random;
        let axis = self.known.entry(extent).or_insert_with(|| {
            let (lower, upper) = match random.i64(-2..=2) {
                lower if extent > 0 => (lower, lower + extent as i64),
                lower => (lower, lower),
            };
            let mut boundaries: Vec<i64> = (0..random.usize(0..4)).map(|_| random.i64(lower..=upper)).collect();
            boundaries.extend([lower, upper]);
            boundaries.sort_unstable();
            Tiling1::new(boundaries).expect("ascending boundaries")
        });
        axis.clone()
    }

    pub(crate) fn tiling(&mut self, extents: &[usize]) -> Tiling {
        let axes: Vec<Tiling1> = extents.iter().map(|extent| self.axis(*extent)).collect();
        Tiling::new(axes).expect("few tiles")
    }

    /// Returns a tensor in random tiles, all of which are present.
    pub(crate) fn tiled(&mut self, tensor: &Tensor) -> Tiled {
        Tiled::from_tensor(tensor, &self.tiling(tensor.extents()), &Screening::threshold(0.0)).expect("floats")
    }
}

/// Returns the options of a run that takes at most `most` bytes.
pub(crate) fn most_bytes(most: usize) -> RunOptions {
    RunOptions::new().limits(Limits::default().array_bytes(most as u64))
}

/// Returns the elements of a float tensor as `f64`.
pub(crate) fn floats(tensor: &Tensor) -> Vec<f64> {
    match tensor.to_vec::<f32>() {
        Ok(elements) => elements.into_iter().map(f64::from).collect(),
        Err(_) => tensor.to_vec::<f64>().expect("floats"),
    }
}
