//! One value at a time, in plain Rust: the compiler makes vectors of it where it can.

use crate::lanes::{Across, Lanes, Widened};
use crate::polynomials::Instructions;

/// One FLOAT32 value.
pub(crate) type Singles = f32;
/// One FLOAT64 value.
pub(crate) type Doubles = f64;

macro_rules! alike {
    ($element:ident) => {
        impl Lanes for $element {
            type Element = $element;
            type Mask = bool;
            const ROWS: usize = 1;

            // SAFETY: a step of rows, as BARE-ARRAYS says.
            #[inline(always)]
            unsafe fn load(from: *const u8) -> Self {
                unsafe { from.cast::<$element>().read_unaligned() }
            }

            // SAFETY: a step of rows, as BARE-ARRAYS says.
            #[inline(always)]
            unsafe fn load_or(from: *const u8, bits: u32, default: $element) -> Self {
                let value = unsafe { Self::load(from) };
                if bits & 1 == 1 { value } else { default }
            }

            // SAFETY: a step of rows, as BARE-ARRAYS says.
            #[inline(always)]
            unsafe fn store(self, to: *mut u8) {
                unsafe { to.cast::<$element>().write_unaligned(self) }
            }

            // SAFETY: a step of rows, as BARE-ARRAYS says.
            #[inline(always)]
            unsafe fn stream(self, to: *mut u8) {
                unsafe { self.store(to) }
            }

            #[inline(always)]
            fn splat(value: $element) -> Self {
                value
            }

            #[inline(always)]
            fn add(self, other: Self) -> Self {
                self + other
            }

            #[inline(always)]
            fn sub(self, other: Self) -> Self {
                self - other
            }

            #[inline(always)]
            fn mul(self, other: Self) -> Self {
                self * other
            }

            #[inline(always)]
            fn div(self, other: Self) -> Self {
                self / other
            }

            #[inline(always)]
            fn fma(self, factor: Self, term: Self) -> Self {
                self.mul_add(factor, term)
            }

            #[inline(always)]
            fn min(self, other: Self) -> Self {
                if self < other { self } else { other }
            }

            #[inline(always)]
            fn max(self, other: Self) -> Self {
                if self > other { self } else { other }
            }

            #[inline(always)]
            fn abs(self) -> Self {
                <$element>::abs(self)
            }

            #[inline(always)]
            fn neg(self) -> Self {
                -self
            }

            #[inline(always)]
            fn sqrt(self) -> Self {
                <$element>::sqrt(self)
            }

            #[inline(always)]
            fn less(self, other: Self) -> bool {
                self < other
            }

            #[inline(always)]
            fn at_least(self, other: Self) -> bool {
                self >= other
            }

            #[inline(always)]
            fn both(a: bool, b: bool) -> bool {
                a & b
            }

            #[inline(always)]
            fn select(mask: bool, then: Self, otherwise: Self) -> Self {
                if mask { then } else { otherwise }
            }

            #[inline(always)]
            fn bits(mask: bool) -> u32 {
                mask.into()
            }
        }
    };
}

alike!(f32);
alike!(f64);

impl Across for f32 {
    #[inline(always)]
    fn greatest(self) -> f32 {
        self
    }

    #[inline(always)]
    fn add_to(self, [sum, other]: [f64; 2]) -> [f64; 2] {
        [sum + f64::from(self), other]
    }

    #[inline(always)]
    fn sum([sum, other]: [f64; 2]) -> f64 {
        sum + other
    }
}

impl Widened for f64 {
    // SAFETY: a step of rows, as BARE-ARRAYS says.
    #[inline(always)]
    unsafe fn widened(from: *const u8, factor: f32) -> (Self, Self) {
        let value = unsafe { f32::load(from) };
        (value.into(), (value * factor).into())
    }
}

impl Instructions for f32 {
    #[inline(always)]
    fn power_of_two(self) -> Self {
        f32::from_bits((self + (12_582_912.0 + 127.0)).to_bits() << 23)
    }

    #[inline(always)]
    fn split(self) -> (Self, Self) {
        let shifted = self.to_bits().wrapping_add(0x004A_FB0D);
        let mantissa = f32::from_bits((shifted & 0x007F_FFFF) + 0x3F35_04F3);
        (mantissa, ((shifted >> 23) as i32 - 127) as f32)
    }

    #[inline(always)]
    fn any(_mask: bool) -> bool {
        true
    }

    #[inline(always)]
    fn not(mask: bool) -> bool {
        !mask
    }
}

impl Instructions for f64 {
    #[inline(always)]
    fn power_of_two(self) -> Self {
        f64::from_bits((self + (6_755_399_441_055_744.0 + 1023.0)).to_bits() << 52)
    }

    #[inline(always)]
    fn split(self) -> (Self, Self) {
        let shifted = self.to_bits().wrapping_add(0x0009_5F61_9980_C433);
        let mantissa = f64::from_bits((shifted & 0x000F_FFFF_FFFF_FFFF) + 0x3FE6_A09E_667F_3BCD);
        let exponent = f64::from_bits(shifted >> 52 | 0x433 << 52) - (4_503_599_627_370_496.0 + 1023.0);
        (mantissa, exponent)
    }

    #[inline(always)]
    fn any(_mask: bool) -> bool {
        true
    }

    #[inline(always)]
    fn not(mask: bool) -> bool {
        !mask
    }
}
