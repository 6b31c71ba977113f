//! Measures the errors and the times of the FLOAT64 functions, for the table in `docs/language.md`. It counts the
//! results that are not the exact value rounded, and computes the errors of these results in a higher precision. The
//! other results are within half a unit in the last place. The test of the errors, on fewer points, is
//! `runtime/tests/functions/ulp.rs`.
//!
//! ```text
//! cargo run --release -p cembra-runtime --example accuracy [points] [function]
//! cargo run --release -p cembra-runtime --example accuracy time [function]
//! ```
#![expect(clippy::print_stdout, reason = "it prints tables")]

#[path = "../tests/functions/exact.rs"]
mod exact;

use astro_float_num::{BigFloat, Consts, RoundingMode};
use cembra_runtime::math;
use std::hint::black_box;
use std::time::Instant;

/// A function of one or two numbers, in three implementations: this crate's, a correctly rounded one, and one in any
/// precision.
struct Function {
    name: &'static str,
    ours: fn(f64, f64) -> f64,
    correct: fn(f64, f64) -> f64,
    exact: fn(&Numbers, f64, f64, &mut Consts) -> BigFloat,
    /// The bounds of half of the arguments, for the first and for the second argument. `near` has the bounds of a
    /// quarter. The rest are random bits.
    usual: [(f64, f64); 2],
    near: [(f64, f64); 2],
}

/// A precision in bits, so high that the difference between a result and the exact value has 53 bits.
struct Numbers(usize);

const NEAREST: RoundingMode = RoundingMode::ToEven;

impl Numbers {
    fn of(&self, x: f64) -> BigFloat {
        // The crate reads subnormal numbers wrong.
        let up = 2f64.powi(200);
        if x.abs() < f64::MIN_POSITIVE {
            return BigFloat::from_f64(x * up, self.0).div(&BigFloat::from_f64(up, self.0), self.0, NEAREST);
        }
        BigFloat::from_f64(x, self.0)
    }
}

impl Numbers {
    /// Computes the probability that a normal variable with the variance 1/2 is at most `x`.
    fn normal_cdf(&self, x: f64, consts: &mut Consts) -> BigFloat {
        let scaled = self.of(x).mul(&self.of(2.0).sqrt(256, NEAREST), 256, NEAREST);
        exact::normal_cdf(&scaled, self.0, consts)
    }

    /// Computes the derivative of the error function at 0.
    fn slope(&self, consts: &mut Consts) -> BigFloat {
        self.of(2.0).div(&consts.pi(self.0, NEAREST).sqrt(self.0, NEAREST), self.0, NEAREST)
    }
}

macro_rules! one {
    ($name:literal, $ours:ident, $correct:ident, $exact:ident, $usual:expr, $near:expr) => {
        Function {
            name: $name,
            ours: |x, _| math::$ours(x),
            correct: |x, _| core_math::$correct(x),
            exact: |n, x, _, consts| n.of(x).$exact(n.0, NEAREST, consts),
            usual: [$usual, (0.0, 0.0)],
            near: [$near, (0.0, 0.0)],
        }
    };
}

