//! Quantiles: the values below which a normal, Student's t or beta distribution lies with a given probability. They are computed
//! in binary64 with the functions of the `libm` crate, so they are the same on every machine. Existing crates either do not
//! terminate for extreme parameters or lose half of the digits in the tails.
//!
//! An estimate in binary64 is corrected, with twice the digits for t and beta (`refined`). For probabilities from 1e-300, for
//! degrees of freedom from 1e-3 to 1e8, and for shapes from 1e-3 to 1e8, results are within 4 units in the last place of the exact
//! value, and nearly all results of t and beta are the exact value rounded. `runtime/tests/functions/quantiles.rs` tests this. If
//! a shape, or half of the degrees, is below 1e-6 or above 1e15, the result is the estimate, which has about ten digits.

mod refined;
mod twofold;

use refined::{COARSE, WIDE, integral, refined};
use std::f64::consts::{FRAC_1_SQRT_2, TAU};
use twofold::Twofold;

fn is_probability(p: f64) -> bool {
    (0.0..=1.0).contains(&p)
}

/// Returns true if `x` is positive and finite.
fn is_positive(x: f64) -> bool {
    x > 0.0 && x < f64::INFINITY
}

/// The quantile of the standard normal distribution; infinite for 0 and 1. `None` if `p` is not a probability.
#[must_use]
pub fn normal(p: f64) -> Option<f64> {
    if !is_probability(p) {
        return None;
    }
    let off = p - 0.5;
    let tail = if off < 0.0 { p } else { 1.0 - p };
    let size = normal_estimate(off.abs(), tail);
    // For smaller tails the error function is subnormal, and only the estimate is possible.
    let size = if tail < 1e-300 { size } else { corrected(size, off.abs(), tail) };
    Some(size.copysign(off))
}

/// The distance from zero that has the probability `tail` beyond it, and `middle` between zero and it: algorithm AS 241 (Wichura
/// 1988), a ratio of polynomials near the middle and two for the tails. The error is a few units in the last place.
fn normal_estimate(middle: f64, tail: f64) -> f64 {
    if middle <= 0.425 {
        return middle * ratio(&MIDDLE, 0.180_625 - middle * middle);
    }
    if tail == 0.0 {
        return f64::INFINITY;
    }
    let r = (-libm::log(tail)).sqrt();
    if r <= 5.0 { ratio(&NEAR, r - 1.6) } else { ratio(&FAR, r - 5.0) }
}

/// Corrects an estimate by a step of Newton's method. The error function is evaluated near the estimate, where its argument is
/// exact in binary64.
fn corrected(size: f64, middle: f64, tail: f64) -> f64 {
    const DENSITY: f64 = 0.398_942_280_401_432_7;
    let near = size * FRAC_1_SQRT_2;
    let short = if middle <= 0.25 { middle - 0.5 * libm::erf(near) } else { 0.5 * libm::erfc(near) - tail };
    let step = short / (DENSITY * libm::exp(-near * near));
    (Twofold::ROOT_2 * near + Twofold::from(step)).rounded()
}

/// The coefficients of a numerator and a denominator, constant term first.
type Ratio = [[f64; 8]; 2];

