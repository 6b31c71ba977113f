//! The order statistics of A6: quickselect whose partition squeezes vectors together, down to a few elements that are all compared
//! with each other. The first partition of a group, about its median, is for both ranks.

use super::rank_at;
use super::sweep::{EIGHT, first_of, sweep};
use crate::{STREAMED, fetch_ahead};
use std::arch::x86_64::*;

/// How many vectors are few.
const FEW: usize = 2;

/// How much longer than the longest group the rooms are.
pub const SPARE: usize = EIGHT * (FEW + 1);

/// A6: the place of the greatest, the median and the ninth decile of the groups between the points.
///
/// # Safety
/// BARE-ARRAYS.
#[inline(never)]
pub unsafe fn a6(
    x: &[f64],
    points: &[i64],
    rooms: [&mut [f64]; 4],
    (best, middle, p90, are_there): (&mut [i64], &mut [f64], &mut [f64], [&mut [u64]; 3]),
) {
    let rooms = rooms.map(|room| room.as_mut_ptr());
    let is_far = x.len() >= STREAMED;
    let [first, second, third] = are_there;
    first.fill(0);
    for (group, ends) in points.windows(2).enumerate() {
        let (start, end) = (ends[0] as usize, ends[1] as usize);
        if is_far {
            (start..end).step_by(EIGHT).for_each(|at| fetch_ahead(x.as_ptr().wrapping_add(at).cast()));
        }
        if start < end {
            // SAFETY: FEATURE: the crate is run where the instructions are; the rooms are as the caller says.
            (best[group], middle[group], p90[group]) = unsafe { statistics(&x[start..end], rooms) };
            first[group / 64] |= 1 << (group % 64);
        }
    }
    second.copy_from_slice(first);
    third.copy_from_slice(first);
}

/// Of a group that is not empty.
///
/// # Safety
/// BARE-ARRAYS.
#[inline(always)]
unsafe fn statistics(x: &[f64], [lows, highs, a, b]: [*mut f64; 4]) -> (i64, f64, f64) {
    let (len, from) = (x.len(), x.as_ptr());
    // SAFETY: FEATURE: the crate is run where the instructions are; the rooms are long enough.
    unsafe {
        let best = greatest(x);
        if x[best].is_nan() {
            return (best as i64, x[best], x[best]);
        }
        let (middle, high) = ((len - 1) / 2, rank_at(0.9, len));
        if len <= EIGHT * FEW {
            sweep::<1>(len, |at, _, lanes| {
                _mm512_mask_storeu_pd(a.add(at), lanes, _mm512_maskz_loadu_pd(lanes, from.add(at)));
            });
            return (best as i64, among_few(a, len, middle), among_few(a, len, high));
        }
        let below = partition(from, len, middle_of_five(x), lows, highs);
        let of = |rank: usize| {
            if rank < below {
                select(lows, below, rank, [a, b])
            } else {
                select(highs, len - below, rank - below, [a, b])
            }
        };
        (best as i64, of(middle), of(high))
    }
}

/// The place of the greatest, or of the first NaN.
///
/// # Safety
/// BARE-ARRAYS.
#[inline(always)]
unsafe fn greatest(x: &[f64]) -> usize {
    // SAFETY: FEATURE: the crate is run where the instructions are.
    unsafe {
        let least = _mm512_set1_pd(f64::NEG_INFINITY);
        let mut greatest = [least; 4];
        let mut nan = 0;
        sweep::<4>(x.len(), |at, chain, lanes| {
            let x = _mm512_mask_loadu_pd(least, lanes, x.as_ptr().add(at));
            nan |= _mm512_cmp_pd_mask::<_CMP_UNORD_Q>(x, x);
            greatest[chain] = _mm512_max_pd(greatest[chain], x);
        });
        if nan != 0 {
            return x.iter().position(|x| x.is_nan()).unwrap_or(0);
        }
        let [a, b, c, d] = greatest;
        let greatest = _mm512_reduce_max_pd(_mm512_max_pd(_mm512_max_pd(a, b), _mm512_max_pd(c, d)));
        let greatest = _mm512_set1_pd(greatest);
        let mut at = 0;
        loop {
            let lanes = first_of(x.len() - at);
            let x = _mm512_maskz_loadu_pd(lanes, x.as_ptr().add(at));
            let found = _mm512_mask_cmp_pd_mask::<_CMP_EQ_OQ>(lanes, x, greatest);
            if found != 0 {
                return at + found.trailing_zeros() as usize;
            }
            at += EIGHT;
        }
    }
}

