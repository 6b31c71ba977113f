//! Runs the fuzzer with settings from a few numbers: `cargo run --release -p cembra-fuzzing --example fuzz -- [PROGRAMS [SEED [START [DEPTH
//! [OPERATORS [PERCENT]]]]]]`. `PERCENT` is the percentage of programs that compute on arrays.

use cembra_fuzzing::{Config, run};
use std::process::ExitCode;

#[expect(clippy::print_stdout, reason = "the report is what the example is for")]
fn main() -> ExitCode {
    let mut numbers = std::env::args().skip(1).filter_map(|arg| arg.parse::<u64>().ok());
    let defaults = Config::default();
    let config = Config {
        programs: Some(numbers.next().unwrap_or(20_000)),
        seed: numbers.next().unwrap_or(1),
        start: numbers.next().unwrap_or(0),
        max_depth: numbers.next().map_or(defaults.max_depth, |depth| depth as u32),
        max_operators: numbers.next().map_or(defaults.max_operators, |most| most as u32),
        arrays: numbers.next().map_or(defaults.arrays, |percent| percent as f64 / 100.0),
        ..defaults
    };
    let report = run(&config, &mut |_| {});
    println!("{report}");
    if report.mismatch().is_none() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
