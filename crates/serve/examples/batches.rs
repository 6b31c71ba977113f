//! Compares the time of a request with an Arrow batch of 10,000 rows with the engine's own time for that batch. The server and its client run in this
//! process and talk over the loopback interface.
//!
//! ```sh
//! cargo run --release --example batches
//! ```
//!
//! Each line has a model, the median microseconds of the engine, of the server's evaluation, and of the whole request, and the ratios to the engine.

#![expect(clippy::print_stdout, reason = "the table is the program's output")]

use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use cembra::{ModelSet, Options, RunOptions};
use cembra_serve::{Arguments, Server, Settings};
use clap::Parser;
use std::error::Error;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The rows of a batch.
const ROWS: usize = 10_000;

/// The runs of which a median is taken.
const RUNS: usize = 201;

/// The countries of payments and cards.
const COUNTRIES: [&str; 5] = ["CH", "FR", "KP", "DE", "US"];

/// The models besides `fraud` of `docs/examples/service/models`, which compares texts: 3 operators, and a price of options with 4 functions a row.
const MODELS: [(&str, &str); 2] = [
    ("line", "input amount: f64\ninput account_days: i64?\noutput y = amount * 2.0 + (account_days ?? 0)"),
    (
        "option",
        "input amount: f64\ninput failures: i64?\nlet d = (log(amount / 100.0) + 0.05) / 0.2\nlet n = 1.0 / (1.0 + exp(-1.6 * d))\n\
         output price = amount * n - 100.0 * exp(-0.03) * tanh(d) + expm1(amount / 1000.0) * (failures ?? 0)",
    ),
];

/// A request's table: payments, of which some fields are missing.
fn payments() -> Result<RecordBatch, Box<dyn Error>> {
    let rows = || 0..ROWS;
    let text = |names: &'static [&'static str]| rows().map(move |row| names[row * 7 % names.len()]);
    let some = |row: usize, value: i64| (row % 10 != 3).then_some(value);
    let columns: [(&str, ArrayRef); 6] = [
        ("amount", Arc::new(Float64Array::from_iter_values(rows().map(|row| 10.0 + (row * 37 % 1000) as f64)))),
        ("currency", Arc::new(StringArray::from_iter_values(text(&["EUR", "CHF", "USD", "GBP", "JPY"])))),
        ("country", Arc::new(StringArray::from_iter_values(text(&COUNTRIES)))),
        ("card_country", Arc::new(StringArray::from_iter_values(rows().map(|row| COUNTRIES[row % 5])))),
        ("account_days", Arc::new(Int64Array::from_iter(rows().map(|row| some(row, (row % 500) as i64))))),
        ("failures", Arc::new(Int64Array::from_iter(rows().map(|row| some(row, (row % 7) as i64))))),
    ];
    Ok(RecordBatch::try_from_iter(columns)?)
}

/// The median microseconds of `run`.
fn median(mut run: impl FnMut() -> Result<(), Box<dyn Error>>) -> Result<f64, Box<dyn Error>> {
    let mut times = Vec::with_capacity(RUNS);
    for _ in 0..RUNS {
        let start = Instant::now();
        run()?;
        times.push(start.elapsed().as_secs_f64() * 1e6);
    }
    times.sort_by(f64::total_cmp);
    Ok(times[RUNS / 2])
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let service = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples/service/models");
    for file in ["common.cem", "euros.csv", "fraud.cem"] {
        std::fs::copy(format!("{service}/{file}"), folder.path().join(file))?;
    }
    for (name, text) in MODELS {
        std::fs::write(folder.path().join(format!("{name}.cem")), text)?;
    }
    let path = folder.path().to_str().ok_or("the temporary folder has no name in UTF-8")?;
    let server = Server::start(Settings::of(Arguments::parse_from(["batches", path, "--listen", "127.0.0.1:0"]))?)?;

    let agent = ureq::Agent::new_with_defaults();
    let ready = format!("http://{}/readyz", server.address());
    while agent.get(&ready).call().is_err() {
        std::thread::sleep(Duration::from_millis(10));
    }

    let models = ModelSet::load(folder.path())?;
    println!("{:8} {:>9} {:>9} {:>9}   ratios to the engine", "model", "engine", "evaluated", "request");
    for name in ["line", "option", "fraud"] {
        let batch = models.get(name).ok_or("the model is missing")?.batch(&Options::default())?;
        let all = payments()?;
        let names: Vec<usize> =
            batch.inputs().iter().map(|input| all.schema().index_of(&input.name)).collect::<Result<_, _>>()?;
        let rows = all.project(&names)?;

        let options = RunOptions::new();
        let engine = median(|| {
            black_box(cembra_arrow::run(&batch, &options, &rows)?);
            Ok(())
        })?;

        let mut body = StreamWriter::try_new(Vec::new(), &rows.schema())?;
        body.write(&rows)?;
        let body = body.into_inner()?;
        let address = format!("http://{}/v1/models/{name}", server.address());
        let kind = "application/vnd.apache.arrow.stream";
        let ask = || -> Result<Vec<u8>, Box<dyn Error>> {
            let asked = agent.post(&address).header("Content-Type", kind).header("Accept", kind).send(&body[..])?;
            Ok(asked.into_body().read_to_vec()?)
        };
        let answered = StreamReader::try_new(&ask()?[..], None)?.collect::<Result<Vec<_>, _>>()?;
        let count: usize = answered.iter().map(RecordBatch::num_rows).sum();
        if count != ROWS {
            return Err(format!("{name} answers {count} rows").into());
        }
        // The time of the model's part, from the metrics before and after.
        let spent = || -> Result<f64, Box<dyn Error>> {
            let metrics =
                agent.get(format!("http://{}/metrics", server.address())).call()?.into_body().read_to_string()?;
            let line = format!("cembra_model_seconds_sum{{model=\"{name}\"}} ");
            let sum = metrics.lines().find_map(|text| text.strip_prefix(&line)).ok_or("no metrics of the model")?;
            Ok(sum.parse::<f64>()? * 1e6)
        };
        let before = spent()?;
        let request = median(|| {
            black_box(ask()?);
            Ok(())
        })?;
        let evaluated = (spent()? - before) / RUNS as f64;
        println!(
            "{name:8} {engine:9.1} {evaluated:9.1} {request:9.1}   {:.2} {:.2}",
            evaluated / engine,
            request / engine
        );
    }
    server.shut_down();
    server.wait();
    Ok(())
}
