//! Divides the elements of a strip (a block of elements) by one value per group, such as each element by the sum of its
//! group. The inverse of a group's value is computed once. A quotient is the product with the inverse, corrected to the
//! exactly rounded quotient (`cembra_runtime::quotient`); several corrected products take as long as one division.

use super::bits::Bits;
use super::expand::runs;
use super::{Strip, StripData, StripValues};
use cembra_runtime::quotient::{moderate, parts};
use multiversion::multiversion;
use multiversion::target::match_target;
use std::ops::Range;

/// The number of elements that are divided together in vectors.
const LANES: usize = 8;

/// Writes to `to`, for each element of the strip `x` (a block of elements) that begins at the index `start`, the quotient of the element and its
/// group's value. Writes to `there` whether the element is present. `by` are the values of the contiguous groups from `first` on, none of them
/// missing. `points` are the split points, the indices of the groups' first elements. All data must be FLOAT64; a strip of another type is ignored.
///
/// # Panics
/// If `to` or `there` is shorter than the strip, or `by` has fewer values than the strip has groups.
pub fn divide_by_groups(
    x: &Strip<'_>,
    by: &Strip<'_>,
    first: usize,
    to: &mut StripValues<'_>,
    there: Option<&mut [u64]>,
    start: usize,
    points: &[i64],
) {
    if let Some(there) = there {
        let is_there = Bits::new(x.presence);
        there.iter_mut().enumerate().for_each(|(at, word)| *word = is_there.word(64 * at));
    }
    if let (StripData::Float64(x_all), StripData::Float64(by), StripValues::Float64(to)) = (x.data, by.data, to) {
        by_groups(&x_all[..x.len], by, first, &mut to[..x.len], start, points);
    }
}

#[multiversion(targets("x86_64+avx512f+bmi1+bmi2+lzcnt+popcnt", "x86_64+avx2+fma+bmi1+bmi2+lzcnt+popcnt"))]
fn by_groups(x: &[f64], by: &[f64], first: usize, to: &mut [f64], start: usize, points: &[i64]) {
    // On other targets a fused multiply-add may be a function call.
    let mends = match_target! {
        "x86_64+avx512f" => true,
        "x86_64+avx2+fma" => true,
        _ => cfg!(target_arch = "aarch64"),
    };
    for (group, run) in runs(points, first, start, x.len()) {
        let divisor = by[group - first];
        let parts = if mends { parts(8, divisor.to_bits()) } else { None };
        if !parts.is_some_and(|parts| mend_run(x, to, &run, parts.map(f64::from_bits))) {
            for (to, x) in to[run.clone()].iter_mut().zip(&x[run]) {
                *to = x / divisor;
            }
        }
    }
}

/// Divides the elements of one group by corrected products. Returns false if some results may be wrong; the caller then
/// divides.
#[inline(always)]
fn mend_run(x: &[f64], to: &mut [f64], run: &Range<usize>, parts: [f64; 2]) -> bool {
    // If there is room, some more are divided than the group has; the next group overwrites them.
    let count = run.len().div_ceil(LANES);
    let (places, _) = to[run.start..].as_chunks_mut::<LANES>();
    let are_moderate = match (x[run.start..].as_chunks::<LANES>().0.get(..count), places.get_mut(..count)) {
        (Some(x), Some(to)) => mend(x.as_flattened(), to.as_flattened_mut(), parts),
        _ => mend(&x[run.clone()], &mut to[run.clone()], parts),
    };
    are_moderate || are_mended(&x[run.clone()], parts[1])
}

/// Writes corrected products, and returns true if all products have an exponent for which the correction is exact
/// (`moderate`).
#[inline(always)]
fn mend(x: &[f64], to: &mut [f64], [divisor, inverse]: [f64; 2]) -> bool {
    let [added, bit] = moderate(8);
    let mut all = u64::MAX;
    for (to, x) in to.iter_mut().zip(x) {
        let near = x * inverse;
        let left = divisor.mul_add(near, -x);
        *to = (-left).mul_add(inverse, near);
        all &= near.to_bits().wrapping_add(added);
    }
    all & bit != 0
}

