//! Lanes of 256 bits: AVX2 with fused multiply-add.

use crate::lanes::{Lanes, Widened};
use crate::polynomials::Instructions;
use std::arch::x86_64::*;

/// Eight FLOAT32 values.
pub(crate) type Singles = __m256;
/// Four FLOAT64 values.
pub(crate) type Doubles = __m256d;

/// What both types do alike.
macro_rules! alike {
    ($element:ty, $rows:expr, $load:ident $store:ident $stream:ident $splat:ident $add:ident
     $sub:ident $mul:ident $div:ident $fma:ident $min:ident $max:ident $and:ident $andnot:ident $xor:ident $sqrt:ident $compare:ident
     $select:ident $movemask:ident $ones:expr) => {
        type Element = $element;
        type Mask = Self;
        const ROWS: usize = $rows;

        #[inline(always)]
        // SAFETY: BARE-COLUMNS, as the trait says.
        unsafe fn load(from: *const u8) -> Self {
            // SAFETY: FEATURE: the crate is run where the instructions are; memory is as BARE-COLUMNS says.
            unsafe { $load(from.cast()) }
        }

        #[inline(always)]
        // SAFETY: BARE-COLUMNS, as the trait says.
        unsafe fn load_or(from: *const u8, bits: u32, default: $element) -> Self {
            // SAFETY: FEATURE: the crate is run where the instructions are; memory is as BARE-COLUMNS says.
            unsafe { $select(Self::splat(default), Self::load(from), $ones(bits)) }
        }

        #[inline(always)]
        // SAFETY: BARE-COLUMNS, as the trait says.
        unsafe fn store(self, to: *mut u8) {
            // SAFETY: FEATURE: the crate is run where the instructions are; memory is as BARE-COLUMNS says.
            unsafe { $store(to.cast(), self) }
        }

        #[inline(always)]
        // SAFETY: BARE-COLUMNS, as the trait says.
        unsafe fn stream(self, to: *mut u8) {
            // SAFETY: FEATURE: the crate is run where the instructions are; memory is as BARE-COLUMNS says.
            unsafe { $stream(to.cast(), self) }
        }

        #[inline(always)]
        fn splat(value: $element) -> Self {
            // SAFETY: FEATURE: the crate is run where the instructions are; memory is as BARE-COLUMNS says.
            unsafe { $splat(value) }
        }

        #[inline(always)]
        fn add(self, other: Self) -> Self {
            // SAFETY: FEATURE: the crate is run where the instructions are; memory is as BARE-COLUMNS says.
            unsafe { $add(self, other) }
        }

        #[inline(always)]
        fn sub(self, other: Self) -> Self {
            // SAFETY: FEATURE: the crate is run where the instructions are; memory is as BARE-COLUMNS says.
            unsafe { $sub(self, other) }
        }

        #[inline(always)]
        fn mul(self, other: Self) -> Self {
            // SAFETY: FEATURE: the crate is run where the instructions are; memory is as BARE-COLUMNS says.
            unsafe { $mul(self, other) }
        }

        #[inline(always)]
        fn div(self, other: Self) -> Self {
            // SAFETY: FEATURE: the crate is run where the instructions are; memory is as BARE-COLUMNS says.
            unsafe { $div(self, other) }
        }

        #[inline(always)]
        fn fma(self, factor: Self, term: Self) -> Self {
            // SAFETY: FEATURE: the crate is run where the instructions are; memory is as BARE-COLUMNS says.
            unsafe { $fma(self, factor, term) }
        }

        #[inline(always)]
        fn min(self, other: Self) -> Self {
            // SAFETY: FEATURE: the crate is run where the instructions are; memory is as BARE-COLUMNS says.
            unsafe { $min(self, other) }
        }

        #[inline(always)]
        fn max(self, other: Self) -> Self {
            // SAFETY: FEATURE: the crate is run where the instructions are; memory is as BARE-COLUMNS says.
            unsafe { $max(self, other) }
        }

        #[inline(always)]
        fn abs(self) -> Self {
            // SAFETY: FEATURE: the crate is run where the instructions are; memory is as BARE-COLUMNS says.
            unsafe { $andnot(Self::splat(-0.0), self) }
        }

        #[inline(always)]
        fn neg(self) -> Self {
            // SAFETY: FEATURE: the crate is run where the instructions are; memory is as BARE-COLUMNS says.
            unsafe { $xor(self, Self::splat(-0.0)) }
        }

        #[inline(always)]
        fn sqrt(self) -> Self {
            // SAFETY: FEATURE: the crate is run where the instructions are; memory is as BARE-COLUMNS says.
            unsafe { $sqrt(self) }
        }

        #[inline(always)]
        fn less(self, other: Self) -> Self {
            // SAFETY: FEATURE: the crate is run where the instructions are; memory is as BARE-COLUMNS says.
            unsafe { $compare::<_CMP_LT_OQ>(self, other) }
        }

        #[inline(always)]
        fn at_least(self, other: Self) -> Self {
            // SAFETY: FEATURE: the crate is run where the instructions are; memory is as BARE-COLUMNS says.
            unsafe { $compare::<_CMP_GE_OQ>(self, other) }
        }

        #[inline(always)]
        fn both(a: Self, b: Self) -> Self {
            // SAFETY: FEATURE: the crate is run where the instructions are; memory is as BARE-COLUMNS says.
            unsafe { $and(a, b) }
        }

        #[inline(always)]
        fn select(mask: Self, then: Self, otherwise: Self) -> Self {
            // SAFETY: FEATURE: the crate is run where the instructions are; memory is as BARE-COLUMNS says.
            unsafe { $select(otherwise, then, mask) }
        }

        #[inline(always)]
        fn bits(mask: Self) -> u32 {
            // SAFETY: FEATURE: the crate is run where the instructions are; memory is as BARE-COLUMNS says.
            unsafe { $movemask(mask) as u32 }
        }
    };
}

