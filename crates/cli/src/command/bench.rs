//! `cembra bench`: measures how long a model takes to prepare, to compile and to evaluate a row, in both backends.
//!
//! In each round all measurements run one after the other, so that a slow phase of the machine affects both backends alike. The median of the rounds
//! is reported. Rows are loaded into frames (the memory of one evaluation each) before the clock starts. A model with arrays does not use frames: a
//! session evaluates the model from values.

use super::{options_with_types, print, print_json};
use crate::arguments::{Assignment, DataOptions, ModelArgs, Report, WarningArgs};
use crate::data_files::{DataFiles, Opening};
use crate::failure::Failure;
use crate::inputs::{InputSources, constant_values};
use crate::pipeline::OnError;
use crate::source::ModelText;
use crate::turns::share;
use cembra::errors::{Code, Diagnostic};
use cembra::{Backend, Error, Executor, Model, Options, Session, Value};
use cembra_engine::LoadedRows;
use cembra_page::{LARGEST, MISSING_SHARE, MOST_ELEMENTS, RandomRows};
use cembra_table::{DecodeLimit, Decoded};
use comfy_table::{CellAlignment, Table, presets};
use serde::Serialize;
use std::collections::BTreeMap;
use std::hint::black_box;
use std::num::NonZero;
use std::path::PathBuf;
use std::time::{Duration, Instant};

const NAME: &str = "bench";

/// The most rows that are measured. With far fewer rows, a processor's branch predictor could memorise the branches of all rows.
const MOST_ROWS: usize = 32_768;

/// The most rows that are measured for a model with arrays. Their lists have more elements than a branch predictor can memorise.
const MOST_ROWS_OF_ARRAYS: usize = 1_024;

/// The most bytes of all frames together.
const MOST_BYTES: usize = 64 << 20;

/// The number of measured rounds, after one that is not measured.
const ROUNDS: usize = 15;

/// The least time of each measurement in a round.
const FILL: Duration = Duration::from_millis(10);

/// Measures how long a model takes to compile and to evaluate a row, in both backends
///
/// The rows are read from DATA. Without DATA they are random: numbers in -10 to 10, 30 % of optional values missing,
/// lists and dictionaries of up to 20 elements. Models with arrays are measured by calls of a session, one for each
/// row.
#[derive(clap::Args, Debug)]
#[command(
    override_usage = "cembra bench [OPTIONS] <MODEL> [DATA]...\n       cembra bench [OPTIONS] -e <EXPR> [DATA]...",
    after_help = "prepare: from the text to the prepared model. compile: from there to code that can run. row: one evaluation, without reading its inputs; with arrays, one call of a session."
)]
pub(crate) struct Args {
    #[command(flatten)]
    model: ModelArgs,

    /// The files with the rows, all of one format, read in this order; `-` is standard input, `'b*.csv'` all files with matching names
    #[arg(value_name = "DATA")]
    data: Vec<PathBuf>,

    /// A value for an input, the same for all rows: `-s x=1.5`, `-s 'items=[1, 2]'`
    #[arg(short = 's', long = "set", value_name = "NAME=VALUE", value_parser = Assignment::parse)]
    set: Vec<Assignment>,

    #[command(flatten)]
    data_options: DataOptions,

    /// Measure with at most N rows
    #[arg(long, value_name = "N")]
    limit: Option<NonZero<usize>>,

    /// The treatment of a row of DATA that cannot be read, or whose evaluation fails: end the run, or leave the row out
    #[arg(long, value_enum, default_value_t)]
    on_error: OnError,

    /// The seed for the random rows
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// The format of the answer; as JSON, a list of records
    #[arg(long, value_enum, default_value_t)]
    format: Report,

    #[command(flatten)]
    warnings: WarningArgs,
}

