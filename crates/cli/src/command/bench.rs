//! `cembra bench`: how long a model takes to get ready and to evaluate a row, in both backends.
//!
//! All that is measured runs once per round, one after the other, so that a slow spell of the machine hits both backends
//! alike; what is told is the median of the rounds. Rows are loaded before the clock starts.

use super::{options_with_types, print, print_json};
use crate::arguments::DataOptions;
use crate::arguments::{ModelArgs, Report, WarningArgs};
use crate::data_files::{DataFiles, Opening};
use crate::failure::Failure;
use crate::inputs::Feed;
use crate::pipeline::OnError;
use crate::source::ModelText;
use crate::turns::share;
use cembra::{Backend, Error, Executor, Model, Options, QType, Scalar, ScalarValue, Value};
use cembra_engine::LoadedRows;
use cembra_runtime::MachineType;
use cembra_table::{Decoded, Room};
use comfy_table::{CellAlignment, Table, presets};
use serde::Serialize;
use std::hint::black_box;
use std::path::PathBuf;
use std::time::{Duration, Instant};

const NAME: &str = "bench";

/// A processor's branch predictor learns fewer rows than these by heart.
const MOST_ROWS: usize = 32_768;

/// All frames together take no more memory than this.
const MOST_BYTES: usize = 64 << 20;

/// Measured rounds, after one that is not.
const ROUNDS: usize = 15;

/// How long each measurement of a round takes at least.
const FILL: Duration = Duration::from_millis(10);

/// How far random numbers are from zero.
const LARGEST: f64 = 10.0;

/// The share of missing values among random optional inputs.
const MISSING_SHARE: f64 = 0.3;

/// Measures how long a model takes to compile and to evaluate a row, in both backends
///
/// The rows are those of DATA, or else random: numbers in -10 to 10, 30 % of optional values missing.
#[derive(clap::Args, Debug)]
#[command(
    override_usage = "cembra bench [OPTIONS] <MODEL> [DATA]...\n       cembra bench [OPTIONS] -e <EXPR> [DATA]...",
    after_help = "prepare: from text to the prepared graph. compile: from there to something callable. \
                  row: one evaluation, its inputs being in the frame."
)]
pub(crate) struct Args {
    #[command(flatten)]
    model: ModelArgs,

    /// The files with the rows, all of one form, read in this order; `-` is standard input, and `'b*.csv'` all files with matching names
    #[arg(value_name = "DATA")]
    data: Vec<PathBuf>,

    #[command(flatten)]
    data_options: DataOptions,

    /// What happens to a row of DATA that cannot be read, or whose evaluation fails: it ends the run, or is left out
    #[arg(long, value_enum, default_value_t)]
    on_error: OnError,

    /// Seeds the random rows
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// The form of the answer; as JSON, a list of records
    #[arg(long, value_enum, default_value_t)]
    format: Report,

    #[command(flatten)]
    warnings: WarningArgs,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let (text, paths) = args.model.load_with(&args.data, NAME)?;
    let files = DataFiles::of(&paths)?;
    let model = text.parse()?;
    let mut options = options_with_types(&text, &model, &args.model, NAME)?;
    let goes_on = args.on_error != OnError::Fail;
    let opening = Opening {
        options: args.data_options.clone(),
        most_bytes: text.limits().array_bytes,
        tolerant: goes_on,
        bar: None,
    };
    let names = files.names();
    let feed = match files.open(&opening)? {
        None => {
            args.data_options.check_origins(None, false, false, NAME)?;
            None
        }
        Some(dataset) => {
            let feed = Feed::of_data((&text, &model), &args.model, &[], &args.data_options, dataset, NAME)?;
            options = feed.with_types(options);
            Some(feed)
        }
    };
    let of_data = feed.is_some().then_some(names);
    let (rows, failing) = rows(&text, &model, &options, feed, goes_on, args.seed)?;
    args.warnings.tell(&text, &model, &options);
    let measured = measure(&text, &model, &options, &rows)?;
    match args.format {
        Report::Text => {
            let from = match of_data {
                Some(name) if failing > 0 => format!("{} of {name}; {failing} that fail left out", rows.len()),
                Some(name) => format!("{} of {name}", rows.len()),
                None => random_rows(rows.len(), failing, args.seed),
            };
            print(&to_text(&measured, &from))
        }
        Report::Json => print_json(&to_json(&measured, text.name())),
    }
}

