//! Sums over everything: the dot product of A1, the standard scores of A2, the logistic curve of A7.

use super::sweep::{Divisor, bits_at, count, put, sweep, total};
use crate::lanes::{Lanes, Pair, SingleLanes};
use crate::{STREAMED, drain, fetch_ahead};
use std::arch::x86_64::*;

/// A1: the sum of `x * y` where `x` is there and positive.
///
/// # Safety
/// BARE-ARRAYS.
#[inline(never)]
pub unsafe fn a1(x: &[f64], is_there: &[u64], y: &[f64]) -> f64 {
    if x.len() >= STREAMED { dot::<true>(x, is_there, y) } else { dot::<false>(x, is_there, y) }
}

#[inline(always)]
fn dot<const FAR: bool>(x: &[f64], is_there: &[u64], y: &[f64]) -> f64 {
    // SAFETY: FEATURE: the crate is run where the instructions are, on slices as BARE-ARRAYS says.
    unsafe {
        let zero = _mm512_setzero_pd();
        let mut sums = [zero; 8];
        sweep::<8>(x.len(), |at, chain, lanes| {
            let (x, y) = (x.as_ptr().add(at), y.as_ptr().add(at));
            if FAR {
                fetch_ahead(x.cast());
                fetch_ahead(y.cast());
            }
            let x = _mm512_maskz_loadu_pd(lanes & bits_at(is_there, at), x);
            let positive = _mm512_cmp_pd_mask::<_CMP_GT_OQ>(x, zero);
            let product = _mm512_mul_pd(x, _mm512_maskz_loadu_pd(lanes, y));
            sums[chain] = _mm512_mask_add_pd(sums[chain], positive, sums[chain], product);
        });
        total(sums)
    }
}

/// A2: `(x - mean) / std`.
///
/// # Safety
/// BARE-ARRAYS.
#[inline(never)]
pub unsafe fn a2(x: &[f64], is_there: &[u64], z: &mut [f64], z_is_there: &mut [u64]) {
    if x.len() >= STREAMED {
        scores::<true>(x, is_there, z, z_is_there);
    } else {
        scores::<false>(x, is_there, z, z_is_there);
    }
}

#[inline(always)]
fn scores<const FAR: bool>(x: &[f64], is_there: &[u64], z: &mut [f64], z_is_there: &mut [u64]) {
    let present = count(is_there, x.len());
    if present < 2 {
        z_is_there.fill(0);
        return;
    }
    z_is_there.copy_from_slice(is_there);
    let far = |x: *const f64| {
        if FAR {
            fetch_ahead(x.cast());
        }
    };
    // SAFETY: FEATURE: the crate is run where the instructions are, on slices as BARE-ARRAYS says.
    unsafe {
        let zero = _mm512_setzero_pd();
        let mut sums = [zero; 8];
        sweep::<8>(x.len(), |at, chain, lanes| {
            let x = x.as_ptr().add(at);
            far(x);
            sums[chain] = _mm512_add_pd(sums[chain], _mm512_maskz_loadu_pd(lanes & bits_at(is_there, at), x));
        });
        let mean = _mm512_set1_pd(total(sums) / present as f64);
        let mut squares = [zero; 8];
        sweep::<8>(x.len(), |at, chain, lanes| {
            let x = x.as_ptr().add(at);
            far(x);
            let d = _mm512_sub_pd(_mm512_maskz_loadu_pd(lanes, x), mean);
            squares[chain] = _mm512_mask3_fmadd_pd(d, d, squares[chain], lanes & bits_at(is_there, at));
        });
        let deviation = (total(squares) / (present - 1) as f64).sqrt();
        let divisor = Divisor::new(deviation);
        let deviation = _mm512_set1_pd(deviation);
        let mut write = |divide: &dyn Fn(__m512d) -> __m512d| {
            // What is not as usual is slow.
            sweep::<1>(x.len(), |at, _, lanes| {
                let d = _mm512_sub_pd(_mm512_maskz_loadu_pd(lanes, x.as_ptr().add(at)), mean);
                put::<false>(z.as_mut_ptr().add(at), lanes, divide(d));
            });
        };
        let Some(divisor) = divisor else { return write(&|d| _mm512_div_pd(d, deviation)) };
        sweep::<4>(x.len(), |at, _, lanes| {
            let x = x.as_ptr().add(at);
            far(x);
            let d = _mm512_sub_pd(_mm512_maskz_loadu_pd(lanes, x), mean);
            put::<FAR>(z.as_mut_ptr().add(at), lanes, divisor.divide(d));
        });
        if FAR {
            drain();
        }
    }
}

/// A7: the sum and the mean of `1 / (1 + exp(-(x * k + c)))`, added in FLOAT64.
///
/// # Safety
/// BARE-ARRAYS.
#[inline(never)]
pub unsafe fn a7(x: &[f32], k: f32, c: f32) -> (f32, f32) {
    if x.len() >= STREAMED { curve::<true>(x, k, c) } else { curve::<false>(x, k, c) }
}

#[inline(always)]
fn curve<const FAR: bool>(x: &[f32], k: f32, c: f32) -> (f32, f32) {
    const STEP: usize = 32;
    // SAFETY: FEATURE: the crate is run where the instructions are; a step is of elements of the slice, or of the room.
    unsafe {
        let mut sums = [_mm512_setzero_pd(); 4];
        let mut add = |from: *const f32, left: usize| {
            let x = Pair::<__m512>::load(from.cast());
            let t = x.mul(Pair::splat(k)).add(Pair::splat(c));
            let s = Pair::splat(1.0).add(t.neg().exp()).reciprocal();
            for (half, s) in [s.0, s.1].into_iter().enumerate() {
                let low = _mm512_cvtps_pd(_mm512_castps512_ps256(s));
                let high = _mm512_cvtps_pd(_mm512_extractf32x8_ps::<1>(s));
                for (quarter, s) in [low, high].into_iter().enumerate() {
                    let at = 2 * half + quarter;
                    let lanes = if left >= STEP { 0xFF } else { super::sweep::first_of(left.saturating_sub(8 * at)) };
                    sums[at] = _mm512_mask_add_pd(sums[at], lanes, sums[at], s);
                }
            }
        };
        let (steps, rest) = x.as_chunks::<STEP>();
        for step in steps {
            if FAR {
                fetch_ahead(step.as_ptr().cast());
                fetch_ahead(step.as_ptr().add(16).cast());
            }
            add(step.as_ptr(), STEP);
        }
        if !rest.is_empty() {
            let mut room = [0.0; STEP];
            room[..rest.len()].copy_from_slice(rest);
            add(room.as_ptr(), rest.len());
        }
        let sum = total(sums);
        (sum as f32, (sum / x.len() as f64) as f32)
    }
}
