//! What counting evaluations adds to a call of a small model by structs and by values: without metrics, with those that count compilations alone,
//! with those that count evaluations too. Nanoseconds per call, minima of interleaved rounds.
//! `cargo run --release --manifest-path benches/Cargo.toml --example counting`.

use cembra::metrics::Counters;
use cembra::{Error, Model, Options, Value};
use cembra_benches::measure::shortest;
use std::hint::black_box;
use std::io::Write;
use std::sync::Arc;

const CALLS: u32 = 200_000;
const ROUNDS: usize = 51;

#[derive(cembra::Input)]
struct Row {
    x: f64,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let model = Model::parse("input x: f64; x * 2.0 + 1.0")?;
    let none = Options::default();
    let few = Options::default().metrics(Arc::new(Counters::default()));
    let all = Options::default().metrics(Arc::new(Counters::with_evaluations()));
    let mut out = std::io::stdout().lock();
    for (name, options) in [("metrics", &few), ("evaluations counted", &all)] {
        let structs = |options: &Options| -> Result<_, Error> {
            let mut executor = model.executor::<Row, f64>(options)?;
            let (row, mut made) = (Row { x: 1.5 }, 0.0);
            Ok(move || (0..CALLS).try_for_each(|_| executor.run_into(black_box(&row), black_box(&mut made))))
        };
        let values = |options: &Options| -> Result<_, Error> {
            let mut session = model.compile(options)?.session();
            let (row, mut made) = ([Value::from(1.5)], Vec::new());
            Ok(move || (0..CALLS).try_for_each(|_| session.evaluate_into(black_box(&row), black_box(&mut made))))
        };
        let by_structs = shortest(ROUNDS, structs(&none)?, structs(options)?);
        let by_values = shortest(ROUNDS, values(&none)?, values(options)?);
        for (door, times) in [("structs", by_structs), ("values", by_values)] {
            let [without, with] = times.map(|time| time / f64::from(CALLS));
            writeln!(out, "{door:8} {name:20} {with:6.2} ns a call, {without:6.2} without: {:+.2} ns", with - without)?;
        }
    }
    Ok(())
}
