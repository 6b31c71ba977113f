//! Dictionary columns, beside the same work without a dictionary: nanoseconds per row, minima of interleaved rounds.
//! `cargo run --release --manifest-path benches/Cargo.toml --example dictionaries [rows]`.

use cembra::columns::{ColumnMut, InputColumn, Keys};
use cembra::{Batch, Error, Model, Options, RunOptions};
use cembra_benches::measure::shortest;
use std::hint::black_box;
use std::io::Write;

/// Different values.
const VALUES: usize = 200;

/// Rounds of a comparison.
const ROUNDS: usize = 25;

fn batch(source: &str) -> Result<Batch, Error> {
    Model::parse(source)?.batch(&Options::default())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let rows: usize = std::env::args().nth(1).map_or(Ok(10_000_000), |rows| rows.parse())?;
    let mut random = fastrand::Rng::with_seed(7);
    let keys: Vec<i32> = (0..rows).map(|_| random.i32(0..VALUES as i32)).collect();
    let texts: Vec<String> =
        (0..VALUES).map(|at| if at == 17 { "CH".to_owned() } else { format!("Country number {at}") }).collect();
    let x: Vec<f64> = (0..rows).map(|row| row as f64 * 0.5).collect();
    let y: Vec<f64> = (0..rows).map(|row| 7.0 - row as f64).collect();
    let (mut one, mut other) = (vec![0.0; rows], vec![0.0; rows]);
    let values = InputColumn::owned_texts(&texts);
    // SAFETY: BARE-COLUMNS: the keys are those of values.
    let country = unsafe { InputColumn::known_dictionary(Keys::I32(&keys), &values) };
    let numbers = [InputColumn::values(&x), InputColumn::values(&y)];
    let mut out = std::io::stdout().lock();

    let compared = batch("input s: text; input x, y: f64; where(s == 'CH', x * 1.5 + y, x - y)")?;
    let numeric = batch("input s: i32; input x, y: f64; where(s == 17, x * 1.5 + y, x - y)")?;
    let [without, with] = shortest(
        ROUNDS,
        || {
            let inputs = [InputColumn::values(&keys), numbers[0], numbers[1]];
            numeric.run_into(&RunOptions::new(), &inputs, vec![Some(ColumnMut::values(&mut one))]).map(drop)
        },
        || {
            compared
                .run_into(
                    &RunOptions::new(),
                    &[country, numbers[0], numbers[1]],
                    vec![Some(ColumnMut::values(&mut other))],
                )
                .map(drop)
        },
    )
    .map(|taken| taken / rows as f64);
    writeln!(out, "where: {with:.3} ns, of an integer {without:.3} ns, ratio {:.2}", with / without)?;

    let lowered = batch("input s: text; strings.lower(s)")?;
    let [without, with] = shortest(
        ROUNDS,
        || {
            black_box(keys.to_vec());
            Ok(())
        },
        || lowered.run(&[country]).map(|made| drop(black_box(made))),
    )
    .map(|taken| taken / rows as f64);
    writeln!(out, "lower: {with:.3} ns, a copy of the keys {without:.3} ns, ratio {:.2}", with / without)?;

    let many: Vec<String> = (0..1_000_000).map(|at| format!("value number {at}")).collect();
    let (many, few) = (InputColumn::owned_texts(&many), InputColumn::owned_texts(&many[..100]));
    let far: Vec<i32> = (0..16).map(|row| row * 60_000).collect();
    let near: Vec<i32> = (0..16).map(|row| row * 6).collect();
    let calls = |keys, values| {
        let lowered = &lowered;
        move || (0..100).try_for_each(|_| lowered.run(&[InputColumn::dictionary(Keys::I32(keys), values)]).map(drop))
    };
    let [without, with] = shortest(ROUNDS, calls(&near, &few), calls(&far, &many)).map(|taken| taken / 100.0);
    writeln!(out, "16 rows: {with:.0} ns a call of 1000000 values, {without:.0} ns of 100")?;
    Ok(())
}
