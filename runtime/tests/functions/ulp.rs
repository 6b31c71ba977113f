//! Compares every mathematical function with the correctly rounded one. A result is at most one unit in the last place
//! off, and is infinite, zero or NaN exactly where the correctly rounded result is.

use crate::exact;
use astro_float_num::{BigFloat, Consts};
use cembra_runtime::math;
use std::f64::consts::PI;

/// The width of a float: binary32 or binary64.
#[derive(Clone, Copy)]
enum Width {
    Single,
    Double,
}

impl Width {
    /// Returns the position of a float among the floats of its sign, and true for a negative one. The float is given by
    /// its bits and must not be NaN.
    fn place(self, bits: u64) -> (u64, bool) {
        let sign = match self {
            Width::Single => 1 << 31,
            Width::Double => 1 << 63,
        };
        (bits & !sign, bits & sign != 0)
    }

    /// Returns the position of infinity.
    fn infinity(self) -> u64 {
        match self {
            Width::Single => f32::INFINITY.to_bits().into(),
            Width::Double => f64::INFINITY.to_bits(),
        }
    }
}

/// The comparison of a function's results with the correct ones. `off` is the number of results that differ.
#[derive(Default)]
struct Tally {
    points: u32,
    off: u32,
}

impl Tally {
    /// Compares one result with the correct one. Both are given by their bits; `None` is NaN.
    fn count(&mut self, what: impl Fn() -> String, width: Width, found: Option<u64>, correct: Option<u64>) {
        self.points += 1;
        if found == correct {
            return;
        }
        self.off += 1;
        let (Some(found), Some(correct)) = (found, correct) else { panic!("{}: NaN or not", what()) };
        let ((found, found_sign), (correct, sign)) = (width.place(found), width.place(correct));
        let ends = [0, width.infinity()];
        assert_eq!(ends.contains(&found), ends.contains(&correct), "{}: zero, infinite or not", what());
        assert_eq!(found_sign, sign, "{}: the sign", what());
        assert!(found.abs_diff(correct) <= 1, "{}: {} units off", what(), found.abs_diff(correct));
    }

    fn finish(self, name: &str, most_off: f64) {
        let share = f64::from(self.off) / f64::from(self.points);
        assert!(share <= most_off, "{name}: {:.3} % of {} not correctly rounded", 100.0 * share, self.points);
    }
}

fn single(x: f32) -> Option<u64> {
    (!x.is_nan()).then(|| x.to_bits().into())
}

fn double(x: f64) -> Option<u64> {
    (!x.is_nan()).then(|| x.to_bits())
}