/// All bits of a value whose bit is set.
#[inline(always)]
fn single_ones(bits: u32) -> __m256 {
    // SAFETY: FEATURE: the crate is run where the instructions are; memory is as BARE-COLUMNS says.
    unsafe {
        let each = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
        let chosen = _mm256_and_si256(_mm256_set1_epi32(bits as i32), each);
        _mm256_castsi256_ps(_mm256_cmpeq_epi32(chosen, each))
    }
}

#[inline(always)]
fn double_ones(bits: u32) -> __m256d {
    // SAFETY: FEATURE: the crate is run where the instructions are; memory is as BARE-COLUMNS says.
    unsafe {
        let each = _mm256_setr_epi64x(1, 2, 4, 8);
        let chosen = _mm256_and_si256(_mm256_set1_epi64x(bits.into()), each);
        _mm256_castsi256_pd(_mm256_cmpeq_epi64(chosen, each))
    }
}

impl Lanes for __m256 {
    alike! {
        f32, 8, _mm256_loadu_ps _mm256_storeu_ps _mm256_stream_ps _mm256_set1_ps _mm256_add_ps _mm256_sub_ps _mm256_mul_ps _mm256_div_ps _mm256_fmadd_ps _mm256_min_ps _mm256_max_ps _mm256_and_ps _mm256_andnot_ps _mm256_xor_ps _mm256_sqrt_ps _mm256_cmp_ps _mm256_blendv_ps _mm256_movemask_ps single_ones
    }
}

impl Instructions for __m256 {
    #[inline(always)]
    fn power_of_two(self) -> Self {
        let biased = self.add(Self::splat(12_582_912.0 + 127.0));
        // SAFETY: FEATURE: the crate is run where the instructions are; memory is as BARE-COLUMNS says.
        unsafe { _mm256_castsi256_ps(_mm256_slli_epi32::<23>(_mm256_castps_si256(biased))) }
    }

