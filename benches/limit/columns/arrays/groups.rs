//! Groups that elements name: the sums of A3, the outliers of A8. A table has a sum and a count for each group, added to as one
//! pair; its sums are in the order of the elements.

use super::Gathered;
use super::sweep::{EIGHT, bits_at, sweep};
use crate::{STREAMED, fetch_ahead};
use std::arch::x86_64::*;

/// Elements of one step, and their groups.
#[repr(align(64))]
struct Step {
    pairs: [__m128d; EIGHT],
    groups: [u64; EIGHT],
}

/// Adds the elements to the sums of their groups.
#[inline(always)]
fn gather<const FAR: bool>(
    by: &[i64],
    is_in: Option<&[u64]>,
    table: &mut [Gathered],
    elements: impl Fn(usize, __mmask8) -> __m512d,
) {
    table.fill([0.0; 2]);
    let none = (table.len() - 1) as i64;
    // SAFETY: FEATURE: the crate is run where the instructions are; groups are of the table, as BARE-ARRAYS says.
    unsafe {
        let (one, none) = (_mm512_set1_pd(1.0), _mm512_set1_epi64(none));
        let mut step = Step { pairs: [_mm_setzero_pd(); EIGHT], groups: [0; EIGHT] };
        let table = table.as_mut_ptr().cast::<u8>();
        sweep::<2>(by.len(), |at, _, lanes| {
            let by = by.as_ptr().add(at);
            if FAR {
                fetch_ahead(by.cast());
            }
            let values = elements(at, lanes);
            let known = lanes & is_in.map_or(0xFF, |bits| bits_at(bits, at));
            let groups = _mm512_mask_loadu_epi64(none, known, by);
            _mm512_store_si512(step.groups.as_mut_ptr().cast(), _mm512_slli_epi64::<4>(groups));
            // The even ones, then the odd ones, each with the 1 that it counts.
            let pairs = step.pairs.as_mut_ptr().cast::<f64>();
            _mm512_store_pd(pairs, _mm512_unpacklo_pd(values, one));
            _mm512_store_pd(pairs.add(EIGHT), _mm512_unpackhi_pd(values, one));
            for element in 0..EIGHT {
                let place = table.add(step.groups[element] as usize).cast::<f64>();
                let pair = step.pairs[element / 2 + element % 2 * (EIGHT / 2)];
                _mm_store_pd(place, _mm_add_pd(_mm_load_pd(place), pair));
            }
        });
    }
}

/// A3: the sum, the mean and the number of `x * w` by group.
///
/// # Safety
/// BARE-ARRAYS.
#[inline(never)]
pub unsafe fn a3(
    (x, w): (&[f64], &[f64]),
    (by, is_in): (&[i64], Option<&[u64]>),
    table: &mut [Gathered],
    (total, average, average_is_there, rows): (&mut [f64], &mut [f64], &mut [u64], &mut [i64]),
) {
    // SAFETY: FEATURE: the crate is run where the instructions are, on slices as BARE-ARRAYS says.
    let product = |at: usize, lanes| unsafe {
        _mm512_mul_pd(_mm512_maskz_loadu_pd(lanes, x.as_ptr().add(at)), _mm512_maskz_loadu_pd(lanes, w.as_ptr().add(at)))
    };
    if by.len() >= STREAMED {
        gather::<true>(by, is_in, table, |at, lanes| {
            fetch_ahead(x.as_ptr().wrapping_add(at).cast());
            fetch_ahead(w.as_ptr().wrapping_add(at).cast());
            product(at, lanes)
        });
    } else {
        gather::<false>(by, is_in, table, product);
    }
    average_is_there.fill(0);
    for (group, [sum, count]) in table[..total.len()].iter().enumerate() {
        total[group] = *sum;
        average[group] = sum / count;
        average_is_there[group / 64] |= u64::from(*count > 0.0) << (group % 64);
        rows[group] = *count as i64;
    }
}