/// True if all products are right although some are not `moderate`: each of those has a dividend that is a zero or a
/// NaN.
#[inline(never)]
fn are_mended(x: &[f64], inverse: f64) -> bool {
    let [added, bit] = moderate(8);
    let is_mended = |x: &f64| (x * inverse).to_bits().wrapping_add(added) & bit != 0 || *x == 0.0 || x.is_nan();
    x.iter().all(is_mended)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A random dividend or divisor.
    fn drawn() -> f64 {
        let power = |least: i32, most: i32| 2_f64.powi(fastrand::i32(least..most)) * (1.0 + fastrand::f64());
        match fastrand::u32(..24) {
            0 => [0.0, -0.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY][fastrand::usize(..5)],
            1 => f64::from_bits(fastrand::u64(..)),
            2 => f64::from_bits(fastrand::u64(..1 << 52)),
            3 => power(-465, -450),
            4 => power(-525, -500),
            5 => power(1015, 1023),
            // All bits of the fraction are ones, or all but a few.
            6 => f64::from_bits((fastrand::u64(1020..1026) << 52) + (u64::MAX >> 12) - fastrand::u64(..3)),
            7 => -power(-3, 4),
            8 => f64::from(fastrand::i32(-9..9)),
            _ => power(-3, 4),
        }
    }

    #[test]
    fn quotients_have_the_bits_of_divisions() {
        fastrand::seed(9);
        for turn in 0..4000 {
            // Zeros and NaNs do not force divisions in a group, other special numbers do: every other turn has groups without
            // those.
            let draw: fn() -> f64 = [drawn, || 1.0 + fastrand::f64()][turn % 2];
            let (sizes, mut points) =
                ([&[0, 1, 2, 7][..], &[8, 9, 16, 40], &[200, 0, 1]][fastrand::usize(..3)], vec![5]);
            for _ in 0..fastrand::usize(1..9) {
                points.push(points[points.len() - 1] + sizes[fastrand::usize(..sizes.len())]);
            }
            let by: Vec<f64> = (1..points.len()).map(|_| drawn()).collect();
            let len = (points[by.len()] - 5) as usize;
            let mut x: Vec<f64> = (0..len).map(|_| draw()).collect();
            if len > 0 {
                x[fastrand::usize(..len)] = drawn();
            }
            let first = fastrand::usize(..3);
            let before: Vec<i64> = (0..first as i64).chain(points.iter().copied()).collect();
            let presence: Vec<u64> = (0..len.div_ceil(64)).map(|_| fastrand::u64(..)).collect();
            let presence = (turn % 3 == 0).then_some(&presence[..]);
            let strip = Strip { data: StripData::Float64(&x), presence, len };
            let groups = Strip { data: StripData::Float64(&by), presence: None, len: by.len() };
            let (mut made, mut there) = (vec![-1.0; len], vec![0; len.div_ceil(64)]);
            divide_by_groups(
                &strip,
                &groups,
                first,
                &mut StripValues::Float64(&mut made),
                Some(&mut there),
                5,
                &before,
            );
            assert!(there.iter().enumerate().all(|(at, word)| *word == presence.map_or(u64::MAX, |all| all[at])));
            for (group, ends) in points.windows(2).enumerate() {
                for at in (ends[0] - 5) as usize..(ends[1] - 5) as usize {
                    let (expected, found) = (x[at] / by[group], made[at]);
                    let is_same = expected.to_bits() == found.to_bits() || expected.is_nan() && found.is_nan();
                    assert!(is_same, "{:e} / {:e} is {expected:e}, not {found:e}", x[at], by[group]);
                }
            }
        }
    }
}
