//! Every mathematical function against the correctly rounded one: never further off than one unit in the last place, and
//! infinite, zero and NaN exactly where that is.

use cembra_runtime::math;
use std::f64::consts::PI;

/// Which of two widths a number has.
#[derive(Clone, Copy)]
enum Width {
    Single,
    Double,
}

impl Width {
    /// The position of a number among those of its sign, and the sign; nothing for a NaN.
    fn place(self, bits: u64) -> (u64, bool) {
        let sign = match self {
            Width::Single => 1 << 31,
            Width::Double => 1 << 63,
        };
        (bits & !sign, bits & sign != 0)
    }

    /// The place of infinity.
    fn infinity(self) -> u64 {
        match self {
            Width::Single => f32::INFINITY.to_bits().into(),
            Width::Double => f64::INFINITY.to_bits(),
        }
    }
}

/// How the results of a function compare with the correct ones.
#[derive(Default)]
struct Tally {
    points: u32,
    off: u32,
}

impl Tally {
    /// One result, as bits, and the correct one; NaNs have no bits.
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

/// With the share that may be rounded another way: some compute in binary32, which `exhaustive.rs` does on all arguments; of
/// others, which compute in binary64, the rounding is hardly ever another.
const SINGLES: [Singles; 11] = [
    ("exp", 0.02, math::exp_f32, core_math::expf),
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

/// With the share that may be rounded another way, and ranges in which errors are largest: ends of polynomials,
/// cancellation, overflow, the edge of exact sums.
const DOUBLES: [Doubles; 11] = [
    ("exp", 0.03, math::exp_f64, core_math::exp, &[(-745.2, -700.0), (-745.0, 709.79), (-0.35, 0.35)]),
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
    for odd in [math::expm1_f32, math::log1p_f32, math::sin_f32, math::sinh_f32, math::tanh_f32, math::atan_f32] {
        assert_eq!((odd(-0.0).to_bits(), odd(0.0).to_bits()), ((-0.0_f32).to_bits(), 0));
    }
    for odd in [math::expm1_f64, math::log1p_f64, math::sin_f64, math::sinh_f64, math::tanh_f64, math::atan_f64] {
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
