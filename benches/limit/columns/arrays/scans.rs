//! The running sum and the running maximum of A5. In the order of the elements a sum waits for every addition: so elements that are
//! there are squeezed together before, and spread out after. A maximum seldom changes: vectors are compared with it, and are
//! looked at one element at a time where one of them is above.

use super::sweep::{EIGHT, bits_at, first_of, put, sweep};
use crate::{STREAMED, drain, fetch_ahead};
use std::arch::x86_64::*;

/// Elements that are squeezed together at a time: so few that the processor begins with the next ones while sums wait for each
/// other. It does not with a thousand, which takes half as long again.
const CHUNK: usize = 64;

/// Room for them, and for what is written behind the last.
#[repr(align(64))]
struct Room([f64; CHUNK + EIGHT]);

/// The greatest so far; a NaN is greater than all.
struct Peak {
    greatest: f64,
    vector: __m512d,
}

impl Peak {
    fn new() -> Peak {
        // SAFETY: FEATURE: the crate is run where the instructions are.
        Peak { greatest: f64::NEG_INFINITY, vector: unsafe { _mm512_set1_pd(f64::NEG_INFINITY) } }
    }

    /// The greatest up to each of eight elements.
    #[inline(always)]
    fn next(&mut self, x: __m512d, is_there: __mmask8) -> __m512d {
        // SAFETY: FEATURE: the crate is run where the instructions are.
        let above = unsafe { _mm512_mask_cmp_pd_mask::<_CMP_NLE_UQ>(is_there, x, self.vector) };
        if above == 0 { self.vector } else { self.rise(x, above) }
    }

    #[cold]
    #[inline(never)]
    fn rise(&mut self, x: __m512d, above: __mmask8) -> __m512d {
        // SAFETY: FEATURE: the crate is run where the instructions are; a vector is eight numbers.
        unsafe {
            let mut peaks: [f64; EIGHT] = std::mem::transmute(x);
            for (at, peak) in peaks.iter_mut().enumerate() {
                if above >> at & 1 != 0 && (*peak > self.greatest || peak.is_nan()) {
                    self.greatest = *peak;
                }
                *peak = self.greatest;
            }
            self.vector = _mm512_set1_pd(self.greatest);
            std::mem::transmute(peaks)
        }
    }
}

/// A5: the running sum and the running maximum, in the order of the elements.
///
/// # Safety
/// BARE-ARRAYS.
#[inline(never)]
pub unsafe fn a5(x: &[f64], is_there: &[u64], total: &mut [f64], peak: &mut [f64], are_there: [&mut [u64]; 2]) {
    are_there.into_iter().for_each(|bits| bits.copy_from_slice(is_there));
    if x.len() >= STREAMED { in_order::<true>(x, is_there, total, peak) } else { in_order::<false>(x, is_there, total, peak) }
}

#[inline(always)]
fn in_order<const FAR: bool>(x: &[f64], is_there: &[u64], total: &mut [f64], peak: &mut [f64]) {
    let mut room = Room([0.0; CHUNK + EIGHT]);
    let (mut sum, mut greatest) = (0.0, Peak::new());
    for start in (0..x.len()).step_by(CHUNK) {
        let len = CHUNK.min(x.len() - start);
        let mut squeezed = 0;
        // SAFETY: FEATURE: the crate is run where the instructions are, on slices as BARE-ARRAYS says; no more is squeezed together
        // than there is.
        unsafe {
            for at in (0..len).step_by(EIGHT) {
                let from = x.as_ptr().add(start + at);
                if FAR {
                    fetch_ahead(from.cast());
                }
                let lanes = first_of(len - at) & bits_at(is_there, start + at);
                let x = _mm512_maskz_compress_pd(lanes, _mm512_maskz_loadu_pd(lanes, from));
                _mm512_storeu_pd(room.0.as_mut_ptr().add(squeezed), x);
                squeezed += lanes.count_ones() as usize;
            }
        }
        for element in &mut room.0[..squeezed] {
            sum += *element;
            *element = sum;
        }
        squeezed = 0;
        // SAFETY: FEATURE: as above.
        unsafe {
            sweep::<4>(len, |at, _, lanes| {
                let at = start + at;
                let present = lanes & bits_at(is_there, at);
                let sums = _mm512_maskz_expand_pd(present, _mm512_loadu_pd(room.0.as_ptr().add(squeezed)));
                squeezed += present.count_ones() as usize;
                put::<FAR>(total.as_mut_ptr().add(at), lanes, sums);
                let peaks = greatest.next(_mm512_maskz_loadu_pd(lanes, x.as_ptr().add(at)), present);
                put::<FAR>(peak.as_mut_ptr().add(at), lanes, peaks);
            });
        }
    }
    if FAR {
        drain();
    }
}

/// The same with sums of sums of neighbours.
///
/// # Safety
/// BARE-ARRAYS.
#[inline(never)]
pub unsafe fn a5_any_order(
    x: &[f64],
    is_there: &[u64],
    total: &mut [f64],
    peak: &mut [f64],
    are_there: [&mut [u64]; 2],
) {
    are_there.into_iter().for_each(|bits| bits.copy_from_slice(is_there));
    if x.len() >= STREAMED { by_eights::<true>(x, is_there, total, peak) } else { by_eights::<false>(x, is_there, total, peak) }
}

#[inline(always)]
fn by_eights<const FAR: bool>(x: &[f64], is_there: &[u64], total: &mut [f64], peak: &mut [f64]) {
    let mut greatest = Peak::new();
    // SAFETY: FEATURE: the crate is run where the instructions are, on slices as BARE-ARRAYS says.
    unsafe {
        let (zero, last) = (_mm512_setzero_si512(), _mm512_set1_epi64(7));
        let mut before = _mm512_setzero_pd();
        sweep::<4>(x.len(), |at, _, lanes| {
            let from = x.as_ptr().add(at);
            if FAR {
                fetch_ahead(from.cast());
            }
            let present = lanes & bits_at(is_there, at);
            let x = _mm512_maskz_loadu_pd(present, from);
            let mut sums = x;
            sums = _mm512_add_pd(sums, _mm512_castsi512_pd(_mm512_alignr_epi64::<7>(_mm512_castpd_si512(sums), zero)));
            sums = _mm512_add_pd(sums, _mm512_castsi512_pd(_mm512_alignr_epi64::<6>(_mm512_castpd_si512(sums), zero)));
            sums = _mm512_add_pd(sums, _mm512_castsi512_pd(_mm512_alignr_epi64::<4>(_mm512_castpd_si512(sums), zero)));
            put::<FAR>(total.as_mut_ptr().add(at), lanes, _mm512_add_pd(before, sums));
            before = _mm512_add_pd(before, _mm512_permutexvar_pd(last, sums));
            put::<FAR>(peak.as_mut_ptr().add(at), lanes, greatest.next(x, present));
        });
    }
    if FAR {
        drain();
    }
}
