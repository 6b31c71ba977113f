//! Functions for lanes without instructions for them: cembra's algorithms, with native FLOAT32 forms.

use crate::lanes::{Lanes, Pair, polynomial};

/// `ln 2`, and what its rounding left.
const LN_2: [f64; 2] = [std::f64::consts::LN_2, 2.319_046_813_846_299_6e-17];
const LN_2_SINGLE: [f32; 2] = [std::f32::consts::LN_2, -1.904_654_3e-9];
/// `ln 2`, cut so that its products with exponents are exact, and the rest.
const LN_2_CUT: [f64; 2] = [0.693_147_180_559_663, 2.823_529_056_303_157_7e-13];
/// Added to a number that is not large it leaves the nearest whole one.
const WHOLE: f64 = 6_755_399_441_055_744.0;
const WHOLE_SINGLE: f32 = 12_582_912.0;

/// What the functions ask of lanes.
pub(crate) trait Instructions: Lanes {
    /// `2^k` for a whole number whose exponent is an ordinary number's.
    fn power_of_two(self) -> Self;
    /// `m` from the root of 1/2 to that of 2 and whole `e` where `self` is `2^e m`, if that is positive and normal.
    fn split(self) -> (Self, Self);
    /// True if some row's is; lanes that know no branches always say so.
    fn any(mask: Self::Mask) -> bool;
    fn not(mask: Self::Mask) -> Self::Mask;
}

/// `2^k e^r`, in FLOAT32.
#[inline(always)]
pub(crate) fn exp_single<L: Instructions<Element = f32>>(x: L) -> L {
    let shift = L::splat(WHOLE_SINGLE);
    let x = L::splat(90.0).min(L::splat(-105.0).max(x));
    let k = x.fma(L::splat(std::f32::consts::LOG2_E), shift).sub(shift);
    let r = k.fma(L::splat(-LN_2_SINGLE[0]), x);
    let r = k.fma(L::splat(-LN_2_SINGLE[1]), r);
    let series = polynomial(r, [0.5, 0.16666578, 0.041666556, 0.008363173, 0.0013926176]);
    let power = r.mul(r).fma(series, r).add(L::splat(1.0));
    let half = k.fma(L::splat(0.5), shift).sub(shift);
    power.mul(half.power_of_two()).mul(k.sub(half).power_of_two())
}

/// The same in FLOAT64.
#[inline(always)]
pub(crate) fn exp_double<L: Instructions<Element = f64>>(x: L) -> L {
    let shift = L::splat(WHOLE);
    let x = L::splat(710.0).min(L::splat(-746.0).max(x));
    let k = x.fma(L::splat(std::f64::consts::LOG2_E), shift).sub(shift);
    let r = k.fma(L::splat(-LN_2[0]), x);
    let r = k.fma(L::splat(-LN_2[1]), r);
    let series = [
        0.500_000_000_000_000_6,
        0.166_666_666_666_666_85,
        0.041_666_666_666_573_55,
        0.008_333_333_333_314_619,
        0.001_388_888_893_240_543_6,
        0.000_198_412_699_029_740_26,
        2.480_150_441_185_865_5e-5,
        2.755_722_800_357_967_4e-6,
        2.762_634_076_326_376_7e-7,
        2.511_445_779_610_916_4e-8,
    ];
    let power = r.mul(r).fma(polynomial(r, series), r).add(L::splat(1.0));
    let half = k.fma(L::splat(0.5), shift).sub(shift);
    power.mul(half.power_of_two()).mul(k.sub(half).power_of_two())
}

/// `e ln 2 + ln(1 + f)` where `1 + x = 2^e (1 + f)`, in FLOAT32, for ordinary sums.
#[inline(always)]
fn ordinary_log1p<L: Instructions<Element = f32>>(x: L, sum: L, offset: L) -> L {
    let (_, exponent) = sum.split();
    let inverse = exponent.neg().power_of_two();
    let f = x.fma(inverse, inverse.sub(L::splat(1.0)));
    let series = [-0.49999997, 0.3333367, -0.25001147, 0.1997205, -0.16588488, 0.14834787, -0.14159647, 0.087872654];
    let near = f.mul(f).fma(polynomial(f, series), f);
    exponent.add(offset).fma(L::splat(LN_2_SINGLE[0]), near)
}