#[expect(clippy::excessive_precision, reason = "as published")]
const MIDDLE: Ratio = [
    [
        3.387_132_872_796_366_608,
        133.141_667_891_784_377_45,
        1_971.590_950_306_551_442_7,
        13_731.693_765_509_461_125,
        45_921.953_931_549_871_457,
        67_265.770_927_008_700_853,
        33_430.575_583_588_128_105,
        2_509.080_928_730_122_672_7,
    ],
    [
        1.0,
        42.313_330_701_600_911_252,
        687.187_007_492_057_908_3,
        5_394.196_021_424_751_107_7,
        21_213.794_301_586_595_867,
        39_307.895_800_092_710_61,
        28_729.085_735_721_942_674,
        5_226.495_278_852_545_925,
    ],
];
#[expect(clippy::excessive_precision, reason = "as published")]
const NEAR: Ratio = [
    [
        1.423_437_110_749_683_577_34,
        4.630_337_846_156_545_295_9,
        5.769_497_221_460_691_405_5,
        3.647_848_324_763_204_605_04,
        1.270_458_252_452_368_382_58,
        0.241_780_725_177_450_611_77,
        0.022_723_844_989_269_184_583_3,
        7.745_450_142_783_414_076_4e-4,
    ],
    [
        1.0,
        2.053_191_626_637_758_821_87,
        1.676_384_830_183_803_849_4,
        0.689_767_334_985_100_004_55,
        0.148_103_976_427_480_074_59,
        0.015_198_666_563_616_457_196_6,
        5.475_938_084_995_344_946e-4,
        1.050_750_071_644_416_843_24e-9,
    ],
];
#[expect(clippy::excessive_precision, reason = "as published")]
const FAR: Ratio = [
    [
        6.657_904_643_501_103_777_2,
        5.463_784_911_164_114_369_9,
        1.784_826_539_917_291_335_8,
        0.296_560_571_828_504_891_23,
        0.026_532_189_526_576_123_093,
        0.001_242_660_947_388_078_438_6,
        2.711_555_568_743_487_578_15e-5,
        2.010_334_399_292_288_132_65e-7,
    ],
    [
        1.0,
        0.599_832_206_555_887_937_69,
        0.136_929_880_922_735_805_31,
        0.014_875_361_290_850_614_852_5,
        7.868_691_311_456_132_591e-4,
        1.846_318_317_510_054_681_8e-5,
        1.421_511_758_316_445_888_7e-7,
        2.044_263_103_389_939_785_64e-15,
    ],
];

fn ratio([above, below]: &Ratio, r: f64) -> f64 {
    let value = |terms: &[f64; 8]| terms.iter().rev().fold(0.0, |sum, term| sum * r + term);
    value(above) / value(below)
}

/// The quantile of Student's t distribution with `degrees` degrees of freedom; infinite for a probability `p` of 0 or 1. `None` if `p` is not a
/// probability, or `degrees` is not finite and positive.
#[must_use]
pub fn student_t(p: f64, degrees: f64) -> Option<f64> {
    if !is_probability(p) || !is_positive(degrees) {
        return None;
    }
    let off = p - 0.5;
    if off == 0.0 {
        return Some(0.0);
    }
    let tail = if off < 0.0 { p } else { 1.0 - p };
    let size = if tail == 0.0 { f64::INFINITY } else { t_size(tail, degrees)? };
    Some(size.copysign(off))
}

/// The distance from zero of the quantile that has the probability `tail` beyond it.
fn t_size(tail: f64, degrees: f64) -> Option<f64> {
    /// For more degrees of freedom than this, the series in their reciprocal is a good estimate; beyond `LIMIT` it is exact.
    const MANY: f64 = 1e5;
    const LIMIT: f64 = 1e15;
    let near = if degrees > MANY { near_normal(normal(tail)?.abs(), degrees) } else { 0.0 };
    if degrees > LIMIT {
        return Some(near);
    }
    // With x = degrees / (degrees + t^2), both tails together are I(x; degrees/2, 1/2), and the middle is the rest.
    let (tails, middle, half) = (2.0 * tail, 1.0 - 2.0 * tail, degrees / 2.0);
    let is_middle = tails > 0.5 && (degrees > MANY || libm::log(middle) <= ln_below(0.0, 0.5, half));
    let estimated = |target: Twofold, a: f64, b: f64| {
        let rising = |near: f64| if degrees > MANY { near } else { rising(target.rounded(), a, b) };
        let odds = libm::log(degrees) - 2.0 * libm::log(near);
        refined(target, a, b, rising(if is_middle { -odds } else { odds }))
    };
    let odds = if is_middle {
        -estimated(Twofold::from(middle).ln(), 0.5, half)
    } else {
        estimated(Twofold::from(tails).ln(), half, 0.5)
    };
    Some(if odds.rounded().abs() > 3000.0 {
        // Zero or infinity, which a `Twofold` cannot represent.
        libm::exp(0.5 * (libm::log(degrees) - odds.rounded()))
    } else {
        ((Twofold::from(degrees).ln() - odds) * 0.5).exp().rounded()
    })
}