/// What random rows are.
fn random_rows(rows: usize, failing: usize, seed: u64) -> String {
    let percent = 100.0 * MISSING_SHARE;
    let left_out = if failing > 0 { format!("; {failing} that fail left out") } else { String::new() };
    format!(
        "{rows} random from seed {seed} (numbers from -{LARGEST} to {LARGEST}, {percent:.0} % of optional values missing{left_out})"
    )
}

fn subject(options: &Options, backend: Backend, text: &ModelText, model: &Model) -> Result<Executor, Failure> {
    model.compile(&options.clone().backend(backend)).map_err(|error| text.blame(&error))
}

/// The rows to measure with: values for the inputs of the executor; and how many were left out because they fail.
fn rows(
    text: &ModelText,
    model: &Model,
    options: &Options,
    feed: Option<Feed>,
    goes_on: bool,
    seed: u64,
) -> Result<(Vec<Vec<Value>>, usize), Failure> {
    let executor = subject(options, Backend::Interpreter, text, model)?;
    // Whatever takes no rows ahead takes none at all.
    LoadedRows::of(&executor, &[]).map_err(|error| text.blame(&error))?;
    let most = (MOST_BYTES / executor.frame_bytes().max(1)).clamp(1, MOST_ROWS);
    let mut session = executor.session();
    let mut rows = Vec::new();
    if let Some(mut feed) = feed {
        let wanted = feed.positions(executor.inputs());
        let mut source = feed.take_rows();
        let mut failing = 0;
        let room = Room { bytes: share(text.limits().array_bytes, 1), takes_any_row: true };
        let mut rest = None;
        while rows.len() < most
            && let Some(piece) = rest.take().map_or_else(|| source.next(), |rest| Ok(Some(rest)))?
        {
            let (Decoded { batch, error, failures }, left) = piece.decode_within(room);
            rest = left;
            let left = most - rows.len();
            for (at, row) in feed.values(&batch, &wanted).into_iter().take(left).enumerate() {
                // A row that fails stops early and would flatter the model.
                let is_row = failures.binary_search_by_key(&at, |(row, _)| *row).is_err();
                match session.evaluate(&row) {
                    Ok(_) if is_row => rows.push(row),
                    Err(error) if !goes_on => {
                        return Err(feed.explain_row(text.blame(&error), &batch.slice(at, 1)));
                    }
                    _ => failing += 1,
                }
            }
            if rows.len() < most
                && let Some(error) = error
            {
                return Err(error.into());
            }
        }
        return Ok((rows, failing));
    }
    let mut random = fastrand::Rng::with_seed(seed);
    let mut fault = None;
    for _ in 0..most {
        let row: Vec<Value> = executor.inputs().iter().map(|input| random_value(&mut random, &input.qtype)).collect();
        // A row that faults stops early and would flatter the model.
        match session.evaluate(&row) {
            Ok(_) => rows.push(row),
            Err(error) => fault = Some(error),
        }
    }
    match fault {
        Some(error) if rows.is_empty() => Err(text.blame(&error).note("every random row fails: give DATA")),
        _ => {
            let failing = most - rows.len();
            Ok((rows, failing))
        }
    }
}

fn random_value(random: &mut fastrand::Rng, qtype: &QType) -> Value {
    // Tuple types nest only as deep as the parser allows.
    match qtype {
        QType::Scalar(scalar) => Value::Scalar(random_scalar(random, *scalar)),
        QType::Optional(scalar) if random.f64() < MISSING_SHARE => Value::Missing(*scalar),
        QType::Optional(scalar) => Value::Present(random_scalar(random, *scalar)),
        QType::Tuple(fields) => Value::Tuple(fields.map(|field| random_value(random, field))),
        QType::Shape(shape) => Value::Shape(*shape),
        _ => Value::Nothing,
    }
}

fn random_scalar(random: &mut fastrand::Rng, scalar: Scalar) -> ScalarValue {
    let number = random.f64() * (2.0 * LARGEST) - LARGEST;
    let bits = match scalar.machine_type() {
        Some(MachineType::Flag) => u64::from(random.bool()),
        Some(MachineType::I32) => u64::from((number as i32).cast_unsigned()),
        // An unsigned number is as small.
        Some(MachineType::I64) if !scalar.representation().is_integer() => number.abs() as u64,
        Some(MachineType::I64) => (number as i64).cast_unsigned(),
        Some(MachineType::F32) => u64::from((number as f32).to_bits()),
        Some(MachineType::F64) => number.to_bits(),
        None => 0,
    };
    match scalar {
        Scalar::Bytes => ScalarValue::Bytes(random.choice([&b""[..], b"a", b"\xff"]).unwrap_or_default().into()),
        Scalar::Text => ScalarValue::Text(random.choice(["", "a", "female", "Torgersen"]).unwrap_or_default().into()),
        _ => ScalarValue::from_bits(scalar, bits).unwrap_or(ScalarValue::Unit),
    }
}