/// `ln(1 + x)` in FLOAT32.
#[inline(always)]
pub(crate) fn log1p_single<L: Instructions<Element = f32>>(x: L) -> L {
    // The inverse power of a larger sum would be subnormal.
    const LARGE: f32 = 1.2676506e30;
    let (zero, one) = (L::splat(0.0), L::splat(1.0));
    let sum = x.add(one);
    let ordinary = L::both(zero.less(sum), sum.less(L::splat(LARGE)));
    if !L::any(L::not(ordinary)) {
        return ordinary_log1p(x, sum, zero);
    }
    let large = sum.at_least(L::splat(LARGE));
    let down = L::select(large, L::splat(1.0 / 4_294_967_296.0), one);
    let result = ordinary_log1p(x.mul(down), sum.mul(down), L::select(large, L::splat(32.0), zero));
    let computed = L::both(zero.less(sum), sum.less(L::splat(f32::INFINITY)));
    let positive = L::select(sum.at_least(zero), sum, L::splat(f32::NAN));
    let is_zero = L::both(sum.at_least(zero), zero.at_least(sum));
    L::select(computed, result, L::select(is_zero, L::splat(f32::NEG_INFINITY), positive))
}

/// `e ln 2 + f - (f^2/2 - s (f^2/2 + z series))` with `s = f / (2 + f)`, in FLOAT64.
#[inline(always)]
pub(crate) fn log_double<L: Instructions<Element = f64>>(x: L) -> L {
    let smallest = L::splat(f64::MIN_POSITIVE);
    let ordinary = L::both(x.at_least(smallest), x.less(L::splat(f64::INFINITY)));
    let special = L::not(ordinary);
    let is_special = L::any(special);
    let (mut x, mut offset) = (x, L::splat(0.0));
    let given = x;
    if is_special {
        let small = x.less(smallest);
        x = L::select(small, x.mul(L::splat(18_014_398_509_481_984.0)), x);
        offset = L::select(small, L::splat(54.0), offset);
    }
    let (mantissa, exponent) = x.split();
    let exponent = exponent.sub(offset);
    let f = mantissa.sub(L::splat(1.0));
    let s = f.div(f.add(L::splat(2.0)));
    let z = s.mul(s);
    let series = [
        0.666_666_666_666_673_4,
        0.399_999_999_994_166_2,
        0.285_714_287_420_341_16,
        0.222_221_986_044_556_84,
        0.181_835_628_800_383_65,
        0.153_140_841_800_846_08,
        0.147_956_392_104_538_68,
    ];
    let half_square = f.mul(L::splat(0.5)).mul(f);
    let inner = z.fma(polynomial(z, series), half_square);
    let low = s.fma(inner, exponent.mul(L::splat(LN_2_CUT[1])));
    let result = exponent.fma(L::splat(LN_2_CUT[0]), f.sub(half_square.sub(low)));
    if is_special {
        let zero = L::both(given.at_least(L::splat(0.0)), L::splat(0.0).at_least(given));
        let infinite = L::select(given.at_least(L::splat(0.0)), given, L::splat(f64::NAN));
        let special = L::select(zero, L::splat(f64::NEG_INFINITY), infinite);
        let computed = L::both(L::splat(0.0).less(given), given.less(L::splat(f64::INFINITY)));
        return L::select(computed, result, special);
    }
    result
}

/// The reciprocal of a number that is at least 1: a division is what these lanes have.
#[inline(always)]
pub(crate) fn reciprocal_single<L: Instructions<Element = f32>>(x: L) -> L {
    L::splat(1.0).div(x)
}

/// The same in FLOAT64.
#[inline(always)]
pub(crate) fn reciprocal_double<L: Instructions<Element = f64>>(x: L) -> L {
    L::splat(1.0).div(x)
}

impl<L: Instructions> Instructions for Pair<L> {
    #[inline(always)]
    fn power_of_two(self) -> Self {
        Pair(self.0.power_of_two(), self.1.power_of_two())
    }

    #[inline(always)]
    fn split(self) -> (Self, Self) {
        let (first, second) = (self.0.split(), self.1.split());
        (Pair(first.0, second.0), Pair(first.1, second.1))
    }

    #[inline(always)]
    fn any(mask: Self::Mask) -> bool {
        L::any(mask.0) | L::any(mask.1)
    }

    #[inline(always)]
    fn not(mask: Self::Mask) -> Self::Mask {
        (L::not(mask.0), L::not(mask.1))
    }
}
