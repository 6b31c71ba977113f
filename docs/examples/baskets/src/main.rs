//! One model with arrays, used three ways: for a request of a service, whose slices are fields of a struct; for a table of Arrow
//! whose rows have lists of their own, all at once; and for arrays of Arrow, one evaluation.
//!
//! Run it with `cargo run -p example-baskets`. What it prints is asserted by its test.

use arrow_array::types::Float64Type;
use arrow_array::{ArrayRef, Float64Array, ListArray, RecordBatch};
use cembra::{Model, Optional, Options, RunOptions, Value};
use std::error::Error;
use std::io::Write;
use std::sync::Arc;

/// What is in a basket, by price and count; a count that is missing stands for one piece.
const MODEL: &str = "\
input prices: [f64]
input counts: [f64?]
input discount: f64
let paid = prices * (counts ?? 1.0)
output total = sum(paid) * (1.0 - discount)
output shares = paid / sum(paid)";

/// A request, as a service has it.
#[derive(cembra::Input)]
struct Basket<'r> {
    prices: &'r [f64],
    counts: Vec<Optional<f64>>,
    discount: f64,
}

/// What it is answered.
#[derive(cembra::Output)]
struct Bill {
    total: f64,
    shares: Vec<f64>,
}

fn request(out: &mut dyn Write) -> Result<(), Box<dyn Error>> {
    let mut bill = Model::parse(MODEL)?.executor::<Basket<'_>, Bill>(&Options::default())?;
    let counts = vec![Optional::present(2.0), Optional::missing()];
    let Bill { total, shares } = bill.run(&Basket { prices: &[1.5, 9.0], counts, discount: 0.5 })?;
    writeln!(out, "a request: {total}, in shares of {shares:?}")?;
    Ok(())
}

fn table(out: &mut dyn Write) -> Result<(), Box<dyn Error>> {
    let lists = |rows: Vec<Vec<Option<f64>>>| -> ArrayRef {
        Arc::new(ListArray::from_iter_primitive::<Float64Type, _, _>(rows.into_iter().map(Some)))
    };
    let prices = lists(vec![vec![Some(1.5), Some(9.0)], vec![], vec![Some(2.0)]]);
    let counts = lists(vec![vec![Some(2.0), None], vec![], vec![Some(4.0)]]);
    let discount: ArrayRef = Arc::new(Float64Array::from(vec![0.5, 0.0, 0.25]));
    let table = RecordBatch::try_from_iter([("prices", prices), ("counts", counts), ("discount", discount)])?;
    let batch = Model::parse(MODEL)?.batch(&Options::default())?;
    let made = cembra_arrow::run(&batch, &RunOptions::new(), &table)?;
    for name in ["total", "shares"] {
        writeln!(out, "a table: {name} {:?}", made.table.column_by_name(name).ok_or("no such output")?)?;
    }
    Ok(())
}

fn arrays(out: &mut dyn Write) -> Result<(), Box<dyn Error>> {
    let array = |values: Vec<Option<f64>>| -> Result<Value, cembra_arrow::Error> {
        Ok(cembra_arrow::to_model(Arc::new(Float64Array::from(values)))?.into())
    };
    let mut session = Model::parse(MODEL)?.compile(&Options::default())?.session();
    let inputs = [array(vec![Some(1.5), Some(9.0)])?, array(vec![Some(2.0), None])?, Value::from(0.5)];
    let made = session.evaluate(&inputs)?;
    writeln!(out, "arrays: {} and {}", made[0], made[1])?;
    Ok(())
}

fn run(out: &mut dyn Write) -> Result<(), Box<dyn Error>> {
    request(out)?;
    table(out)?;
    arrays(out)
}

fn main() -> Result<(), Box<dyn Error>> {
    run(&mut std::io::stdout().lock())
}

#[cfg(test)]
mod tests {
    #[test]
    fn all_three_ways_give_the_same() {
        let mut out = Vec::new();
        super::run(&mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains("a request: 6, in shares of [0.25, 0.75]\n"), "{text}");
        assert!(text.contains("arrays: f64{6} and [0.25, 0.75]\n"), "{text}");
        // The same basket is the first row of the table.
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        assert!(lines.windows(3).any(|lines| lines == ["6.0,", "0.0,", "6.0,"]), "{text}");
        assert!(lines.windows(2).any(|lines| lines == ["0.25,", "0.75,"]), "{text}");
    }
}
