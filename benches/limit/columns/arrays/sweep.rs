//! Going over elements eight at a time: the last ones by masks, several chains side by side, and what vectors of FLOAT64 come to.

use std::arch::x86_64::*;

/// Eight elements.
pub(crate) const EIGHT: usize = 8;

/// Calls a function with the first element of each eight, its chain, and which of the eight there are. In all calls but the
/// last few these are all, which the compiler sees.
#[inline(always)]
pub(crate) fn sweep<const CHAINS: usize>(len: usize, mut see: impl FnMut(usize, usize, __mmask8)) {
    let mut at = 0;
    while at + EIGHT * CHAINS <= len {
        for chain in 0..CHAINS {
            see(at + EIGHT * chain, chain, 0xFF);
        }
        at += EIGHT * CHAINS;
    }
    for chain in 0..CHAINS {
        let first = at + EIGHT * chain;
        if first >= len {
            break;
        }
        see(first, chain, first_of(len - first));
    }
}

/// The mask of the first so many of eight.
#[inline(always)]
pub(crate) fn first_of(left: usize) -> __mmask8 {
    if left >= EIGHT { 0xFF } else { (1 << left) - 1 }
}

/// The bits of eight elements from a multiple of eight on.
#[inline(always)]
pub(crate) fn bits_at(bits: &[u64], at: usize) -> __mmask8 {
    debug_assert!(at / 64 < bits.len());
    // SAFETY: BARE-ARRAYS: there is a bit for each element.
    unsafe { *bits.as_ptr().cast::<u8>().add(at / EIGHT) }
}

/// How many of the first bits are set.
#[inline(always)]
pub(crate) fn count(bits: &[u64], len: usize) -> usize {
    let whole: u32 = bits[..len / 64].iter().map(|word| word.count_ones()).sum();
    let rest = if len % 64 == 0 { 0 } else { (bits[len / 64] << (64 - len % 64)).count_ones() };
    (whole + rest) as usize
}

/// All elements of some chains.
#[inline(always)]
pub(crate) fn total<const CHAINS: usize>(mut chains: [__m512d; CHAINS]) -> f64 {
    let mut left = CHAINS;
    while left > 1 {
        left /= 2;
        for chain in 0..left {
            // SAFETY: FEATURE: the crate is run where the instructions are.
            chains[chain] = unsafe { _mm512_add_pd(chains[chain], chains[chain + left]) };
        }
    }
    // SAFETY: FEATURE: the crate is run where the instructions are.
    unsafe { _mm512_reduce_add_pd(chains[0]) }
}

/// Divides many by one: with its rounded inverse, and what is left of each.
#[derive(Clone, Copy)]
pub(crate) struct Divisor {
    by: __m512d,
    inverse: __m512d,
}

impl Divisor {
    /// None where that would not do: what is left would not be exact.
    #[inline(always)]
    pub(crate) fn new(by: f64) -> Option<Divisor> {
        // SAFETY: FEATURE: the crate is run where the instructions are.
        let splat = |value| unsafe { _mm512_set1_pd(value) };
        (1e-150..1e150).contains(&by).then(|| Divisor { by: splat(by), inverse: splat(1.0 / by) })
    }

    #[inline(always)]
    pub(crate) fn divide(self, x: __m512d) -> __m512d {
        // SAFETY: FEATURE: the crate is run where the instructions are.
        unsafe {
            let near = _mm512_mul_pd(x, self.inverse);
            _mm512_fmadd_pd(_mm512_fnmadd_pd(near, self.by, x), self.inverse, near)
        }
    }
}

/// Writes eight elements, past the caches if it is told to and they are all there.
///
/// # Safety
/// They are in memory of the caller's, aligned to a line if they go past the caches.
#[inline(always)]
pub(crate) unsafe fn put<const STREAM: bool>(to: *mut f64, lanes: __mmask8, values: __m512d) {
    // SAFETY: FEATURE: the crate is run where the instructions are; memory is as the caller says.
    unsafe {
        if STREAM && lanes == 0xFF {
            _mm512_stream_pd(to, values);
        } else {
            _mm512_mask_storeu_pd(to, lanes, values);
        }
    }
}
