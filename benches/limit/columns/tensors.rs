//! The limit over tensors: plain loops over slices, which the compiler makes vectors of, and the exponential of the formulas over columns.
//! Sums are in any order; those of FLOAT32 are in FLOAT64, as the language has them.

use crate::lanes::{Across, Lanes, SingleLanes};
use crate::{Doubles, Singles, fetch};

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

/// How many vectors of a row are computed side by side for its greatest element, and for its sums.
const ABREAST: [usize; 2] = [4, 2];

/// The mean over the rows of `-sum(y * log_softmax(z))`, a row having so many elements, a multiple of 64.
///
/// A row is read once for its greatest element, and once for the three sums that the loss needs, of the exponentials, of `y` and of `y * z`:
/// FLOAT32 all of them, which are widened and added in FLOAT64. The next row is fetched meanwhile.
#[inline(never)]
#[must_use]
pub fn softmax_cross_entropy(z: &[f32], y: &[f32], columns: usize) -> f32 {
    const GREATEST: usize = ABREAST[0] * Singles::ROWS;
    const SUMS: usize = ABREAST[1] * Singles::ROWS;
    let mut total = 0.0_f64;
    for (z, y) in z.chunks_exact(columns).zip(y.chunks_exact(columns)) {
        let mut most = [Singles::splat(f32::NEG_INFINITY); ABREAST[0]];
        for z in z.as_chunks::<GREATEST>().0 {
            for (most, z) in most.iter_mut().zip(z.as_chunks::<{ Singles::ROWS }>().0) {
                // SAFETY: BARE-ARRAYS: a step of elements of the slice.
                *most = most.max(unsafe { Singles::load(z.as_ptr().cast()) });
            }
        }
        let most = most[0].max(most[1]).max(most[2].max(most[3])).greatest();
        let shift = Singles::splat(most);
        let [mut powers, mut shares, mut products] = [[[Doubles::splat(0.0); 2]; ABREAST[1]]; 3];
        for (z, y) in z.as_chunks::<SUMS>().0.iter().zip(y.as_chunks::<SUMS>().0) {
            for part in 0..ABREAST[1] {
                let (z, y) = (&z[part * Singles::ROWS], &y[part * Singles::ROWS]);
                let (z, y) = (std::ptr::from_ref(z), std::ptr::from_ref(y));
                // A row is a page or so, behind which a processor does not look by itself.
                fetch(z.wrapping_add(columns).cast());
                fetch(y.wrapping_add(columns).cast());
                // SAFETY: BARE-ARRAYS: a step of elements of each slice.
                let (z, y) = unsafe { (Singles::load(z.cast()), Singles::load(y.cast())) };
                powers[part] = SingleLanes::exp(z.sub(shift)).add_to(powers[part]);
                shares[part] = y.add_to(shares[part]);
                products[part] = y.mul(z).add_to(products[part]);
            }
        }
        let [sum, share, product] = [powers, shares, products].map(|parts| parts.map(Singles::sum).iter().sum::<f64>());
        total += share * (f64::from(most) + sum.ln()) - product;
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
