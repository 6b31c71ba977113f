//! Statements on tiled tensors: golden cases in random tiles, properties, and what is refused.

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

/// Tilings of axes by a seed: axes of one extent have one tiling, as axes with one label must.
pub(crate) struct Tilings {
    random: fastrand::Rng,
    known: BTreeMap<usize, Tiling1>,
}

impl Tilings {
    pub(crate) fn new(seed: u64) -> Tilings {
        Tilings { random: fastrand::Rng::with_seed(seed), known: BTreeMap::new() }
    }

    /// The tiling of axes of an extent: tiles of any size, empty ones among them, from any index on.
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

    /// A tensor in tiles, of which none is left out.
    pub(crate) fn tiled(&mut self, tensor: &Tensor) -> Tiled {
        Tiled::from_tensor(tensor, &self.tiling(tensor.extents()), &Screening::threshold(0.0)).expect("floats")
    }
}

/// Returns the options of a run that takes at most `most` bytes.
pub(crate) fn most_bytes(most: usize) -> RunOptions {
    RunOptions::new().limits(Limits::default().array_bytes(most as u64))
}

/// Elements as `f64`.
pub(crate) fn floats(tensor: &Tensor) -> Vec<f64> {
    match tensor.to_vec::<f32>() {
        Ok(elements) => elements.into_iter().map(f64::from).collect(),
        Err(_) => tensor.to_vec::<f64>().expect("floats"),
    }
}
