//! The limit over tensors: plain loops over slices, which the compiler makes vectors of, and the exponential of the formulas over columns.
//! Sums are in any order, of FLOAT32 in FLOAT32 within a row.

use crate::Singles;
use crate::lanes::{Lanes, SingleLanes};

/// How many sums are kept side by side.
const CHAINS: usize = 64;

/// `(a * b + c) * d - a`.
#[inline(never)]
pub fn chain([a, b, c, d]: [&[f64]; 4], to: &mut [f64]) {
    for ((((to, a), b), c), d) in to.iter_mut().zip(a).zip(b).zip(c).zip(d) {
        *to = (a * b + c) * d - a;
    }
}

/// The sum of `a * b`.
#[inline(never)]
#[must_use]
pub fn sum_of_products(a: &[f64], b: &[f64]) -> f64 {
    let mut sums = [0.0; CHAINS];
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<CHAINS>(), b.as_chunks::<CHAINS>());
    for (a, b) in a.iter().zip(b) {
        for ((sum, a), b) in sums.iter_mut().zip(a).zip(b) {
            *sum += a * b;
        }
    }
    let rest: f64 = a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum();
    sums.iter().sum::<f64>() + rest
}

/// The mean over the rows of `-sum(y * log_softmax(z))`, a row having so many elements, a multiple of 64.
#[inline(never)]
#[must_use]
pub fn softmax_cross_entropy(z: &[f32], y: &[f32], columns: usize) -> f32 {
    let mut total = 0.0_f64;
    for (z, y) in z.chunks_exact(columns).zip(y.chunks_exact(columns)) {
        let mut most = [f32::NEG_INFINITY; CHAINS];
        for z in z.as_chunks::<CHAINS>().0 {
            for (most, z) in most.iter_mut().zip(z) {
                *most = if *z > *most { *z } else { *most };
            }
        }
        let most = most.into_iter().fold(f32::NEG_INFINITY, f32::max);
        let mut powers = [Singles::splat(0.0); 4];
        let (mut shares, mut products) = ([0.0_f32; CHAINS], [0.0_f32; CHAINS]);
        for (z, y) in z.as_chunks::<CHAINS>().0.iter().zip(y.as_chunks::<CHAINS>().0) {
            for (part, z) in z.chunks_exact(Singles::ROWS).enumerate() {
                // SAFETY: BARE-ARRAYS: a step of elements of the slice.
                let z = unsafe { Singles::load(z.as_ptr().cast()) };
                let power = SingleLanes::exp(z.sub(Singles::splat(most)));
                powers[part % 4] = powers[part % 4].add(power);
            }
            for (((share, product), z), y) in shares.iter_mut().zip(&mut products).zip(z).zip(y) {
                *share += y;
                *product += y * z;
            }
        }
        let all = powers[0].add(powers[1]).add(powers[2].add(powers[3]));
        let mut room = [0.0_f32; 64];
        // SAFETY: BARE-ARRAYS: there is room for a step.
        unsafe { all.store(room.as_mut_ptr().cast()) };
        let sum: f32 = room.iter().sum();
        let (share, product): (f32, f32) = (shares.iter().sum(), products.iter().sum());
        total += f64::from(share * (most + sum.ln()) - product);
    }
    (total / (z.len() / columns) as f64) as f32
}

/// The triad of the STREAM benchmark.
#[inline(never)]
pub fn triad(b: &[f64], c: &[f64], to: &mut [f64]) {
    for ((to, b), c) in to.iter_mut().zip(b).zip(c) {
        *to = b + 0.5 * c;
    }
}
