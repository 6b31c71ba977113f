//! The softmax within contiguous groups of A4: the greatest, the powers and their sum, the shares. A group is in the first-level
//! cache from the first pass to the last.

use super::sweep::{Divisor, EIGHT, first_of, sweep};
use crate::lanes::{DoubleLanes, Lanes, Pair};
use crate::{STREAMED, fetch_ahead};
use std::arch::x86_64::*;

/// A4: `exp(x) / sum(exp(x))` in the groups between the points.
///
/// # Safety
/// BARE-ARRAYS.
#[inline(never)]
pub unsafe fn a4(x: &[f64], points: &[i64], p: &mut [f64]) {
    let is_far = x.len() >= STREAMED;
    for ends in points.windows(2) {
        let (start, end) = (ends[0] as usize, ends[1] as usize);
        if is_far {
            (start..end).step_by(EIGHT).for_each(|at| fetch_ahead(x.as_ptr().wrapping_add(at).cast()));
        }
        shares(&x[start..end], &mut p[start..end]);
    }
}

#[inline(always)]
fn shares(x: &[f64], p: &mut [f64]) {
    // SAFETY: FEATURE: the crate is run where the instructions are; both slices are of one length.
    unsafe {
        let least = _mm512_set1_pd(f64::NEG_INFINITY);
        let mut greatest = [least; 4];
        sweep::<4>(x.len(), |at, chain, lanes| {
            let x = _mm512_mask_loadu_pd(least, lanes, x.as_ptr().add(at));
            greatest[chain] = _mm512_max_pd(x, greatest[chain]);
        });
        let [a, b, c, d] = greatest;
        let greatest = _mm512_reduce_max_pd(_mm512_max_pd(_mm512_max_pd(a, b), _mm512_max_pd(c, d)));
        let greatest = _mm512_set1_pd(greatest);
        let mut sums = Pair(_mm512_setzero_pd(), _mm512_setzero_pd());
        let mut at = 0;
        while at < x.len() {
            let (from, to, left) = (x.as_ptr().add(at), p.as_mut_ptr().add(at), x.len() - at);
            if left <= EIGHT {
                let lanes = first_of(left);
                let power = _mm512_sub_pd(_mm512_maskz_loadu_pd(lanes, from), greatest).exp();
                _mm512_mask_storeu_pd(to, lanes, power);
                sums.0 = _mm512_mask_add_pd(sums.0, lanes, sums.0, power);
            } else {
                let lanes = first_of(left - EIGHT);
                let second = _mm512_maskz_loadu_pd(lanes, from.add(EIGHT));
                let power = Pair(_mm512_loadu_pd(from), second).sub(Pair(greatest, greatest)).exp();
                _mm512_storeu_pd(to, power.0);
                _mm512_mask_storeu_pd(to.add(EIGHT), lanes, power.1);
                sums.0 = _mm512_add_pd(sums.0, power.0);
                sums.1 = _mm512_mask_add_pd(sums.1, lanes, sums.1, power.1);
            }
            at += 2 * EIGHT;
        }
        let sum = _mm512_reduce_add_pd(_mm512_add_pd(sums.0, sums.1));
        let Some(divisor) = Divisor::new(sum) else { return p.fill(f64::NAN) };
        let p = p.as_mut_ptr();
        sweep::<2>(x.len(), |at, _, lanes| {
            let power = _mm512_maskz_loadu_pd(lanes, p.add(at));
            _mm512_mask_storeu_pd(p.add(at), lanes, divisor.divide(power));
        });
    }
}
