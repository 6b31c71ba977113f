//! A model over a list column, beside the same elements as one array with split points, once made anew as the column's lists are
//! and once into the memory of the result before: nanoseconds per element, minima of interleaved rounds. `cargo run --release --manifest-path benches/Cargo.toml --example lists [rows]`.

use cembra::columns::{InputColumn, ListOffsets};
use cembra::values::ArrayKind;
use cembra::{Array, Edge, Model, Options, RunOptions, Scalar, Value};
use cembra_benches::measure::shortest;
use std::hint::black_box;
use std::io::Write;

/// Elements of a row.
const ELEMENTS: usize = 20;

/// Rounds of a comparison.
const ROUNDS: usize = 9;

/// What is computed: over the list of a row, and over the groups of an array.
const MODELS: [(&str, &str, &str); 3] = [
    ("sum", "input x: [f64]; math.sum(x)", "input x: [f64]; input by: splits; math.sum(x, into=by)"),
    (
        "score",
        "input x: [f64]; math.sum(x * x + 1.0)",
        "input x: [f64]; input by: splits; math.sum(x * x + 1.0, into=by)",
    ),
    ("softmax", "input x: [f64]; math.softmax(x)", "input x: [f64]; input by: splits; math.softmax(x, over=by)"),
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let rows: usize = std::env::args().nth(1).map_or(Ok(1_000_000), |rows| rows.parse())?;
    let mut random = fastrand::Rng::with_seed(7);
    let x: Vec<f64> = (0..rows * ELEMENTS).map(|_| random.f64() * 8.0 - 4.0).collect();
    let offsets: Vec<i64> = (0..=rows).map(|row| (row * ELEMENTS) as i64).collect();
    let array = Array::of_numbers(Scalar::Float64, x.len(), None, |all: &mut [f64]| all.copy_from_slice(&x));
    let array = Value::Array(ArrayKind::Dense, array.ok_or("no array")?.into());
    let by: Value = Edge::from_split_points(ArrayKind::Dense, offsets.clone())?.into();
    let elements = InputColumn::values(&x);
    let column = InputColumn::lists(ListOffsets::I64(&offsets), &elements);
    for (name, of_row, of_all) in MODELS {
        let batch = Model::parse(of_row)?.batch(&Options::default())?;
        let mut session = Model::parse(of_all)?.compile(&Options::default())?.session();
        let inputs = [array.clone(), by.clone()];
        let mut outputs = Vec::new();
        let mut lists = || batch.run_with(&RunOptions::new(), &[column]).map(|made| drop(black_box(made)));
        let [of_lists, of_groups] =
            shortest(ROUNDS, &mut lists, || session.evaluate(&inputs).map(|made| drop(black_box(made))));
        let [_, again] = shortest(ROUNDS, &mut lists, || session.evaluate_into(&inputs, &mut outputs));
        let count = (rows * ELEMENTS) as f64;
        writeln!(
            std::io::stdout(),
            "{name:8} lists {:6.3}  groups {:6.3}  ratio {:.2}  into memory {:6.3}  ratio {:.2}",
            of_lists / count,
            of_groups / count,
            of_lists / of_groups,
            again / count,
            of_lists / again
        )?;
    }
    Ok(())
}