/// The quantile of a t distribution with many degrees of freedom, computed from the normal quantile `z` by a series in the
/// reciprocal of the degrees (Abramowitz and Stegun 26.7.5).
fn near_normal(z: f64, degrees: f64) -> f64 {
    let (s, r) = (z * z, 1.0 / degrees);
    let first = (s + 1.0) / 4.0;
    let second = ((5.0 * s + 16.0) * s + 3.0) / 96.0;
    let third = (((3.0 * s + 19.0) * s + 17.0) * s - 15.0) / 384.0;
    let fourth = ((((79.0 * s + 776.0) * s + 1482.0) * s - 1920.0) * s - 945.0) / 92_160.0;
    z * (1.0 + r * (first + r * (second + r * (third + r * fourth))))
}

/// The quantile of the beta distribution with the shapes `a` and `b`. `None` if `p` is not a probability, or a shape is not finite and positive.
#[must_use]
pub fn beta(p: f64, a: f64, b: f64) -> Option<f64> {
    if !is_probability(p) || !is_positive(a) || !is_positive(b) {
        return None;
    }
    if p == 0.0 || p == 1.0 {
        return Some(p);
    }
    let odds = log_odds(p, a, b);
    let one = Twofold::from(1.0);
    let grown = if odds.rounded() < 0.0 { odds } else { -odds }.exp();
    let above = if odds.rounded() < 0.0 { grown } else { one };
    Some((above / (one + grown)).rounded())
}

/// The shape from which on a distribution is treated as nearly normal, or as nearly a scaled one.
const HUGE: f64 = 1e8;
/// If ln(x / (1 - x)) is larger than this, x rounds to 1.
const END: f64 = 45.0;

/// Returns ln(x / (1 - x)) for the x below which a beta distribution lies with probability `p`.
fn log_odds(p: f64, a: f64, b: f64) -> Twofold {
    let q = Twofold::sum(1.0, -p);
    let (ln_p, ln_q) = (Twofold::from(p).ln(), q.ln());
    let found = |target: Twofold, a: f64, b: f64| refined(target, a, b, rising(target.rounded(), a, b));
    if a > HUGE && b > HUGE {
        // Nearly normal, with a width that depends on both shapes and hardly any skew.
        let near = libm::log(a) - libm::log(b) + normal(p).unwrap_or(0.0) * (1.0 / a + 1.0 / b).sqrt();
        if p <= 0.5 { refined(ln_p, a, b, near) } else { -refined(ln_q, b, a, -near) }
    } else if a > HUGE && p >= 1e-9 {
        -found(ln_q, b, a)
    } else if a > HUGE {
        // x is near 1, and 1 - x has nearly the same distribution up to a factor.
        refined(ln_p, a, b, rising(ln_p.rounded(), HUGE, b) + libm::log(a / HUGE))
    } else if b > HUGE || p <= q.rounded() {
        found(ln_p, a, b)
    } else {
        // The smaller tail is more exact, unless x is next to 0.
        let mirrored = found(ln_q, b, a);
        if mirrored.rounded() > END { found(ln_p, a, b) } else { -mirrored }
    }
}

/// ln(1 + e^x), without overflow.
fn softplus(x: f64) -> f64 {
    x.max(0.0) + libm::log1p(libm::exp(-x.abs()))
}

/// Solves ln I(x; a, b) = `target` for ln(x / (1 - x)). The function is concave in that variable, so Newton's method, started
/// below the solution, rises to it and does not overshoot.
fn rising(target: f64, a: f64, b: f64) -> f64 {
    let ln_beta = ln_beta(a, b);
    let wide = a.min(b) >= WIDE;
    let width = (1.0 / a + 1.0 / b).sqrt();
    let mut v = if wide {
        // About normal. If this is above the solution, the first step leads below it.
        libm::log(a / b) + width * normal(libm::exp(target)).unwrap_or(0.0)
    } else {
        // e^(a v) / (a B) is an upper bound of I.
        (target + ln_a_beta(a, b)) / a
    };
    for _ in 0..500 {
        if !(-1e5..=END).contains(&v) {
            break;
        }
        let below = if wide {
            -a * softplus(-v) - b * softplus(v) - ln_beta + libm::log(integral(v, a, b, COARSE))
        } else {
            ln_below(v, a, b)
        };
        let slope = libm::exp(-a * softplus(-v) - b * softplus(v) - ln_beta - below);
        let step = (target - below) / slope;
        if step.is_nan() {
            break;
        }
        v += step;
        let done = if wide { step.abs() <= 1e-5 * width } else { step <= 2e-16 * v.abs().max(1.0) };
        if done {
            break;
        }
    }
    v
}