/// The median of five elements from all over.
#[inline(always)]
fn middle_of_five(x: &[f64]) -> f64 {
    let step = (x.len() - 1) / 4;
    let [a, b, c, d, e] = [0, 1, 2, 3, 4].map(|at| x[at * step]);
    let sorted = |a: f64, b: f64| if a < b { (a, b) } else { (b, a) };
    let ((a, b), (c, d)) = (sorted(a, b), sorted(c, d));
    let (_, low) = sorted(a, c);
    let (high, _) = sorted(b, d);
    // The least and the greatest of four are gone.
    let (low, high) = sorted(low, high);
    sorted(low, sorted(e, high).0).1
}

/// Those below a pivot go here, all others there; how many are below. Either room may be where they come from.
///
/// # Safety
/// BARE-ARRAYS.
#[inline(always)]
unsafe fn partition(from: *const f64, len: usize, pivot: f64, lows: *mut f64, highs: *mut f64) -> usize {
    // SAFETY: FEATURE: the crate is run where the instructions are; no more is written than was read, but for the rest of a vector.
    unsafe {
        let pivot = _mm512_set1_pd(pivot);
        let mut below = 0;
        sweep::<2>(len, |at, _, lanes| {
            let x = _mm512_maskz_loadu_pd(lanes, from.add(at));
            let low = _mm512_mask_cmp_pd_mask::<_CMP_LT_OQ>(lanes, x, pivot);
            _mm512_storeu_pd(lows.add(below), _mm512_maskz_compress_pd(low, x));
            _mm512_storeu_pd(highs.add(at - below), _mm512_maskz_compress_pd(lanes & !low, x));
            below += low.count_ones() as usize;
        });
        below
    }
}

/// The element of a rank.
///
/// # Safety
/// BARE-ARRAYS.
#[inline(always)]
unsafe fn select(mut from: *mut f64, mut len: usize, mut rank: usize, [lows, highs]: [*mut f64; 2]) -> f64 {
    // SAFETY: FEATURE: the crate is run where the instructions are; the rooms are long enough.
    unsafe {
        while len > EIGHT * FEW {
            let pivot = middle_of_five(std::slice::from_raw_parts(from, len));
            let below = partition(from, len, pivot, lows, highs);
            if rank < below {
                (from, len) = (lows, below);
            } else if below > 0 {
                (from, len, rank) = (highs, len - below, rank - below);
            } else {
                // The pivot is the least: those that are equal go.
                let equal = partition(from, len, pivot.next_up(), lows, highs);
                if rank < equal {
                    return pivot;
                }
                (from, len, rank) = (highs, len - equal, rank - equal);
            }
        }
        among_few(from, len, rank)
    }
}

/// The element of a rank: the greatest that few enough are below.
///
/// # Safety
/// BARE-ARRAYS.
#[inline(always)]
unsafe fn among_few(from: *mut f64, len: usize, rank: usize) -> f64 {
    // SAFETY: FEATURE: the crate is run where the instructions are; behind the last there is room.
    unsafe {
        let infinity = _mm512_set1_pd(f64::INFINITY);
        _mm512_storeu_pd(from.add(len), infinity);
        if len <= EIGHT {
            return among::<1>(from, rank);
        }
        _mm512_storeu_pd(from.add(len + EIGHT), infinity);
        among::<FEW>(from, rank)
    }
}

/// # Safety
/// BARE-ARRAYS.
#[inline(always)]
unsafe fn among<const N: usize>(from: *const f64, rank: usize) -> f64 {
    // SAFETY: FEATURE: the crate is run where the instructions are.
    unsafe {
        let (one, rank) = (_mm512_set1_epi64(1), _mm512_set1_epi64(rank as i64));
        let x: [_; N] = std::array::from_fn(|at| _mm512_loadu_pd(from.add(EIGHT * at)));
        let mut below = [_mm512_setzero_si512(); N];
        for other in 0..EIGHT * N {
            let other = _mm512_set1_pd(*from.add(other));
            for at in 0..N {
                let is_below = _mm512_cmp_pd_mask::<_CMP_LT_OQ>(other, x[at]);
                below[at] = _mm512_mask_add_epi64(below[at], is_below, below[at], one);
            }
        }
        let mut best = _mm512_set1_pd(f64::NEG_INFINITY);
        for at in 0..N {
            let few = _mm512_cmple_epi64_mask(below[at], rank);
            best = _mm512_mask_max_pd(best, few, best, x[at]);
        }
        _mm512_reduce_max_pd(best)
    }
}