    #[inline(always)]
    fn split(self) -> (Self, Self) {
        // SAFETY: FEATURE: the crate is run where the instructions are; memory is as BARE-COLUMNS says.
        unsafe {
            let shifted = _mm256_add_epi32(_mm256_castps_si256(self), _mm256_set1_epi32(0x004A_FB0D));
            let mantissa = _mm256_and_si256(shifted, _mm256_set1_epi32(0x007F_FFFF));
            let mantissa = _mm256_add_epi32(mantissa, _mm256_set1_epi32(0x3F35_04F3));
            let exponent = _mm256_sub_epi32(_mm256_srli_epi32::<23>(shifted), _mm256_set1_epi32(127));
            (_mm256_castsi256_ps(mantissa), _mm256_cvtepi32_ps(exponent))
        }
    }

    #[inline(always)]
    fn any(mask: Self) -> bool {
        Self::bits(mask) != 0
    }

    #[inline(always)]
    fn not(mask: Self) -> Self {
        // SAFETY: FEATURE: the crate is run where the instructions are; memory is as BARE-COLUMNS says.
        unsafe { _mm256_xor_ps(mask, single_ones(255)) }
    }
}

impl Lanes for __m256d {
    alike! {
        f64, 4, _mm256_loadu_pd _mm256_storeu_pd _mm256_stream_pd _mm256_set1_pd _mm256_add_pd _mm256_sub_pd _mm256_mul_pd _mm256_div_pd _mm256_fmadd_pd _mm256_min_pd _mm256_max_pd _mm256_and_pd _mm256_andnot_pd _mm256_xor_pd _mm256_sqrt_pd _mm256_cmp_pd _mm256_blendv_pd _mm256_movemask_pd double_ones
    }
}

impl Widened for __m256d {
    #[inline(always)]
    // SAFETY: BARE-COLUMNS, as the trait says.
    unsafe fn widened(from: *const u8, factor: f32) -> (Self, Self) {
        // SAFETY: FEATURE: the crate is run where the instructions are; memory is as BARE-COLUMNS says.
        unsafe {
            let value = _mm_loadu_ps(from.cast());
            let product = _mm_mul_ps(value, _mm_set1_ps(factor));
            (_mm256_cvtps_pd(value), _mm256_cvtps_pd(product))
        }
    }
}

impl Instructions for __m256d {
    #[inline(always)]
    fn power_of_two(self) -> Self {
        let biased = self.add(Self::splat(6_755_399_441_055_744.0 + 1023.0));
        // SAFETY: FEATURE: the crate is run where the instructions are; memory is as BARE-COLUMNS says.
        unsafe { _mm256_castsi256_pd(_mm256_slli_epi64::<52>(_mm256_castpd_si256(biased))) }
    }

    #[inline(always)]
    fn split(self) -> (Self, Self) {
        // SAFETY: FEATURE: the crate is run where the instructions are; memory is as BARE-COLUMNS says.
        unsafe {
            let step = _mm256_set1_epi64x(0x0009_5F61_9980_C433);
            let shifted = _mm256_add_epi64(_mm256_castpd_si256(self), step);
            let mantissa = _mm256_and_si256(shifted, _mm256_set1_epi64x(0x000F_FFFF_FFFF_FFFF));
            let mantissa = _mm256_add_epi64(mantissa, _mm256_set1_epi64x(0x3FE6_A09E_667F_3BCD));
            let tag = _mm256_set1_epi64x(0x433 << 52);
            let exponent = _mm256_castsi256_pd(_mm256_or_si256(_mm256_srli_epi64::<52>(shifted), tag));
            let exponent = exponent.sub(Self::splat(4_503_599_627_370_496.0 + 1023.0));
            (_mm256_castsi256_pd(mantissa), exponent)
        }
    }

    #[inline(always)]
    fn any(mask: Self) -> bool {
        Self::bits(mask) != 0
    }

    #[inline(always)]
    fn not(mask: Self) -> Self {
        // SAFETY: FEATURE: the crate is run where the instructions are; memory is as BARE-COLUMNS says.
        unsafe { _mm256_xor_pd(mask, double_ones(15)) }
    }
}
