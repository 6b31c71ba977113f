//! Random tilings and tensors for tests. The same seed gives the same ones.

use cembra_tiles::{Float, MOST_TILES, Screening, Shape, Tiled, Tiling, Tiling1};
use fastrand::Rng;

/// The screening that leaves out no tile.
pub(crate) const ALL: Screening = Screening::threshold(0.0);

/// A random axis of up to four tiles of up to four elements, some of them empty, that begins near index 0.
pub(crate) fn axis(rng: &mut Rng) -> Tiling1 {
    let mut at = rng.i64(-3..4);
    let mut boundaries = vec![at];
    for _ in 0..rng.usize(1..5) {
        at += rng.i64(0..5);
        boundaries.push(at);
    }
    Tiling1::new(boundaries).expect("ascending")
}

/// A random tiling of the index range of `like`, with other boundaries.
pub(crate) fn other_axis(rng: &mut Rng, like: &Tiling1) -> Tiling1 {
    let inner = (0..rng.usize(0..4)).map(|_| rng.i64(like.lower()..=like.upper()));
    let mut boundaries: Vec<i64> = inner.chain([like.lower(), like.upper()]).collect();
    boundaries.sort_unstable();
    Tiling1::new(boundaries).expect("ascending")
}

pub(crate) fn tiling(rng: &mut Rng, rank: usize) -> Tiling {
    Tiling::new((0..rank).map(|_| axis(rng))).expect("few tiles")
}

/// A tensor with all tiles present, and random elements.
pub(crate) fn dense<T: Float>(tiling: &Tiling, seed: u64) -> Tiled {
    let shape = Shape::dense(tiling, MOST_TILES).expect("few tiles");
    Tiled::random::<T>(&shape, seed).expect("memory")
}

/// A tensor in which about the fraction `share` of all tiles is present, with random elements.
pub(crate) fn sparse<T: Float>(rng: &mut Rng, tiling: &Tiling, share: f64) -> Tiled {
    let present = (0..tiling.tiles()).filter(|_| rng.f64() < share).map(|tile| (tile, f64::INFINITY));
    let shape = Shape::of_norms(tiling, present, &ALL).expect("a shape");
    Tiled::random::<T>(&shape, rng.u64(..)).expect("memory")
}

/// The bits of all elements of the dense tensor.
pub(crate) fn bits(tiled: &Tiled) -> Vec<u64> {
    let tensor = tiled.to_tensor().expect("a dense tensor");
    (0..tensor.layout().len()).map(|at| tensor.data().bits(at)).collect()
}
