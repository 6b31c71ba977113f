//! Lanes of 512 bits.

use crate::lanes::{Across, Lanes, Widened};
use crate::special::Instructions;
use std::arch::x86_64::*;

/// Sixteen FLOAT32 values.
pub(crate) type Singles = __m512;
/// Eight FLOAT64 values.
pub(crate) type Doubles = __m512d;

/// What both types do alike.
macro_rules! alike {
    ($element:ty, $mask:ty, $rows:expr, $load:ident $or:ident $store:ident $stream:ident $splat:ident $add:ident
     $sub:ident $mul:ident $div:ident $fma:ident $min:ident $max:ident $abs:ident $xor:ident $sqrt:ident $compare:ident
     $select:ident) => {
        type Element = $element;
        type Mask = $mask;
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
            unsafe { $or(Self::splat(default), bits as $mask, from.cast()) }
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
            unsafe { $abs(self) }
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
        fn less(self, other: Self) -> $mask {
            // SAFETY: FEATURE: the crate is run where the instructions are; memory is as BARE-COLUMNS says.
            unsafe { $compare::<_CMP_LT_OQ>(self, other) }
        }

        #[inline(always)]
        fn at_least(self, other: Self) -> $mask {
            // SAFETY: FEATURE: the crate is run where the instructions are; memory is as BARE-COLUMNS says.
            unsafe { $compare::<_CMP_GE_OQ>(self, other) }
        }

        #[inline(always)]
        fn both(a: $mask, b: $mask) -> $mask {
            a & b
        }

        #[inline(always)]
        fn select(mask: $mask, then: Self, otherwise: Self) -> Self {
            // SAFETY: FEATURE: the crate is run where the instructions are; memory is as BARE-COLUMNS says.
            unsafe { $select(mask, otherwise, then) }
        }

        #[inline(always)]
        fn bits(mask: $mask) -> u32 {
            mask.into()
        }
    };
}

impl Lanes for __m512 {
    alike! {
        f32, __mmask16, 16, _mm512_loadu_ps _mm512_mask_loadu_ps _mm512_storeu_ps _mm512_stream_ps _mm512_set1_ps
        _mm512_add_ps _mm512_sub_ps _mm512_mul_ps _mm512_div_ps _mm512_fmadd_ps _mm512_min_ps _mm512_max_ps
        _mm512_abs_ps _mm512_xor_ps _mm512_sqrt_ps _mm512_cmp_ps_mask _mm512_mask_blend_ps
    }
}

impl Instructions for __m512 {
    #[inline(always)]
    fn exponent(self) -> Self {
        // SAFETY: FEATURE: the crate is run where the instructions are; memory is as BARE-COLUMNS says.
        unsafe { _mm512_getexp_ps(self) }
    }

    #[inline(always)]
    fn mantissa(self) -> Self {
        // The sign of a zero or an infinity is dropped, other negative numbers are refused.
        // SAFETY: FEATURE: the crate is run where the instructions are; memory is as BARE-COLUMNS says.
        unsafe { _mm512_getmant_ps::<_MM_MANT_NORM_1_2, 3>(self) }
    }

    #[inline(always)]
    fn scaled(self, k: Self) -> Self {
        // SAFETY: FEATURE: the crate is run where the instructions are; memory is as BARE-COLUMNS says.
        unsafe { _mm512_scalef_ps(self, k) }
    }

    #[inline(always)]
    fn scaled_from(self, k: Self, argument: Self, bound: f32) -> Self {
        // SAFETY: FEATURE: the crate is run where the instructions are; memory is as BARE-COLUMNS says.
        unsafe {
            let ordinary = _mm512_cmp_ps_mask::<_CMP_NLT_UQ>(argument, Self::splat(bound));
            _mm512_maskz_scalef_ps(ordinary, self, k)
        }
    }

    #[inline(always)]
    fn entry(self, table: &'static [f32; 16]) -> Self {
        let table = table.as_ptr();
        // SAFETY: FEATURE: the crate is run where the instructions are; memory is as BARE-COLUMNS says.
        unsafe { _mm512_permutexvar_ps(_mm512_castps_si512(self), _mm512_loadu_ps(table)) }
    }

    #[inline(always)]
    fn first_bits(self) -> Self {
        // SAFETY: FEATURE: the crate is run where the instructions are; memory is as BARE-COLUMNS says.
        unsafe { _mm512_castsi512_ps(_mm512_srli_epi32::<19>(_mm512_castps_si512(self))) }
    }

    #[inline(always)]
    fn near_reciprocal(self) -> Self {
        // SAFETY: FEATURE: the crate is run where the instructions are; memory is as BARE-COLUMNS says.
        unsafe { _mm512_rcp14_ps(self) }
    }

    #[inline(always)]
    fn fnma(self, factor: Self, term: Self) -> Self {
        // SAFETY: FEATURE: the crate is run where the instructions are; memory is as BARE-COLUMNS says.
        unsafe { _mm512_fnmadd_ps(self, factor, term) }
    }

    #[inline(always)]
    fn fixed<const TABLE: i32>(self, argument: Self) -> Self {
        // SAFETY: FEATURE: the crate is run where the instructions are; memory is as BARE-COLUMNS says.
        unsafe { _mm512_fixupimm_ps::<0>(self, argument, _mm512_set1_epi32(TABLE)) }
    }
}