/// ln I(x; a, b), the regularised incomplete beta function, at v = ln(x / (1 - x)).
fn ln_below(v: f64, a: f64, b: f64) -> f64 {
    let (ln_x, ln_y) = (-softplus(-v), -softplus(v));
    let (x, y) = (libm::exp(ln_x), libm::exp(ln_y));
    if x * (a + b + 2.0) > a + 1.0 {
        let above = libm::exp(a * ln_x + b * ln_y - ln_a_beta(b, a)) * fraction(y, b, a);
        if above < 1.0 - 1e-6 {
            return libm::log1p(-above);
        }
    }
    a * ln_x + b * ln_y - ln_a_beta(a, b) + libm::log(fraction(x, a, b))
}

/// The continued fraction of I(x; a, b), evaluated forwards (Lentz).
fn fraction(x: f64, a: f64, b: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let apart = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / apart(1.0 - (a + b) * x / (a + 1.0));
    let mut product = d;
    for step in 1..100_000 {
        let m = f64::from(step);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        d = 1.0 / apart(1.0 + even * d);
        c = apart(1.0 + even / c);
        product *= c * d;
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        d = 1.0 / apart(1.0 + odd * d);
        c = apart(1.0 + odd / c);
        product *= c * d;
        if (c * d - 1.0).abs() < 2e-16 {
            break;
        }
    }
    product
}

/// ln B(a, b).
fn ln_beta(a: f64, b: f64) -> f64 {
    ln_a_beta(a, b) - libm::log(a)
}

/// ln (a B(a, b)), without the cancellation of logarithms of large gamma functions.
fn ln_a_beta(a: f64, b: f64) -> f64 {
    const LARGE: f64 = 10.0;
    match (a >= LARGE, b >= LARGE) {
        (false, false) => libm::lgamma(a + 1.0) + libm::lgamma(b) - libm::lgamma(a + b),
        (false, true) => libm::lgamma(a + 1.0) + ln_gamma_ratio(b, a),
        (true, false) => libm::log(a) + libm::lgamma(b) + ln_gamma_ratio(a, b),
        (true, true) => {
            let rest = stirling(a) + stirling(b) - stirling(a + b);
            let half = 0.5 * (libm::log(TAU) - libm::log(b));
            libm::log(a) + half - (a - 0.5) * libm::log1p(b / a) - b * libm::log1p(a / b) + rest
        }
    }
}

/// ln (Γ(b) / Γ(a + b)) for a large `b`.
fn ln_gamma_ratio(b: f64, a: f64) -> f64 {
    a - (b - 0.5) * libm::log1p(a / b) - a * libm::log(a + b) + (stirling(b) - stirling(a + b))
}

