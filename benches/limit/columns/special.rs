//! Functions for lanes whose instructions know every special argument: `vscalef`, `vgetexp`, `vgetmant`, `vfixupimm`, tables of
//! sixteen entries in one or two registers, and approximate reciprocals, because a division takes as long as sixteen
//! operations. Written over lanes, so that several vectors go through a function side by side.

use crate::lanes::{Lanes, Pair, polynomial};

/// `2^(j/16)`.
static POWERS: [f64; 16] = [
    1.0,
    1.0442737824274138,
    1.0905077326652577,
    1.1387886347566916,
    1.189207115002721,
    1.241857812073484,
    1.2968395546510096,
    1.3542555469368927,
    std::f64::consts::SQRT_2,
    1.4768261459394993,
    1.5422108254079407,
    1.6104903319492543,
    1.681792830507429,
    1.7562521603732995,
    1.8340080864093424,
    1.9152065613971474,
];
/// A short number near `1/m` for mantissas whose first four bits behind the point are `j`; next to a power of two exactly
/// that, so that nothing is lost of what is nearly zero.
static INVERSES: [f64; 16] = [
    1.0,
    0.9140625,
    0.865234375,
    0.8203125,
    0.78125,
    0.744140625,
    0.7109375,
    0.681640625,
    0.65234375,
    0.626953125,
    0.603515625,
    0.58203125,
    0.560546875,
    0.54296875,
    0.525390625,
    0.5,
];
/// Their logarithms, negated and cut, so that sums with multiples of the cut `LN_2` are exact; and what was cut.
static LOGS: [f64; 16] = [
    0.0,
    0.08985632912185793,
    0.14475485499428942,
    0.19806991376208316,
    0.2468600779316148,
    0.29552524991277096,
    0.3411707574027787,
    0.383252702837126,
    0.4271836320629063,
    0.4668835019094786,
    0.5049833481416499,
    0.5412311385341582,
    0.5788424092797868,
    0.6107035113489019,
    0.6436132454375638,
    0.6931471805598903,
];
static LOGS_LOW: [f64; 16] = [
    0.0,
    3.1218748807418837e-15,
    8.272973285564614e-14,
    1.0634128304268335e-14,
    -8.899851356560444e-14,
    3.586053092023274e-14,
    -1.156568624616423e-14,
    -4.5358739633308435e-14,
    -9.895853155747038e-14,
    1.3337962884211445e-14,
    1.1241001411909127e-13,
    -5.4828310811468674e-14,
    9.986876370947071e-14,
    -3.1165899173794433e-14,
    1.0485953929506514e-13,
    5.497923018708371e-14,
];
/// `ln 2`, cut, and what was cut.
const LN_2: [f64; 2] = [0.6931471805598903, 5.497923018708371e-14];
/// The same, nearest.
const LN_2_SINGLE: [f32; 2] = [std::f32::consts::LN_2, -1.904_654_3e-9];

/// Of FLOAT32.
static POWERS_SINGLE: [f32; 16] = narrowed(&POWERS);
static INVERSES_SINGLE: [f32; 16] = narrowed(&INVERSES);
static LOGS_SINGLE: [f32; 16] = [
    0.0,
    0.08985633,
    0.14475485,
    0.19806991,
    0.246860078,
    0.29552525,
    0.34117076,
    0.3832527,
    0.42718363,
    0.4668835,
    0.50498335,
    0.54123114,
    0.5788424,
    0.6107035,
    0.6436132,
    std::f32::consts::LN_2,
];

const fn narrowed(wide: &[f64; 16]) -> [f32; 16] {
    let mut narrow = [0.0; 16];
    let mut at = 0;
    while at < 16 {
        narrow[at] = wide[at] as f32;
        at += 1;
    }
    narrow
}