/// A8: how many elements are further than two standard deviations from the mean of their group.
///
/// # Safety
/// BARE-ARRAYS.
#[inline(never)]
pub unsafe fn a8(
    x: &[f64],
    (by, is_in): (&[i64], Option<&[u64]>),
    table: &mut [Gathered],
    spread: &mut [[f64; 2]],
) -> i64 {
    if x.len() >= STREAMED {
        outliers::<true>(x, (by, is_in), table, spread)
    } else {
        outliers::<false>(x, (by, is_in), table, spread)
    }
}

#[inline(always)]
fn outliers<const FAR: bool>(
    x: &[f64],
    (by, is_in): (&[i64], Option<&[u64]>),
    table: &mut [Gathered],
    spread: &mut [[f64; 2]],
) -> i64 {
    let far = |x: *const f64| {
        if FAR {
            fetch_ahead(x.cast());
        }
    };
    // SAFETY: FEATURE: the crate is run where the instructions are, on slices as BARE-ARRAYS says.
    gather::<FAR>(by, is_in, table, |at, lanes| unsafe {
        let x = x.as_ptr().add(at);
        far(x);
        _mm512_maskz_loadu_pd(lanes, x)
    });
    // Means, with what the squares are added to.
    for (spread, [sum, count]) in spread.iter_mut().zip(&*table) {
        *spread = [sum / count, 0.0];
    }
    let none = spread.len() - 1;
    // SAFETY: FEATURE: as above; groups are of the table.
    unsafe {
        let squares = |at: usize, group: usize, spread: *mut [f64; 2]| {
            let [mean, sum] = &mut *spread.add(group);
            let d = *x.get_unchecked(at) - *mean;
            *sum += d * d;
        };
        let places = spread.as_mut_ptr();
        for start in (0..x.len()).step_by(EIGHT) {
            if FAR {
                far(x.as_ptr().wrapping_add(start));
                fetch_ahead(by.as_ptr().wrapping_add(start).cast());
            }
            let end = (start + EIGHT).min(x.len());
            match is_in {
                None if end - start == EIGHT => {
                    (0..EIGHT).for_each(|i| squares(start + i, *by.get_unchecked(start + i) as usize, places));
                }
                _ => (start..end).for_each(|at| {
                    let is_in = is_in.is_none_or(|bits| bits[at / 64] >> (at % 64) & 1 != 0);
                    squares(at, if is_in { by[at] as usize } else { none }, places);
                }),
            }
        }
    }
    // Means, with how far from them is too far; nothing is beyond a NaN.
    for ([_, bound], [_, count]) in spread.iter_mut().zip(&*table) {
        *bound = if *count > 1.0 { 2.0 * (*bound / (count - 1.0)).sqrt() } else { f64::NAN };
    }
    spread[none] = [f64::NAN; 2];
    let mut found = 0;
    // SAFETY: FEATURE: as above.
    unsafe {
        let none = _mm512_set1_epi64(none as i64);
        let places = spread.as_ptr().cast::<f64>();
        sweep::<2>(x.len(), |at, _, lanes| {
            let (x, by) = (x.as_ptr().add(at), by.as_ptr().add(at));
            far(x);
            if FAR {
                fetch_ahead(by.cast());
            }
            let known = lanes & is_in.map_or(0xFF, |bits| bits_at(bits, at));
            let index = _mm512_slli_epi64::<1>(_mm512_mask_loadu_epi64(none, known, by));
            let mean = _mm512_i64gather_pd::<8>(index, places);
            let bound = _mm512_i64gather_pd::<8>(index, places.add(1));
            let d = _mm512_abs_pd(_mm512_sub_pd(_mm512_maskz_loadu_pd(lanes, x), mean));
            found += i64::from(_mm512_cmp_pd_mask::<_CMP_GT_OQ>(d, bound).count_ones());
        });
    }
    found
}