type Singles = (&'static str, f64, fn(f32) -> f32, fn(f32) -> f32);

/// The binary32 functions: the name, the share of results that may differ from the correctly rounded ones, this crate's
/// implementation, and the correctly rounded one. Some functions compute in binary32; `exhaustive.rs` tests these on
/// all arguments. The results of the others, which compute in binary64, hardly ever differ.
const SINGLES: [Singles; 14] = [
    ("exp", 0.02, math::exp_f32, core_math::expf),
    ("exp2", 0.01, math::exp2_f32, core_math::exp2f),
    ("expm1", 0.03, math::expm1_f32, core_math::expm1f),
    ("log", 0.03, math::log_f32, core_math::logf),
    ("log1p", 0.03, math::log1p_f32, core_math::log1pf),
    ("log2", 0.06, math::log2_f32, core_math::log2f),
    ("log10", 0.08, math::log10_f32, core_math::log10f),
    ("sin", 0.01, math::sin_f32, core_math::sinf),
    ("cos", 0.01, math::cos_f32, core_math::cosf),
    ("sinh", 0.01, math::sinh_f32, core_math::sinhf),
    ("tanh", 0.01, math::tanh_f32, core_math::tanhf),
    ("atan", 0.01, math::atan_f32, core_math::atanf),
    ("erf", 0.01, math::erf_f32, core_math::erff),
    ("erfc", 0.01, math::erfc_f32, core_math::erfcf),
];

#[test]
fn binary32_functions_are_within_an_ulp() {
    for (name, most_off, ours, correct) in SINGLES {
        let mut tally = Tally::default();
        for bits in (0..=u32::MAX).step_by(4093).chain((0x3F70_0000..0x3F90_0000).step_by(7)) {
            let x = f32::from_bits(bits);
            tally.count(|| format!("{name}({x:e})"), Width::Single, single(ours(x)), single(correct(x)));
        }
        tally.finish(name, most_off);
    }
}

type Doubles = (&'static str, f64, fn(f64) -> f64, fn(f64) -> f64, &'static [(f64, f64)]);

/// The binary64 functions: the name, the share of results that may differ from the correctly rounded ones, this crate's
/// implementation, the correctly rounded one, and ranges in which errors are largest: ends of polynomials,
/// cancellation, overflow, the edge of exact sums.
const DOUBLES: [Doubles; 14] = [
    ("exp", 0.03, math::exp_f64, core_math::exp, &[(-745.2, -700.0), (-745.0, 709.79), (-0.35, 0.35)]),
    ("exp2", 0.03, math::exp2_f64, core_math::exp2, &[(-1075.1, -1021.0), (-1075.0, 1024.1), (-0.5, 0.5), (-3.0, 3.0)]),
    (
        "expm1",
        0.1,
        math::expm1_f64,
        core_math::expm1,
        &[(-1.0, 1.0), (0.34, 0.42), (-0.4, -0.34), (30.0, 45.0), (-40.0, 709.79)],
    ),
    ("log", 0.015, math::log_f64, core_math::log, &[(0.0, 10.0), (0.7, 0.72), (1.4, 1.43), (0.99, 1.01)]),
    (
        "log1p",
        0.025,
        math::log1p_f64,
        core_math::log1p,
        &[(-1.0, 10.0), (-0.3, -0.24), (0.4, 0.52), (0.0, 1e17), (-1e-8, 1e-8)],
    ),
    ("log2", 0.015, math::log2_f64, core_math::log2, &[(0.0, 10.0), (0.7, 0.72), (1.4, 1.43), (0.99, 1.01)]),
    ("log10", 0.015, math::log10_f64, core_math::log10, &[(0.0, 10.0), (0.7, 0.72), (1.4, 1.43), (0.99, 1.01)]),
    ("sin", 0.05, math::sin_f64, core_math::sin, &[(-7.0, 7.0), (PI - 1e-5, PI + 1e-5), (-1e5, 1e5), (-2e9, 2e9)]),
    (
        "cos",
        0.05,
        math::cos_f64,
        core_math::cos,
        &[(-7.0, 7.0), (PI / 2.0 - 1e-5, PI / 2.0 + 1e-5), (-1e5, 1e5), (-2e9, 2e9)],
    ),
    ("sinh", 0.1, math::sinh_f64, core_math::sinh, &[(-1.0, 1.0), (0.3, 0.45), (-20.0, -17.0), (300.0, 710.5)]),
    (
        "tanh",
        0.05,
        math::tanh_f64,
        core_math::tanh,
        &[(-1.0, 1.0), (0.16, 0.18), (0.5, 0.6), (-1e-8, 1e-8), (-20.0, 20.0)],
    ),
    ("atan", 0.03, math::atan_f64, core_math::atan, &[(-3.0, 3.0), (0.4, 0.43), (2.4, 2.43), (0.0, 1000.0)]),
    ("erf", 0.08, math::erf_f64, core_math::erf, &[(-7.0, 7.0), (0.45, 0.55), (-0.5, 0.5), (0.5, 1.0), (5.5, 6.1)]),
    (
        "erfc",
        0.05,
        math::erfc_f64,
        core_math::erfc,
        &[(-7.0, 7.0), (0.45, 0.55), (-0.5, 0.5), (0.5, 1.0), (1.0, 4.0), (4.0, 26.5), (26.5, 27.3)],
    ),
];

const SPECIAL: [f64; 17] = [
    0.0,
    1.0,
    2.0,
    0.5,
    1.5,
    5e-324,
    1e-310,
    f64::MIN_POSITIVE,
    1e-20,
    f64::EPSILON,
    9_007_199_254_740_992.0,
    1e22,
    709.782_712_893_384,
    745.133_219_101_941_1,
    f64::MAX,
    f64::INFINITY,
    f64::NAN,
];

#[test]
fn binary64_functions_are_within_an_ulp() {
    for (name, most_off, ours, correct, ranges) in DOUBLES {
        let mut random = fastrand::Rng::with_seed(5);
        let mut tally = Tally::default();
        let mut check =
            |x: f64| tally.count(|| format!("{name}({x:e})"), Width::Double, double(ours(x)), double(correct(x)));
        for (low, high) in ranges {
            for _ in 0..20_000 {
                check(low + (high - low) * random.f64());
            }
        }
        for _ in 0..20_000 {
            check(f64::from_bits(random.u64(..)));
        }
        for x in SPECIAL {
            check(x);
            check(-x);
        }
        tally.finish(name, most_off);
    }
}

#[test]
fn powers_are_within_an_ulp() {
    let mut random = fastrand::Rng::with_seed(6);
    let (mut singles, mut doubles) = (Tally::default(), Tally::default());
    let mut check = |x: f64, y: f64| {
        let what = || format!("pow({x:e}, {y:e})");
        doubles.count(what, Width::Double, double(math::pow_f64(x, y)), double(core_math::pow(x, y)));
        let (x, y) = (x as f32, y as f32);
        let what = || format!("powf({x:e}, {y:e})");
        singles.count(what, Width::Single, single(math::pow_f32(x, y)), single(core_math::powf(x, y)));
    };
    for (base, exponent) in [(3.0, 60.0), (1e10, 30.0), (0.0, 3.0), (-5.0, 5.0), (1e-300, 1.0)] {
        for _ in 0..20_000 {
            let y = (random.f64() - 0.5) * 2.0 * exponent;
            check(base * random.f64(), y);
            check(base, y.round());
        }
    }
    // Bases near 1 and near the ends of the series, with exponents that make the most of an error of the logarithm.
    for (base, width, exponent) in [(1.0, 0.1, 7000.0), (0.707, 0.01, 2000.0), (1.414, 0.01, 2000.0)] {
        for _ in 0..20_000 {
            check(base + width * (random.f64() - 0.5), (random.f64() - 0.5) * 2.0 * exponent);
        }
    }
    for x in SPECIAL {
        for y in SPECIAL {
            for (x, y) in [(x, y), (-x, y), (x, -y), (-x, -y)] {
                check(x, y);
                check(x, y.round());
            }
        }
    }
    singles.finish("powf", 0.02);
    doubles.finish("pow", 0.03);
}

/// A function of two numbers: its name, the share of results that may differ from the correctly rounded ones, this
/// crate's implementation, and the correctly rounded one.
type OfTwo<F> = (&'static str, f64, fn(F, F) -> F, fn(F, F) -> F);

#[test]
fn angles_and_distances_are_within_an_ulp() {
    const SINGLES: [OfTwo<f32>; 2] =
        [("atan2f", 0.01, math::atan2_f32, core_math::atan2f), ("hypotf", 0.01, math::hypot_f32, core_math::hypotf)];
    const DOUBLES: [OfTwo<f64>; 2] =
        [("atan2", 0.03, math::atan2_f64, core_math::atan2), ("hypot", 0.01, math::hypot_f64, core_math::hypot)];
    let mut random = fastrand::Rng::with_seed(8);
    let mut points: Vec<(f64, f64)> = Vec::new();
    for _ in 0..20_000 {
        let mut between = |low: f64, high: f64| low + (high - low) * random.f64();
        points.push((between(-1.0, 1.0), between(-1.0, 1.0)));
        // Near the directions where another base is taken, and near the axes.
        let (x, off) = (between(-3.0, 3.0), between(-0.01, 0.01));
        points.extend([(x, x + off), (x * 2.414_213_56 + off, x), (x * 0.414_213_56 + off, x), (off, x), (x, off)]);
        // Numbers of unlike and of extreme sizes.
        let mut sized = |most: i32| (random.f64() - 0.5) * 2f64.powi(random.i32(-most..most));
        points.extend([(sized(40), sized(40)), (sized(145), sized(145)), (sized(1022), sized(1022))]);
        let (x, size) = (random.f64(), 2f64.powi(random.i32(-1022..1022)));
        points.push((x * size, random.f64() * size));
        points.push((f64::from_bits(random.u64(..)), f64::from_bits(random.u64(..))));
    }
    for x in SPECIAL {
        for y in SPECIAL {
            points.extend([(x, y), (-x, y), (x, -y), (-x, -y)]);
        }
    }
    for (name, most_off, ours, correct) in DOUBLES {
        let mut tally = Tally::default();
        for (x, y) in &points {
            let what = || format!("{name}({x:e}, {y:e})");
            tally.count(what, Width::Double, double(ours(*x, *y)), double(correct(*x, *y)));
        }
        tally.finish(name, most_off);
    }
    for (name, most_off, ours, correct) in SINGLES {
        let mut tally = Tally::default();
        for (x, y) in points.iter().map(|(x, y)| (*x as f32, *y as f32)) {
            let what = || format!("{name}({x:e}, {y:e})");
            tally.count(what, Width::Single, single(ours(x, y)), single(correct(x, y)));
        }
        tally.finish(name, most_off);
    }
}

#[test]
fn angles_have_the_signs_of_zeros() {
    use std::f64::consts::PI;
    let angles =
        [(0.0, 1.0), (-0.0, 1.0), (0.0, -1.0), (-0.0, -1.0), (0.0, 0.0), (-0.0, 0.0), (0.0, -0.0), (-0.0, -0.0)];
    for ((y, x), angle) in angles.into_iter().zip([0.0_f64, -0.0, PI, -PI, 0.0, -0.0, PI, -PI]) {
        assert_eq!(math::atan2_f64(y, x).to_bits(), angle.to_bits(), "{y} {x}");
        assert_eq!(math::atan2_f32(y as f32, x as f32).to_bits(), (angle as f32).to_bits(), "{y} {x}");
    }
    assert_eq!((math::hypot_f64(3e300, 4e300), math::hypot_f64(3e-310, 4e-310)), (5e300, 5e-310));
    assert_eq!((math::hypot_f64(f64::NAN, -f64::INFINITY), math::hypot_f64(-0.0, 0.0)), (f64::INFINITY, 0.0));
    assert_eq!(
        (math::exp2_f64(-1074.0), math::exp2_f64(-1075.0), math::exp2_f64(1024.0)),
        (5e-324, 0.0, f64::INFINITY)
    );
}

/// Returns the `f64` that is nearest to a positive number.
fn nearest(x: &BigFloat) -> f64 {
    let (words, _, _, exponent, _) = x.as_raw_parts().expect("a finite number");
    let mut words = words.iter().rev().copied();
    let top = words.next().unwrap_or(0);
    let sticky = words.any(|word| word != 0);
    // The number is 0.top.. * 2^exponent, and has this many bits as an `f64`.
    let kept = (exponent + 1074).clamp(0, 53) as u32;
    let wide = u128::from(top) << 1 | u128::from(sticky);
    let dropped = 65 - kept;
    let (whole, rest) = (wide >> dropped, wide & ((1 << dropped) - 1));
    let half = 1_u128 << (dropped - 1);
    let whole = whole + u128::from(rest > half || (rest == half && whole & 1 == 1));
    // In two steps, each exact: the power may be that of a subnormal number.
    let power = exponent - kept as i32;
    whole as f64 * 2f64.powi(power / 2) * 2f64.powi(power - power / 2)
}

/// Compares the normal distribution with the exact one: in the middle, where the two ways to compute it meet, in both
/// tails, and down to where the probability is subnormal and then zero.
#[test]
fn normal_probabilities_are_within_an_ulp() {
    let mut random = fastrand::Rng::with_seed(7);
    let mut consts = Consts::new().expect("memory");
    let (mut singles, mut doubles) = (Tally::default(), Tally::default());
    let mut check = |x: f64| {
        let exact = exact::normal_cdf(&BigFloat::from_f64(x, 64), 128, &mut consts);
        let correct = nearest(&exact);
        let what = || format!("normal_cdf({x:e})");
        doubles.count(what, Width::Double, double(math::normal_cdf_f64(x)), double(correct));
        if x == f64::from(x as f32) {
            singles.count(what, Width::Single, single(math::normal_cdf_f32(x as f32)), single(correct as f32));
        }
    };
    for (low, high) in
        [(-0.75, 0.75), (-0.8, -0.7), (0.7, 0.8), (-8.0, -0.75), (0.75, 8.5), (-37.5, -8.0), (-38.5, -37.5)]
    {
        for _ in 0..200 {
            let x = low + (high - low) * random.f64();
            check(x);
            check(f64::from(x as f32));
        }
    }
    for x in [0.0, 1e-300, 1e-9, 0.75, 1.0, 5.0, 8.3, 14.1, 14.2, 20.0, 37.5, 38.4, 38.5] {
        check(x);
        check(-x);
    }
    singles.finish("normal_cdf_f32", 0.01);
    doubles.finish("normal_cdf_f64", 0.06);
}

/// The error functions and the normal distribution where a result ends: at the infinities, at zeros, and where it becomes subnormal.
#[test]
fn error_functions_end_as_they_should() {
    let infinity = f64::INFINITY;
    assert_eq!((math::erf_f64(infinity), math::erf_f64(-infinity), math::erf_f64(6.0)), (1.0, -1.0, 1.0));
    assert_eq!((math::erfc_f64(infinity), math::erfc_f64(-infinity), math::erfc_f64(0.0)), (0.0, 2.0, 1.0));
    assert_eq!((math::normal_cdf_f64(infinity), math::normal_cdf_f64(-infinity)), (1.0, 0.0));
    assert_eq!((math::normal_cdf_f64(0.0), math::normal_cdf_f64(-0.0)), (0.5, 0.5));
    assert_eq!(math::erf_f64(0.5), 0.520_499_877_813_046_5);
    assert_eq!(math::erfc_f64(10.0), 2.088_487_583_762_545e-45);
    assert_eq!(math::normal_cdf_f64(-1.0), 0.158_655_253_931_457_05);
    assert_eq!(math::normal_cdf_f64(-38.0), 2.885_428_35e-316);
    assert_eq!((math::normal_cdf_f64(-38.4), math::normal_cdf_f64(-38.5)), (6.4e-323, 0.0));
    assert!([math::erf_f64, math::erfc_f64, math::normal_cdf_f64].iter().all(|function| function(f64::NAN).is_nan()));
    let infinity = f32::INFINITY;
    assert_eq!((math::erf_f32(infinity), math::erfc_f32(-infinity), math::normal_cdf_f32(-infinity)), (1.0, 2.0, 0.0));
    assert_eq!((math::erfc_f32(infinity), math::normal_cdf_f32(infinity), math::normal_cdf_f32(0.0)), (0.0, 1.0, 0.5));
    assert!([math::erf_f32, math::erfc_f32, math::normal_cdf_f32].iter().all(|function| function(f32::NAN).is_nan()));
}

#[test]
fn simple_arguments_have_the_nearest_values() {
    assert_eq!(math::exp_f64(1.0), std::f64::consts::E);
    assert_eq!(math::pow_f64(2.0, 1.5), 2.0 * std::f64::consts::SQRT_2);
    assert_eq!(math::cos_f64(10.5), -0.475_536_927_995_992_5);
}

#[test]
fn special_values_are_those_of_c() {
    let inf = f32::INFINITY;
    assert_eq!((math::exp_f32(inf), math::exp_f32(-inf), math::exp_f32(89.0)), (inf, 0.0, inf));
    assert_eq!((math::expm1_f32(-inf), math::expm1_f32(inf)), (-1.0, inf));
    let odds = [
        math::expm1_f32,
        math::log1p_f32,
        math::sin_f32,
        math::sinh_f32,
        math::tanh_f32,
        math::atan_f32,
        math::erf_f32,
    ];
    for odd in odds {
        assert_eq!((odd(-0.0).to_bits(), odd(0.0).to_bits()), ((-0.0_f32).to_bits(), 0));
    }
    let odds = [
        math::expm1_f64,
        math::log1p_f64,
        math::sin_f64,
        math::sinh_f64,
        math::tanh_f64,
        math::atan_f64,
        math::erf_f64,
    ];
    for odd in odds {
        assert_eq!((odd(-0.0).to_bits(), odd(0.0).to_bits()), ((-0.0_f64).to_bits(), 0));
    }
    for (x, result) in [(inf, 1.0), (-inf, -1.0), (9.0, 1.0 - f32::EPSILON / 2.0), (9.1, 1.0), (-1e9, -1.0)] {
        assert_eq!(math::tanh_f32(x), result);
    }
    for (x, result) in [(19.0, 1.0 - f64::EPSILON / 2.0), (19.1, 1.0), (20.5, 1.0), (f64::NEG_INFINITY, -1.0)] {
        assert_eq!(math::tanh_f64(x), result);
    }
    // The largest arguments with finite results, and the next.
    assert_eq!((math::exp_f32(88.722_83), math::exp_f32(88.722_84)), (f32::from_bits(0x7F7F_FF84), inf));
    assert_eq!((math::expm1_f32(88.722_83), math::expm1_f32(88.722_84)), (f32::from_bits(0x7F7F_FF84), inf));
    // Subnormal results: the least, half of it and less.
    assert_eq!((math::exp_f32(-103.28), math::exp_f32(-103.97), math::exp_f32(-103.98)), (1e-45, 1e-45, 0.0));
    assert_eq!((math::log_f32(0.0), math::log_f32(-0.0), math::log_f32(inf)), (-inf, -inf, inf));
    for n in 0..=10 {
        let power = 10f32.powi(n);
        assert_eq!((math::log10_f32(power), math::log2_f32(2f32.powi(n))), (n as f32, n as f32));
    }
    assert_eq!((math::log1p_f32(-1.0), math::log2_f32(8.0), math::log10_f32(1000.0)), (-inf, 3.0, 3.0));
    assert_eq!((math::log2_f64(0.125), math::log10_f64(1e22), math::pow_f64(-2.0, 3.0)), (-3.0, 22.0, -8.0));
    let (nan, infinity) = (f64::NAN, f64::INFINITY);
    assert_eq!(
        (math::pow_f64(nan, 0.0), math::pow_f64(0.0, -1.0), math::pow_f64(-1.0, infinity)),
        (1.0, infinity, 1.0)
    );
    assert_eq!(math::pow_f32(1.0, f32::NAN), 1.0);
    // Preparation replaces this power by the root, and may change no bit.
    for n in 1..1000 {
        let (x, y) = (f64::from(n) / 7.0, n as f32 / 7.0);
        assert_eq!((math::pow_f64(x, 0.5), math::pow_f32(y, 0.5)), (x.sqrt(), y.sqrt()));
    }
    let nans =
        [math::log_f32(-1.0), math::log1p_f32(-1.5), math::exp_f32(f32::NAN), math::sin_f32(inf), math::cos_f32(inf)];
    assert!(nans.iter().all(|x| x.is_nan()));
}
