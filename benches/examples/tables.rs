//! Lookups in tables that are part of the model: nanoseconds per call beside a hash table in Rust, and per row of columns, minima of
//! interleaved rounds; microseconds from text to something callable. `cargo run --release --manifest-path benches/Cargo.toml --example tables [rows]`.

use cembra::columns::{ColumnMut, InputColumn, Keys};
use cembra::{Backend, Model, Options, RunOptions};
use cembra_benches::measure::shortest;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::hint::black_box;
use std::io::Write;
use std::time::Instant;

/// Rounds of a comparison.
const ROUNDS: usize = 15;

/// Calls of a round: more than a branch predictor learns.
const CALLS: usize = 32_768;

type Failure = Box<dyn std::error::Error>;

#[derive(cembra::Input)]
struct ByText {
    x: &'static str,
}

#[derive(cembra::Input)]
struct ByNumber {
    x: i64,
}

#[derive(cembra::Output)]
struct Rate {
    y: f64,
}

/// The text of an entry, and its value.
fn text(at: usize) -> String {
    format!("{}{}", ["CH", "sku-", "a longer name "][at % 3], at * 7919)
}

fn value(at: usize) -> f64 {
    1.0 + at as f64 / 64.0
}

/// A number that is not near the others.
fn number(at: usize) -> i64 {
    (at as i64 * at as i64) * 7919 - 3
}

fn model(qtype: &str, entries: usize, key: impl Fn(usize) -> String) -> String {
    let mut source = format!("input x: {qtype}\noutput y = lookup(x, {{");
    for at in 0..entries {
        let _never_fails = write!(source, "{}: {:?}f64, ", key(at), value(at));
    }
    source + "}, 0f64)"
}

/// Microseconds from a text to something callable, at best.
fn compiled(source: &str) -> Result<f64, Failure> {
    let mut least = f64::MAX;
    for _ in 0..5 {
        let start = Instant::now();
        black_box(Model::parse(source)?.compile(&Options::default())?);
        least = least.min(start.elapsed().as_secs_f64() * 1e6);
    }
    Ok(least)
}

/// Prints what calls take on rows by each backend, and beside them what a function in Rust takes.
fn calls<I: cembra::Input<At<'static> = I> + 'static>(
    name: &str,
    source: &str,
    rows: &[I],
    limit: impl Fn(&I) -> f64,
) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    write!(out, "{name:14}")?;
    for backend in [Backend::Native, Backend::Interpreter] {
        let mut executor = Model::parse(source)?.executor::<I, Rate>(&Options::default().backend(backend))?;
        for row in rows.iter().take(2_000) {
            assert_eq!(executor.run(row)?.y.to_bits(), limit(row).to_bits(), "{name}");
        }
        let mut result = Rate { y: 0.0 };
        let mut total = 0.0;
        let [cembra, rust] = shortest(
            ROUNDS,
            || rows.iter().try_for_each(|row| executor.run_into(row, black_box(&mut result))),
            || {
                total += rows.iter().map(|row| black_box(limit(row))).sum::<f64>();
                Ok(())
            },
        );
        let each = |taken: f64| taken / rows.len() as f64;
        write!(out, "  {backend:?} {:6.1} ns (in Rust {:5.1})", each(cembra), each(rust))?;
    }
    writeln!(out, "  text to callable {:8.0} us", compiled(source)?)?;
    Ok(())
}