/// Runs `cembra bench`.
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
    let origin = match files.open(&opening)? {
        None => {
            args.data_options.check_origins(None, !args.set.is_empty(), false, NAME)?;
            let types: BTreeMap<_, _> = args.model.types().collect();
            let given = constant_values(&model, &types, &args.set, &args.data_options.spelling(), NAME)?;
            options = given.iter().fold(options, |options, (name, value)| options.input_type(name, value.qtype()));
            RowOrigin::Random { seed: args.seed, given }
        }
        Some(dataset) => {
            let feed =
                InputSources::of_data((&text, &model), &args.model, &args.set, &args.data_options, dataset, NAME)?;
            options = feed.with_types(options);
            RowOrigin::Data(feed)
        }
    };
    let of_data = matches!(origin, RowOrigin::Data(_)).then_some(names);
    let most = args.limit.map_or(usize::MAX, NonZero::get);
    let (rows, failing) = rows(&text, &model, &options, origin, goes_on, most)?;
    args.warnings.tell(&text, &model, &options);
    let measured = measure(&text, &model, &options, &rows)?;
    match args.format {
        Report::Text => {
            let from = match of_data {
                Some(name) if failing > 0 => format!("{} of {name}, without {failing} that fail", rows.len()),
                Some(name) => format!("{} of {name}", rows.len()),
                None => random_rows(rows.len(), failing, args.seed),
            };
            print(&to_text(&measured, &from))
        }
        Report::Json => print_json(&to_json(&measured, text.name())),
    }
}

/// The description of random rows in the report.
fn random_rows(rows: usize, failing: usize, seed: u64) -> String {
    let percent = 100.0 * MISSING_SHARE;
    let left_out = if failing > 0 { format!(", without {failing} that fail") } else { String::new() };
    format!(
        "{rows} random from seed {seed} (numbers from -{LARGEST} to {LARGEST}, {percent:.0} % of optional values missing, up to \
         {MOST_ELEMENTS} elements in lists{left_out})"
    )
}

fn subject(options: &Options, backend: Backend, text: &ModelText, model: &Model) -> Result<Executor, Failure> {
    model.compile(&options.clone().backend(backend)).map_err(|error| text.blame(&error))
}

/// The source of the rows.
enum RowOrigin<'a> {
    Data(InputSources),
    /// The rows have random values for the inputs without a value in `given`; the values in `given` are the same in all rows.
    Random {
        seed: u64,
        given: BTreeMap<&'a str, Value>,
    },
}

/// Returns true if a model can be evaluated only by sessions, because arrays are not in frames.
///
/// # Errors
/// If the model has tensors, so that it takes no rows at all.
fn has_arrays(executor: &Executor) -> Result<bool, Error> {
    match LoadedRows::of(executor, &[]) {
        Ok(_) => Ok(false),
        Err(error) if error.code() == Code::Arrays.as_str() => Ok(true),
        Err(error) => Err(error),
    }
}

/// The rows to measure with, at most `most`, as values of the executor's inputs; and the number of rows left out because they fail.
fn rows(
    text: &ModelText,
    model: &Model,
    options: &Options,
    origin: RowOrigin<'_>,
    goes_on: bool,
    most: usize,
) -> Result<(Vec<Vec<Value>>, usize), Failure> {
    let executor = subject(options, Backend::Interpreter, text, model)?;
    let known =
        if has_arrays(&executor).map_err(|error| text.blame(&error))? { MOST_ROWS_OF_ARRAYS } else { MOST_ROWS };
    let most = (MOST_BYTES / executor.frame_bytes().max(1)).clamp(1, known).min(most);
    let mut session = executor.session();
    let mut rows = Vec::new();
    let (seed, given) = match origin {
        RowOrigin::Random { seed, given } => (seed, given),
        RowOrigin::Data(feed) => return rows_of_data(text, feed, (&executor, &mut session), goes_on, most),
    };
    let mut random = RandomRows::new(seed);
    let mut fault = None;
    for _ in 0..most {
        random.begin();
        let mut row = Vec::with_capacity(executor.inputs().len());
        for input in executor.inputs() {
            let value = given.get(&*input.name).cloned().unwrap_or_else(|| random.value(input));
            if value == Value::Nothing {
                let message = format!(
                    "input `{}` has no value, and random values of type {} cannot be made",
                    input.name,
                    input.spelled_type()
                );
                let hint = format!("give a value with `-s {}=..`, or give DATA", input.name);
                let problem = Diagnostic::new(Code::Binding, message).hint(hint);
                return Err(text.blame(&problem.into()));
            }
            row.push(value);
        }
        // A row that fails stops early and would make the model look faster.
        match session.evaluate(&row) {
            Ok(_) => rows.push(row),
            Err(error) => fault = Some(error),
        }
    }
    match fault {
        Some(error) if rows.is_empty() => Err(text.blame(&error).note("every random row fails: use DATA instead")),
        _ => {
            let failing = most - rows.len();
            Ok((rows, failing))
        }
    }
}