/// The error of Stirling's formula for ln Γ(x), for an x from 10 on.
fn stirling(x: f64) -> f64 {
    let s = 1.0 / (x * x);
    let tail = 1.0 / 1680.0 - s * (1.0 / 1188.0 - s * (691.0 / 360_360.0 - s / 156.0));
    (1.0 / 12.0 - s * (1.0 / 360.0 - s * (1.0 / 1260.0 - s * tail))) / x
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: f64, expected: f64) {
        assert!((found / expected - 1.0).abs() < 1e-12, "{found:e}, expected {expected:e}");
    }

    // The expected values were computed with 50 digits by another program.

    #[test]
    fn normal_quantiles_are_exact_into_the_tails() {
        for (p, z) in [
            (0.3, -0.5244005127080408),
            (0.074, -1.4466320671589785),
            (0.02425, -1.972961051311885),
            (1e-05, -4.264890793922825),
            (1e-11, -6.706023155495136),
            (1e-40, -13.31092137142517),
            (1e-300, -37.0470962993612),
            (5e-324, -38.467405617144344),
        ] {
            near(normal(p).unwrap(), z);
            if p > 0.01 {
                near(normal(1.0 - p).unwrap(), -z);
            }
        }
        assert_eq!(normal(0.5), Some(0.0));
        assert_eq!((normal(-0.0), normal(1.0)), (Some(f64::NEG_INFINITY), Some(f64::INFINITY)));
        assert_eq!([normal(-1e-300), normal(1.000_000_1), normal(f64::NAN)], [None; 3]);
    }

    #[test]
    fn t_quantiles_are_exact_for_few_and_for_many_degrees() {
        for (p, degrees, t) in [
            (0.3, 0.5, -1.009_525_878_607_166_1),
            (1e-12, 3.0, -10_331.108_244_292_485),
            (0.1, 7.5, -1.405_211_846_415_952_9),
            (1e-100, 50.0, -667.492_173_982_957_4),
            (0.25, 1000.0, -0.674_735_164_607_009_4),
            // On both sides of the limit from which on the series is used.
            (0.01, 99_999.0, -2.326_385_165_728_190_4),
            (0.01, 100_001.0, -2.326_385_164_982_353),
            (1e-300, 2e6, -37.053_457_674_989_7),
        ] {
            near(student_t(p, degrees).unwrap(), t);
        }
        // With one degree of freedom it is a Cauchy variable.
        near(student_t(0.75, 1.0).unwrap(), 1.0);
        assert_eq!(student_t(0.5, 3.0), Some(0.0));
        assert_eq!(student_t(0.4, 1e-300), Some(f64::NEG_INFINITY));
        for (p, degrees) in
            [(0.3, 0.0), (0.3, -1.0), (0.3, f64::INFINITY), (0.3, f64::NAN), (2.0, 1.0), (f64::NAN, 1.0)]
        {
            assert_eq!(student_t(p, degrees), None, "{p} {degrees}");
        }
    }

    #[test]
    fn beta_quantiles_are_exact_for_all_shapes() {
        for (p, a, b, x) in [
            (0.1, 2.0, 3.0, 0.142_559_316_710_030_72),
            (0.9, 0.5, 0.5, 0.975_528_258_147_576_8),
            (1e-20, 30.0, 0.25, 0.243_241_553_380_260_18),
            (0.7, 1e4, 3.5, 0.999_766_489_935_774_8),
            (0.3, 2.5, 1e5, 1.499_931_567_769_673_3e-5),
            // b = 1: p^(1/a). a = 1: 1 - (1 - p)^(1/b).
            (0.25, 0.5, 1.0, 0.0625),
            (1e-300, 1.0, 1.5, 6.666_666_666_666_667e-301),
        ] {
            near(beta(p, a, b).unwrap(), x);
        }
        near(beta(0.5, 1e9, 1e9).unwrap(), 0.5);
        assert_eq!((beta(0.0, 2.0, 3.0), beta(1.0, 2.0, 3.0)), (Some(0.0), Some(1.0)));
        assert_eq!(beta(0.5, 1.5, 1e-300), Some(1.0));
        for (p, a, b) in
            [(0.5, 0.0, 1.0), (0.5, 1.0, -1.0), (0.5, f64::INFINITY, 1.0), (0.5, 1.0, f64::NAN), (-0.1, 1.0, 1.0)]
        {
            assert_eq!(beta(p, a, b), None, "{p} {a} {b}");
        }
    }

    #[test]
    fn quantiles_rise_and_end_for_all_shapes() {
        let shapes = [5e-324, 1e-300, 1e-8, 0.3, 1.0, 17.0, 1e5, 3e7, 2e8, 1e15, f64::MAX];
        let chances = [5e-324, 1e-200, 1e-9, 0.1, 0.499, 0.5, 0.9, 1.0 - 1e-9];
        for a in shapes {
            let ts: Vec<f64> = chances.iter().map(|p| student_t(*p, a).unwrap()).collect();
            assert!(ts.is_sorted(), "{a}: {ts:?}");
            for b in shapes {
                let xs: Vec<f64> = chances.iter().map(|p| beta(*p, a, b).unwrap()).collect();
                assert!(xs.iter().all(|x| (0.0..=1.0).contains(x)), "{a} {b}: {xs:?}");
                assert!(xs.windows(2).all(|pair| pair[0] <= pair[1] * (1.0 + 1e-12)), "{a} {b}: {xs:?}");
            }
        }
    }
}
