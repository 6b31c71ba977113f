//! Tests the functions that compute in binary32 on every argument. A result is at most one unit in the last place off,
//! and is infinite, zero or NaN exactly where the correctly rounded function is. The printed report is the table in
//! `docs/language.md`.
//!
//! ```text
//! cargo test --release -p cembra-runtime --test functions exhaustive -- --ignored --nocapture
//! ```
#![expect(clippy::print_stdout, reason = "the report")]

use cembra_runtime::math;
use std::ops::Range;
use std::thread;

type Single = fn(f32) -> f32;

/// A function: its name, this crate's implementation, the correctly rounded one, and a far more exact one in binary64.
type Function = (&'static str, Single, Single, fn(f64) -> f64);

const FUNCTIONS: [Function; 6] = [
    ("exp", math::exp_f32, core_math::expf, core_math::exp),
    ("expm1", math::expm1_f32, core_math::expm1f, core_math::expm1),
    ("log", math::log_f32, core_math::logf, core_math::log),
    ("log1p", math::log1p_f32, core_math::log1pf, core_math::log1p),
    ("log2", math::log2_f32, core_math::log2f, core_math::log2),
    ("log10", math::log10_f32, core_math::log10f, core_math::log10),
];

/// The number of arguments that a thread tests at a time.
const BATCH: u64 = 1 << 28;

/// The comparison of a function's results with the correct ones. `off` is the number of results that are not the exact
/// value rounded.
#[derive(Clone, Copy, Default)]
struct Report {
    off: u64,
    /// The largest error of these results, in units of the last place of the exact value.
    furthest: f64,
}

/// Returns the value of the last bit of binary32 numbers as large as `exact`.
fn unit(exact: f64) -> f64 {
    let exponent = ((exact.abs().to_bits() >> 52) as i32 - 1023).max(-126);
    f64::from(exponent - 23).exp2()
}

fn compare((name, ours, correct, exact): Function, arguments: Range<u64>) -> Report {
    let mut report = Report::default();
    for bits in arguments {
        let x = f32::from_bits(bits as u32);
        let (found, wanted) = (ours(x), correct(x));
        if found.to_bits() == wanted.to_bits() || (found.is_nan() && wanted.is_nan()) {
            continue;
        }
        report.off += 1;
        let alike = found.is_sign_negative() == wanted.is_sign_negative()
            && found.is_finite() == wanted.is_finite()
            && (found == 0.0) == (wanted == 0.0);
        let apart = found.to_bits().abs_diff(wanted.to_bits());
        assert!(alike && apart == 1, "{name}({x:e}) = {found:e}, correctly {wanted:e}");
        let exact = exact(f64::from(x));
        report.furthest = report.furthest.max((f64::from(found) - exact).abs() / unit(exact));
    }
    report
}

#[test]
#[ignore = "takes minutes in a release build"]
fn binary32_functions_are_within_an_ulp_everywhere() {
    for function in FUNCTIONS {
        let mut total = Report::default();
        for start in (0..1 << 32).step_by(2 * BATCH as usize) {
            let reports = thread::scope(|scope| {
                let halves = [start, start + BATCH];
                let threads = halves.map(|start| scope.spawn(move || compare(function, start..start + BATCH)));
                threads.map(|thread| thread.join().expect("every result is near"))
            });
            for report in reports {
                total.off += report.off;
                total.furthest = total.furthest.max(report.furthest);
            }
        }
        let share = 100.0 * total.off as f64 / 2f64.powi(32);
        println!("{}: at most {:.2} units off, {share:.2} % not the exact value rounded", function.0, total.furthest);
    }
}