/// The rows of the data, at most `most`; and the number of rows left out because they fail.
fn rows_of_data(
    text: &ModelText,
    mut feed: InputSources,
    (executor, session): (&Executor, &mut Session),
    goes_on: bool,
    most: usize,
) -> Result<(Vec<Vec<Value>>, usize), Failure> {
    let mut rows = Vec::new();
    let wanted = feed.positions(executor.inputs());
    let mut source = feed.take_rows();
    let mut failing = 0;
    let limit = DecodeLimit { bytes: share(text.limits().array_bytes, 1), takes_first_row: true };
    let mut rest = None;
    while rows.len() < most
        && let Some(piece) = rest.take().map_or_else(|| source.next(), |rest| Ok(Some(rest)))?
    {
        let (Decoded { batch, error, failures }, left) = piece.decode_within(limit);
        rest = left;
        let left = most - rows.len();
        for (at, row) in feed.values(&batch, &wanted).into_iter().take(left).enumerate() {
            // A row that fails stops early and would make the model look faster.
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
    Ok((rows, failing))
}

/// Rows in the form in which the benchmark evaluates them repeatedly.
enum ReadyRows<'v> {
    /// The rows are loaded in frames.
    Loaded(Box<LoadedRows<'v>>),
    /// The rows are values for a session, which also has the results of the previous row.
    Given { session: Box<Session>, rows: &'v [Vec<Value>], results: Vec<Value> },
}

impl<'v> ReadyRows<'v> {
    fn of(executor: &Executor, rows: &'v [Vec<Value>]) -> Result<Self, Error> {
        Ok(match has_arrays(executor)? {
            true => ReadyRows::Given { session: Box::new(executor.session()), rows, results: Vec::new() },
            false => ReadyRows::Loaded(Box::new(LoadedRows::of(executor, rows)?)),
        })
    }

    /// Evaluates all rows.
    fn evaluate(&mut self) -> Result<(), Error> {
        match self {
            ReadyRows::Loaded(rows) => rows.evaluate(),
            ReadyRows::Given { session, rows, results } => {
                for row in *rows {
                    session.evaluate_into(row, results)?;
                    black_box(&*results);
                }
                Ok(())
            }
        }
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

/// Measures preparing, compiling and evaluating in both backends. Returns three measurements per backend.
fn measure(text: &ModelText, model: &Model, options: &Options, rows: &[Vec<Value>]) -> Result<Vec<Times>, Failure> {
    let read = || text.read_again();
    let metrics = [("us_prepare", "us"), ("us_compile", "us"), ("ns_per_row", "ns")];
    let times = |subject| metrics.map(|(metric, unit)| Times { subject, metric, unit, values: Vec::new() });
    let mut all: Vec<Times> = [Backend::Interpreter, Backend::Native].into_iter().flat_map(times).collect();
    let interpreter = subject(options, Backend::Interpreter, text, model)?;
    let native = subject(options, Backend::Native, text, model)?;
    let blame = |error: Error| text.blame(&error);
    let mut loaded = [ReadyRows::of(&interpreter, rows).map_err(blame)?, ReadyRows::of(&native, rows).map_err(blame)?];
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

/// Returns the mean time of one call of `run`, in seconds. The function calls `run` repeatedly until the time for a measurement is over.
pub(crate) fn seconds(mut run: impl FnMut() -> Result<(), Error>) -> Result<f64, Error> {
    let start = Instant::now();
    let mut runs = 0_u32;
    while runs == 0 || start.elapsed() < FILL {
        run()?;
        runs += 1;
    }
    Ok(start.elapsed().as_secs_f64() / f64::from(runs))
}

/// Formats a time. A time too small to be shown is not zero, even if it is the difference of two times.
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

/// A record of the JSON report. The keys are written in this order.
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