const FUNCTIONS: [Function; 17] = [
    one!("exp", exp_f64, exp, exp, (-745.0, 710.0), (-1.0, 1.0)),
    Function {
        exact: |n, x, _, consts| n.of(2.0).pow(&n.of(x), n.0, NEAREST, consts),
        ..one!("exp2", exp2_f64, exp2, exp, (-1074.0, 1024.0), (-1.0, 1.0))
    },
    Function {
        exact: |n, x, _, consts| n.of(x).exp(2 * n.0, NEAREST, consts).sub(&n.of(1.0), 2 * n.0, NEAREST),
        ..one!("expm1", expm1_f64, expm1, exp, (-40.0, 40.0), (-1.0, 1.0))
    },
    one!("log", log_f64, log, ln, (0.0, 100.0), (0.5, 2.0)),
    Function {
        exact: |n, x, _, consts| {
            let sum = n.of(1.0).add(&n.of(x), 1200, NEAREST);
            sum.ln(2 * n.0, NEAREST, consts)
        },
        ..one!("log1p", log1p_f64, log1p, ln, (-1.0, 100.0), (-0.5, 1.0))
    },
    one!("log2", log2_f64, log2, log2, (0.0, 100.0), (0.5, 2.0)),
    one!("log10", log10_f64, log10, log10, (0.0, 100.0), (0.5, 2.0)),
    Function {
        name: "pow",
        ours: math::pow_f64,
        correct: core_math::pow,
        exact: |n, x, y, consts| n.of(x).pow(&n.of(y), n.0, NEAREST, consts),
        usual: [(0.0, 100.0), (-10.0, 10.0)],
        near: [(0.5, 2.0), (-1000.0, 1000.0)],
    },
    one!("sin", sin_f64, sin, sin, (-100.0, 100.0), (-1e6, 1e6)),
    one!("cos", cos_f64, cos, cos, (-100.0, 100.0), (-1e6, 1e6)),
    one!("sinh", sinh_f64, sinh, sinh, (-710.0, 710.0), (-1.0, 1.0)),
    one!("tanh", tanh_f64, tanh, tanh, (-20.0, 20.0), (-1.0, 1.0)),
    Function {
        name: "hypot",
        ours: math::hypot_f64,
        correct: core_math::hypot,
        exact: |n, x, y, _| {
            let square = |x: f64| n.of(x).mul(&n.of(x), 2 * n.0, NEAREST);
            square(x).add(&square(y), 2 * n.0, NEAREST).sqrt(n.0, NEAREST)
        },
        usual: [(0.0, 100.0), (0.0, 100.0)],
        near: [(0.5, 2.0), (0.5, 2.0)],
    },
    Function {
        name: "atan2",
        ours: math::atan2_f64,
        correct: core_math::atan2,
        exact: |n, y, x, consts| {
            let angle = n.of(y).div(&n.of(x), 2 * n.0, NEAREST).atan(n.0, NEAREST, consts);
            if x > 0.0 {
                return angle;
            }
            let half_turn = consts.pi(2 * n.0, NEAREST);
            let half_turn = if y < 0.0 { half_turn.neg() } else { half_turn };
            angle.add(&half_turn, n.0, NEAREST)
        },
        usual: [(-100.0, 100.0), (-100.0, 100.0)],
        near: [(0.5, 2.0), (0.5, 2.0)],
    },
    one!("atan", atan_f64, atan, atan, (-100.0, 100.0), (-2.0, 2.0)),
    Function {
        exact: |n, x, _, consts| {
            let difference = n.normal_cdf(x, consts).sub(&n.normal_cdf(-x, consts), n.0, NEAREST);
            // Near 0 both probabilities are about a half, and their difference loses digits. There the slope is exact
            // enough.
            if x.abs() < 1e-10 { n.of(x).mul(&n.slope(consts), n.0, NEAREST) } else { difference }
        },
        ..one!("erf", erf_f64, erf, atan, (-6.0, 6.0), (-1.0, 1.0))
    },
    Function {
        exact: |n, x, _, consts| n.normal_cdf(-x, consts).mul(&n.of(2.0), n.0, NEAREST),
        ..one!("erfc", erfc_f64, erfc, atan, (-6.0, 27.0), (-1.0, 1.0))
    },
];

fn within((low, high): (f64, f64), random: &mut fastrand::Rng) -> f64 {
    low + (high - low) * random.f64()
}

impl Function {
    /// Returns true for subnormal results, which are rounded twice, and for huge angles, which are left to another
    /// library.
    fn is_apart(&self, x: f64, result: f64) -> bool {
        let huge = ["sin", "cos"].contains(&self.name) && x.abs() >= 1_073_741_824.0;
        huge || result.abs() < f64::MIN_POSITIVE
    }

    fn arguments(&self, number: u32, random: &mut fastrand::Rng) -> (f64, f64) {
        match number % 4 {
            0 | 1 => (within(self.usual[0], random), within(self.usual[1], random)),
            2 => (within(self.near[0], random), within(self.near[1], random)),
            _ => (f64::from_bits(random.u64(..)), f64::from_bits(random.u64(..))),
        }
    }
}