/// The times of one measurement, one per round.
struct Times {
    subject: Backend,
    metric: &'static str,
    unit: &'static str,
    values: Vec<f64>,
}

impl Times {
    fn sorted(&self) -> Vec<f64> {
        let mut sorted = self.values.clone();
        sorted.sort_by(f64::total_cmp);
        sorted
    }

    fn median(&self) -> f64 {
        let sorted = self.sorted();
        sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
    }

    fn min(&self) -> f64 {
        self.sorted().first().copied().unwrap_or(f64::NAN)
    }
}

fn measure(text: &ModelText, model: &Model, options: &Options, rows: &[Vec<Value>]) -> Result<Vec<Times>, Failure> {
    let read = || text.read_again();
    let metrics = [("us_prepare", "us"), ("us_compile", "us"), ("ns_per_row", "ns")];
    let times = |subject| metrics.map(|(metric, unit)| Times { subject, metric, unit, values: Vec::new() });
    let mut all: Vec<Times> = [Backend::Interpreter, Backend::Native].into_iter().flat_map(times).collect();
    let interpreter = subject(options, Backend::Interpreter, text, model)?;
    let native = subject(options, Backend::Native, text, model)?;
    let blame = |error: Error| text.blame(&error);
    let mut loaded =
        [LoadedRows::of(&interpreter, rows).map_err(blame)?, LoadedRows::of(&native, rows).map_err(blame)?];
    for round in 0..=ROUNDS {
        for (index, backend) in [Backend::Interpreter, Backend::Native].into_iter().enumerate() {
            let options = options.clone().backend(backend);
            let prepare = seconds(|| black_box(read()?.signature(&options)).map(drop)).map_err(blame)?;
            let whole = seconds(|| black_box(read()?.compile(&options)).map(drop)).map_err(blame)?;
            let row = seconds(|| loaded[index].evaluate()).map_err(blame)? / rows.len().max(1) as f64;
            if round > 0 {
                let found = [1e6 * prepare, 1e6 * (whole - prepare), 1e9 * row];
                for (times, value) in all[3 * index..].iter_mut().zip(found) {
                    times.values.push(value);
                }
            }
        }
    }
    Ok(all)
}

/// The seconds one run takes, of as many as fill the time of a measurement.
pub(crate) fn seconds(mut run: impl FnMut() -> Result<(), Error>) -> Result<f64, Error> {
    let start = Instant::now();
    let mut runs = 0_u32;
    while runs == 0 || start.elapsed() < FILL {
        run()?;
        runs += 1;
    }
    Ok(start.elapsed().as_secs_f64() / f64::from(runs))
}

/// A time for people. What is less than can be told, as a difference of two times may be, is no zero.
fn shown(time: f64) -> String {
    if time < 0.05 { "< 0.1".to_owned() } else { format!("{time:.1}") }
}

fn to_text(measured: &[Times], rows: &str) -> String {
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED);
    table.set_header(["", "prepare, us", "compile, us", "row, ns"]);
    for times in measured.chunks(3) {
        let name = times[0].subject.name().to_owned();
        table.add_row(std::iter::once(name).chain(times.iter().map(|one| shown(one.median()))));
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    format!("{table}\nmedians of {ROUNDS} rounds\nrows: {rows}\n")
}

/// A record for programs. The keys are written in this order.
#[derive(Serialize)]
struct Record<'a> {
    workload: &'a str,
    subject: &'static str,
    metric: &'static str,
    unit: &'static str,
    min: f64,
    median: f64,
}

fn to_json<'a>(measured: &[Times], workload: &'a str) -> Vec<Record<'a>> {
    let record = |one: &Times| Record {
        workload,
        subject: one.subject.name(),
        metric: one.metric,
        unit: one.unit,
        min: one.min(),
        median: one.median(),
    };
    measured.iter().map(record).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_less_than_can_be_told_is_no_zero() {
        assert_eq!([-0.3, 0.0, 0.049, 0.05, 0.06, 12.34].map(shown), ["< 0.1", "< 0.1", "< 0.1", "0.1", "0.1", "12.3"]);
    }
}