/// The token of a class of numbers in `vfixupimm`'s table, by the class's place: what to answer.
const fn token(class: u32, answer: u32) -> u32 {
    answer << (4 * class)
}
// Classes.
const QUIET: u32 = 0;
const SIGNALING: u32 = 1;
const ZERO: u32 = 2;
const MINUS_INFINITE: u32 = 4;
const INFINITE: u32 = 5;
const NEGATIVE: u32 = 6;
// Answers; 0 is the number as it is.
const NAN: u32 = 3;
const MINUS_INFINITY: u32 = 4;
const INFINITY: u32 = 5;
const PLUS_ZERO: u32 = 8;

/// Reciprocals of what is at least 1.
const RECIPROCALS: i32 = token(INFINITE, PLUS_ZERO) as i32;
/// Logarithms of sums with 1.
const LOGARITHMS: i32 = (token(QUIET, NAN)
    | token(SIGNALING, NAN)
    | token(ZERO, MINUS_INFINITY)
    | token(MINUS_INFINITE, NAN)
    | token(INFINITE, INFINITY)
    | token(NEGATIVE, NAN)) as i32;

/// What the functions ask of lanes.
pub(crate) trait Instructions: Lanes {
    /// The whole exponent: that of 0 is minus infinity, that of an infinity infinity.
    fn exponent(self) -> Self;
    /// The number between 1 and 2 that `2^exponent` is multiplied by; NaN of what is negative, 1 of zeros and infinities.
    fn mantissa(self) -> Self;
    /// `self * 2^k`, for `k` rounded down, itself rounded once.
    fn scaled(self, k: Self) -> Self;
    /// The same where the argument is not below a bound, and 0 where it is: what is nearly nothing takes a processor long.
    fn scaled_from(self, k: Self, argument: Self, bound: Self::Element) -> Self;
    /// The entry of a table whose number is in the lowest four bits.
    fn entry(self, table: &'static [Self::Element; 16]) -> Self;
    /// The first four bits behind the point, as the lowest four.
    fn first_bits(self) -> Self;
    /// `1 / self`, to fourteen bits.
    fn near_reciprocal(self) -> Self;
    /// `term - self * factor`, rounded once.
    fn fnma(self, factor: Self, term: Self) -> Self;
    /// `self`, or what a table of tokens says of the class of the argument.
    fn fixed<const TABLE: i32>(self, argument: Self) -> Self;
}

impl<L: Instructions> Instructions for Pair<L> {
    #[inline(always)]
    fn exponent(self) -> Self {
        Pair(self.0.exponent(), self.1.exponent())
    }

    #[inline(always)]
    fn mantissa(self) -> Self {
        Pair(self.0.mantissa(), self.1.mantissa())
    }

    #[inline(always)]
    fn scaled(self, k: Self) -> Self {
        Pair(self.0.scaled(k.0), self.1.scaled(k.1))
    }

    #[inline(always)]
    fn scaled_from(self, k: Self, argument: Self, bound: L::Element) -> Self {
        Pair(self.0.scaled_from(k.0, argument.0, bound), self.1.scaled_from(k.1, argument.1, bound))
    }

    #[inline(always)]
    fn entry(self, table: &'static [L::Element; 16]) -> Self {
        Pair(self.0.entry(table), self.1.entry(table))
    }

    #[inline(always)]
    fn first_bits(self) -> Self {
        Pair(self.0.first_bits(), self.1.first_bits())
    }

    #[inline(always)]
    fn near_reciprocal(self) -> Self {
        Pair(self.0.near_reciprocal(), self.1.near_reciprocal())
    }

    #[inline(always)]
    fn fnma(self, factor: Self, term: Self) -> Self {
        Pair(self.0.fnma(factor.0, term.0), self.1.fnma(factor.1, term.1))
    }