/// Converts a number to binary64, from its highest 64 bits.
fn rounded(x: &BigFloat) -> f64 {
    let Some((words, _, sign, exponent, _)) = x.as_raw_parts() else { return f64::NAN };
    let top = words.last().map_or(0.0, |word| *word as f64);
    // In two steps: the exponent may be that of a unit of a subnormal number.
    let magnitude = top * 2f64.powi(-64) * 2f64.powi(exponent / 2) * 2f64.powi(exponent - exponent / 2);
    if sign.is_negative() { -magnitude } else { magnitude }
}

/// Returns the difference between `found` and the exact value, in units of the last place of `correct`, which are those
/// of the exact value.
fn off(function: &Function, (x, y): (f64, f64), found: f64, correct: f64, consts: &mut Consts) -> f64 {
    let numbers = Numbers(192);
    let exact = (function.exact)(&numbers, x, y, consts);
    let below = f64::from_bits(correct.abs().to_bits() - 1);
    let unit = correct.abs() - below;
    let difference = numbers.of(found).sub(&exact, 192, NEAREST);
    // Scaled, because a unit may be the least number.
    let scaled = difference.mul(&numbers.of(1.0 / unit.max(1e-300)), 192, NEAREST);
    let scale = if unit < 1e-300 { 1e-300 / unit } else { 1.0 };
    rounded(&scaled).abs() * scale
}

fn measure(function: &Function, points: u32) {
    let mut random = fastrand::Rng::with_seed(22);
    let mut consts = Consts::new().expect("memory");
    let (mut misses, mut worst, mut worst_apart) = (0_u32, 0.5_f64, 0.5_f64);
    for number in 0..points {
        let arguments = function.arguments(number, &mut random);
        let (x, y) = arguments;
        let (found, correct) = ((function.ours)(x, y), (function.correct)(x, y));
        if found.to_bits() == correct.to_bits() || (found.is_nan() && correct.is_nan()) {
            continue;
        }
        misses += 1;
        assert!(correct.is_finite() && correct != 0.0, "{}({x:e}, {y:e}) = {found:e}, not {correct:e}", function.name);
        let off = off(function, arguments, found, correct, &mut consts);
        let worst = if function.is_apart(x, correct) { &mut worst_apart } else { &mut worst };
        *worst = worst.max(off);
    }
    let share = 100.0 * f64::from(misses) / f64::from(points);
    println!("| `{}` | {worst:.3} | {worst_apart:.3} | {share:.2} % |", function.name);
}

/// Measures the nanoseconds per call: for calls that do not depend on each other, and for calls that each need the
/// result of the call before.
fn time(function: &Function) {
    const CALLS: u32 = 4096;
    let mut random = fastrand::Rng::with_seed(22);
    let arguments: Vec<(f64, f64)> = (0..CALLS).map(|n| function.arguments(n % 3, &mut random)).collect();
    let (mut free, mut waiting) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..400 {
        let start = Instant::now();
        for (x, y) in &arguments {
            black_box((function.ours)(*x, *y));
        }
        free = free.min(start.elapsed().as_secs_f64());
        let start = Instant::now();
        let mut last = 0.0;
        for (x, y) in &arguments {
            last = (function.ours)(*x + last * 1e-300, *y).min(1.0);
        }
        black_box(last);
        waiting = waiting.min(start.elapsed().as_secs_f64());
    }
    let one = |seconds: f64| seconds / f64::from(CALLS) * 1e9;
    println!("| `{}` | {:.2} ns | {:.2} ns |", function.name, one(free), one(waiting));
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let timed = arguments.first().is_some_and(|first| first == "time");
    let points = arguments.first().and_then(|first| first.parse().ok()).unwrap_or(10_000_000);
    for function in &FUNCTIONS {
        if arguments.get(1).is_none_or(|only| only == function.name) {
            if timed { time(function) } else { measure(function, points) }
        }
    }
}
