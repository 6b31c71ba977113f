//! From how many rows on `run_many` is faster than `run_into` row by row: nanoseconds per row, medians of interleaved rounds.
//! `cargo run --release --manifest-path benches/Cargo.toml --example run_many`.

use cembra::{Model, Optional, Options};
use cembra_benches::measure::{Effort, Task, interleave};
use std::io::Write;
use std::time::Duration;

/// Numbers of rows of a call.
const SIZES: [usize; 9] = [1, 4, 16, 32, 64, 128, 256, 1024, 4096];

#[derive(cembra::Input)]
struct Row {
    a: f64,
    b: f64,
    c: f64,
    d: Optional<f64>,
    n: i64,
}

#[derive(cembra::Output, Clone, Copy, Default)]
struct Found {
    score: f64,
    limit: f64,
}

/// The cost of a row differs: the first model has ten operators that take about a nanosecond each, the second five functions.
const MODELS: [(&str, &str); 2] = [
    (
        "ten operators",
        "numbers f64
        input a, b, c: f64, d: f64?, n: i64
        let base = a * 0.3 + b * 0.2 - c * 0.1 + (d ?? 1.0)
        let load = base * n / (c + 1.0)
        output score: f64 = if base > 4.0 then load * 1.1 else load * 0.9
        output limit: f64 = clamp(base * 10.0 - n, 0.0, 1000.0)",
    ),
    (
        "five exp and log",
        "numbers f64
        input a, b, c: f64, d: f64?, n: i64
        let base = exp(0.0 - a) + log(b + 1.0) * exp(0.0 - c)
        output score: f64 = 1.0 / (1.0 + exp(base - (d ?? 0.0))) * n
        output limit: f64 = log(1.0 + base * base) * n",
    ),
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut random = fastrand::Rng::with_seed(11);
    let most = SIZES[SIZES.len() - 1];
    let mut row = || Row {
        a: random.f64() * 10.0,
        b: random.f64() * 10.0,
        c: random.f64(),
        d: random.bool().then(|| random.f64()).into(),
        n: random.i64(0..9),
    };
    let rows: Vec<Row> = (0..most).map(|_| row()).collect();
    let mut out = std::io::stdout().lock();
    for (name, text) in MODELS {
        let model = Model::parse(text)?;
        for size in SIZES {
            let rows = &rows[..size];
            let mut one = model.executor::<Row, Found>(&Options::default())?;
            let mut many = one.clone();
            let [mut by_row, mut together] = [vec![Found::default(); size], vec![Found::default(); size]];
            let task =
                |subject, run| Task { subject, metric: "ns_per_row", unit: "ns", per_second: 1e9, calls: size, run };
            let run_into = || {
                let mut all = rows.iter().zip(&mut by_row);
                all.try_for_each(|(row, found)| one.run_into(row, found)).map_err(Into::into)
            };
            let run_many = || many.run_many(rows, &mut together).map_err(Into::into);
            let mut tasks = [task("run_into", Box::new(run_into)), task("run_many", Box::new(run_many))];
            let effort = Effort { rounds: 31, warm_up: 2, fill: Duration::from_millis(1) };
            let samples = interleave(&mut tasks, effort)?;
            let [one, many] = [samples[0].median(), samples[1].median()];
            writeln!(out, "{name}, {size} rows: run_into {one:.2} ns per row, run_many {many:.2}")?;
        }
    }
    Ok(())
}