    #[inline(always)]
    fn fixed<const TABLE: i32>(self, argument: Self) -> Self {
        Pair(self.0.fixed::<TABLE>(argument.0), self.1.fixed::<TABLE>(argument.1))
    }
}

/// The reciprocal of a number that is at least 1.
#[inline(always)]
pub(crate) fn reciprocal_single<L: Instructions<Element = f32>>(x: L) -> L {
    let near = x.near_reciprocal();
    let off = x.fnma(near, L::splat(1.0));
    near.fma(off, near).fixed::<RECIPROCALS>(x)
}

/// The same in FLOAT64.
#[inline(always)]
pub(crate) fn reciprocal_double<L: Instructions<Element = f64>>(x: L) -> L {
    let near = x.near_reciprocal();
    let off = x.fnma(near, L::splat(1.0));
    let series = off.fma(off, off);
    let series = off.fma(series, off);
    near.fma(series, near).fixed::<RECIPROCALS>(x)
}

/// `2^(k/16) e^r` with `|r|` at most `ln 2 / 32`.
#[inline(always)]
pub(crate) fn exp_single<L: Instructions<Element = f32>>(x: L) -> L {
    // The whole number of sixteenths is in the lowest bits of the sum.
    let shift = L::splat(1.5 * (1 << 19) as f32);
    let x = L::splat(90.0).min(x);
    let shifted = x.fma(L::splat(std::f32::consts::LOG2_E), shift);
    let k = shifted.sub(shift);
    let r = k.fma(L::splat(-LN_2_SINGLE[0]), x);
    let r = k.fma(L::splat(-LN_2_SINGLE[1]), r);
    let above = r.mul(r).fma(polynomial(r, [0.5000098, 0.16666862]), r);
    let power = shifted.entry(&POWERS_SINGLE);
    power.fma(above, power).scaled_from(k, x, -104.0)
}

/// As in FLOAT32.
#[inline(always)]
pub(crate) fn exp_double<L: Instructions<Element = f64>>(x: L) -> L {
    let shift = L::splat(1.5 * (1_u64 << 48) as f64);
    let x = L::splat(710.0).min(x);
    let shifted = x.fma(L::splat(std::f64::consts::LOG2_E), shift);
    let k = shifted.sub(shift);
    let r = k.fma(L::splat(-std::f64::consts::LN_2), x);
    let r = k.fma(L::splat(-2.319_046_813_846_299_6e-17), r);
    let series = [0.5, 0.1666666666530169, 0.04166666666496045, 0.008333449701253456, 0.0013889034348599464];
    let above = r.mul(r).fma(polynomial(r, series), r);
    let power = shifted.entry(&POWERS);
    power.fma(above, power).scaled_from(k, x, -745.2)
}

/// `e ln 2 - ln c + ln((1 + x) 2^-e c)`.
#[inline(always)]
pub(crate) fn log1p_single<L: Instructions<Element = f32>>(x: L) -> L {
    let one = L::splat(1.0);
    let sum = x.add(one);
    let exponent = sum.exponent();
    let index = sum.first_bits();
    let inverse = index.entry(&INVERSES_SINGLE).scaled(exponent.neg());
    let f = x.fma(inverse, inverse.sub(one));
    let series = polynomial(f, [-0.49999997, 0.33334178, -0.25012314, 0.19021256]);
    let base = exponent.fma(L::splat(LN_2_SINGLE[0]), index.entry(&LOGS_SINGLE));
    base.add(f.mul(f).fma(series, f)).fixed::<LOGARITHMS>(sum)
}

/// `e ln 2 - ln c + ln(m c)`.
#[inline(always)]
pub(crate) fn log_double<L: Instructions<Element = f64>>(x: L) -> L {
    let exponent = x.exponent();
    let mantissa = x.mantissa();
    let index = mantissa.first_bits();
    let f = mantissa.fma(index.entry(&INVERSES), L::splat(-1.0));
    let series = [
        -0.5,
        0.33333333333333376,
        -0.25000000000018174,
        0.1999999999980953,
        -0.16666666590130597,
        0.14285713842652514,
        -0.12500104591721953,
        0.11112868129847008,
        -0.09961767832849687,
        0.07922051730045795,
    ];
    let high = exponent.fma(L::splat(LN_2[0]), index.entry(&LOGS));
    let low = exponent.fma(L::splat(LN_2[1]), index.entry(&LOGS_LOW));
    let rest = f.mul(f).fma(polynomial(f, series), low);
    high.add(f.add(rest))
}