impl Lanes for __m512d {
    alike! {
        f64, __mmask8, 8, _mm512_loadu_pd _mm512_mask_loadu_pd _mm512_storeu_pd _mm512_stream_pd _mm512_set1_pd
        _mm512_add_pd _mm512_sub_pd _mm512_mul_pd _mm512_div_pd _mm512_fmadd_pd _mm512_min_pd _mm512_max_pd
        _mm512_abs_pd _mm512_xor_pd _mm512_sqrt_pd _mm512_cmp_pd_mask _mm512_mask_blend_pd
    }
}

impl Instructions for __m512d {
    #[inline(always)]
    fn exponent(self) -> Self {
        // SAFETY: FEATURE: the crate is run where the instructions are; memory is as BARE-COLUMNS says.
        unsafe { _mm512_getexp_pd(self) }
    }

    #[inline(always)]
    fn mantissa(self) -> Self {
        // The sign of a zero or an infinity is dropped, other negative numbers are refused.
        // SAFETY: FEATURE: the crate is run where the instructions are; memory is as BARE-COLUMNS says.
        unsafe { _mm512_getmant_pd::<_MM_MANT_NORM_1_2, 3>(self) }
    }

    #[inline(always)]
    fn scaled(self, k: Self) -> Self {
        // SAFETY: FEATURE: the crate is run where the instructions are; memory is as BARE-COLUMNS says.
        unsafe { _mm512_scalef_pd(self, k) }
    }

    #[inline(always)]
    fn scaled_from(self, k: Self, argument: Self, bound: f64) -> Self {
        // SAFETY: FEATURE: the crate is run where the instructions are; memory is as BARE-COLUMNS says.
        unsafe {
            let ordinary = _mm512_cmp_pd_mask::<_CMP_NLT_UQ>(argument, Self::splat(bound));
            _mm512_maskz_scalef_pd(ordinary, self, k)
        }
    }

    #[inline(always)]
    fn entry(self, table: &'static [f64; 16]) -> Self {
        let table = table.as_ptr();
        // SAFETY: FEATURE: the crate is run where the instructions are; memory is as BARE-COLUMNS says.
        unsafe {
            _mm512_permutex2var_pd(_mm512_loadu_pd(table), _mm512_castpd_si512(self), _mm512_loadu_pd(table.add(8)))
        }
    }

    #[inline(always)]
    fn first_bits(self) -> Self {
        // SAFETY: FEATURE: the crate is run where the instructions are; memory is as BARE-COLUMNS says.
        unsafe { _mm512_castsi512_pd(_mm512_srli_epi64::<48>(_mm512_castpd_si512(self))) }
    }

    #[inline(always)]
    fn near_reciprocal(self) -> Self {
        // SAFETY: FEATURE: the crate is run where the instructions are; memory is as BARE-COLUMNS says.
        unsafe { _mm512_rcp14_pd(self) }
    }

    #[inline(always)]
    fn fnma(self, factor: Self, term: Self) -> Self {
        // SAFETY: FEATURE: the crate is run where the instructions are; memory is as BARE-COLUMNS says.
        unsafe { _mm512_fnmadd_pd(self, factor, term) }
    }

    #[inline(always)]
    fn fixed<const TABLE: i32>(self, argument: Self) -> Self {
        // SAFETY: FEATURE: the crate is run where the instructions are; memory is as BARE-COLUMNS says.
        unsafe { _mm512_fixupimm_pd::<0>(self, argument, _mm512_set1_epi64(TABLE.into())) }
    }
}

impl Across for __m512 {
    #[inline(always)]
    fn greatest(self) -> f32 {
        // SAFETY: FEATURE: the crate is run where the instructions are.
        unsafe { _mm512_reduce_max_ps(self) }
    }

    #[inline(always)]
    fn add_to(self, [lower, upper]: [__m512d; 2]) -> [__m512d; 2] {
        // SAFETY: FEATURE: the crate is run where the instructions are.
        unsafe {
            let halves = [_mm512_castps512_ps256(self), _mm512_extractf32x8_ps::<1>(self)];
            [lower.add(_mm512_cvtps_pd(halves[0])), upper.add(_mm512_cvtps_pd(halves[1]))]
        }
    }

    #[inline(always)]
    fn sum([lower, upper]: [__m512d; 2]) -> f64 {
        // SAFETY: FEATURE: the crate is run where the instructions are.
        unsafe { _mm512_reduce_add_pd(lower.add(upper)) }
    }
}

impl Widened for __m512d {
    #[inline(always)]
    // SAFETY: BARE-COLUMNS, as the trait says.
    unsafe fn widened(from: *const u8, factor: f32) -> (Self, Self) {
        // SAFETY: FEATURE: the crate is run where the instructions are; memory is as BARE-COLUMNS says.
        unsafe {
            let value = _mm256_loadu_ps(from.cast());
            let product = _mm256_mul_ps(value, _mm256_set1_ps(factor));
            (_mm512_cvtps_pd(value), _mm512_cvtps_pd(product))
        }
    }
}