fn main() -> Result<(), Failure> {
    let mut random = fastrand::Rng::with_seed(7);
    for entries in [10, 200, 50_000] {
        // One of eight is not there.
        let mut place = || random.usize(..entries + entries / 7 + 1);
        let texts: Vec<&'static str> = (0..CALLS).map(|_| &*text(place()).leak()).collect();
        let numbers: Vec<i64> = (0..CALLS).map(|_| number(place())).collect();
        let by_text: HashMap<String, f64, foldhash::fast::RandomState> =
            (0..entries).map(|at| (text(at), value(at))).collect();
        let by_number: HashMap<i64, f64, foldhash::fast::RandomState> =
            (0..entries).map(|at| (number(at), value(at))).collect();
        let source = model("text", entries, |at| format!("{:?}", text(at)));
        let rows: Vec<ByText> = texts.iter().map(|x| ByText { x }).collect();
        calls(&format!("text {entries}"), &source, &rows, |row| by_text.get(row.x).copied().unwrap_or(0.0))?;
        let source = model("i64", entries, |at| format!("{}i64", number(at)));
        let rows: Vec<ByNumber> = numbers.iter().map(|x| ByNumber { x: *x }).collect();
        calls(&format!("i64 {entries}"), &source, &rows, |row| by_number.get(&row.x).copied().unwrap_or(0.0))?;
        let source = model("i64", entries, |at| format!("{at}i64"));
        let rows: Vec<ByNumber> = rows.iter().map(|row| ByNumber { x: row.x.rem_euclid(entries as i64 + 2) }).collect();
        let near: Vec<f64> = (0..entries).map(value).collect();
        calls(&format!("i64 near {entries}"), &source, &rows, |row| near.get(row.x as usize).copied().unwrap_or(0.0))?;
        if entries == 200 {
            let mut chain = "input x: text\noutput y = ".to_owned();
            (0..entries).try_for_each(|at| write!(chain, "if x == {:?} then {:?} else ", text(at), value(at)))?;
            let rows: Vec<ByText> = texts.iter().map(|x| ByText { x }).collect();
            let find = |row: &ByText| by_text.get(row.x).copied().unwrap_or(0.0);
            calls("else if 200", &(chain + "0.0"), &rows, find)?;
        }
    }
    columns(&mut random)
}

/// Prints what a lookup in 200 texts takes over columns, beside the work on numbers alone.
fn columns(random: &mut fastrand::Rng) -> Result<(), Failure> {
    let rows: usize = std::env::args().nth(1).map_or(Ok(10_000_000), |rows| rows.parse())?;
    let keys: Vec<i32> = (0..rows).map(|_| random.i32(0..200)).collect();
    let x: Vec<f64> = (0..rows).map(|row| row as f64 * 0.5).collect();
    let factors: Vec<f64> = keys.iter().map(|key| value(*key as usize)).collect();
    let texts: Vec<String> = (0..200).map(text).collect();
    let values = InputColumn::owned_texts(&texts);
    // SAFETY: BARE-COLUMNS: the keys are those of values.
    let dictionary = unsafe { InputColumn::known_dictionary(Keys::I32(&keys), &values) };
    let every: Vec<&str> = keys.iter().map(|key| texts[*key as usize].as_str()).collect();
    let plain = InputColumn::texts(&every);
    let table =
        model("text", 200, |at| format!("{:?}", text(at))).replace("output y = ", "input f: f64\noutput y = f * ");
    let looked_up = Model::parse(&table)?.batch(&Options::default())?;
    let alone = Model::parse("input x: f64; input f: f64; output y = f * x")?.batch(&Options::default())?;
    let (mut one, mut other) = (vec![0.0; rows], vec![0.0; rows]);
    let numbers = InputColumn::values(&x);
    for (name, column) in [("dictionary", dictionary), ("plain text", plain)] {
        let [with, without] = shortest(
            ROUNDS,
            || {
                looked_up
                    .run_into(&RunOptions::new(), &[column, numbers], vec![Some(ColumnMut::values(&mut one))])
                    .map(drop)
            },
            || {
                alone
                    .run_into(
                        &RunOptions::new(),
                        &[InputColumn::values(&factors), numbers],
                        vec![Some(ColumnMut::values(&mut other))],
                    )
                    .map(drop)
            },
        )
        .map(|taken| taken / rows as f64);
        writeln!(
            std::io::stdout(),
            "{name:14}  {with:.3} ns a row, numbers alone {without:.3}, ratio {:.2}",
            with / without
        )?;
        assert!(one == other, "{name}");
    }
    Ok(())
}
