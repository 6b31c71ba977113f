//! `cembra eval`: runs a model over rows of data, or over one row from the command line.

use super::options_with_types;
use crate::arguments::{Assignment, BackendChoice, ModelArgs};
use crate::data::output::Output;
use crate::data::write::RowWriter;
use crate::data::{Dataset, Format, Input, ReadOptions};
use crate::failure::{Failure, usage};
use crate::inputs::{Feed, Sources, check_among};
use crate::progress::Progress;
use cembra::{Backend, Executor, QType};
use clap::ValueEnum;
use std::collections::HashSet;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

const NAME: &str = "eval";

/// Evaluates a model on every row of the data
///
/// DATA is CSV (or TSV) with a header, an array of JSON objects, or one JSON object on each line; its columns are
/// matched to the inputs of the model by name. Without DATA the model is evaluated once, on the values of `-s`.
///
/// Standard output carries the results and nothing else: the model's outputs in the order they are written.
#[derive(clap::Args, Debug)]
#[command(
    override_usage = "cembra eval [OPTIONS] <MODEL> [DATA]\n       cembra eval [OPTIONS] -e <EXPR> [DATA]",
    after_help = "Exit status: 0 done, 1 a problem with the model or the data, 2 a wrong command line."
)]
pub(crate) struct Args {
    #[command(flatten)]
    model: ModelArgs,

    /// The file with the rows; `-` is standard input
    #[arg(value_name = "DATA")]
    data: Option<PathBuf>,

    /// A value for an input, the same for all rows: `-s x=1.5`, `-s 'name="Ann"'`
    #[arg(short = 's', long = "set", value_name = "NAME=VALUE", value_parser = Assignment::parse)]
    set: Vec<Assignment>,

    /// What runs the model; all give the same bits
    #[arg(long, value_enum, default_value_t)]
    backend: BackendChoice,

    /// The form of the results; by default that of the output file's name, else a table on a terminal, else CSV
    #[arg(long, value_enum)]
    format: Option<OutputFormat>,

    /// The form of DATA; by default that of its name, else by the looks of it
    #[arg(long, value_enum, value_name = "FORMAT")]
    data_format: Option<DataFormat>,

    /// What stands for missing in CSV, instead of an empty field, both in DATA and in the results
    #[arg(long, value_name = "STRING")]
    null: Option<String>,

    /// Compute and print only these outputs, in this order
    #[arg(long, value_name = "NAME,..", value_delimiter = ',')]
    only: Vec<String>,

    /// Print the inputs too, before the outputs (one that an output has the name of is left out)
    #[arg(long)]
    keep_inputs: bool,

    /// Write the results to a file, which appears only when it is whole
    #[arg(short = 'o', long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Stop after so many rows
    #[arg(long, value_name = "N")]
    limit: Option<u64>,

    /// Allow the rewrites that may change the sign of a zero, a NaN or a rounding
    #[arg(long)]
    compat: bool,

    /// Say on standard error what ran, and for how long
    #[arg(short, long)]
    verbose: bool,
}

#[derive(Clone, Copy, ValueEnum, Debug)]
enum OutputFormat {
    /// A table for people
    Table,
    /// Comma-separated values under a header
    Csv,
    /// An array of objects
    Json,
    /// One object on each line
    Jsonl,
}

#[derive(Clone, Copy, ValueEnum, Debug)]
pub(crate) enum DataFormat {
    /// Comma-separated values under a header
    Csv,
    /// The same, separated by tabs
    Tsv,
    /// An array of objects
    Json,
    /// One object on each line
    Jsonl,
}

impl From<DataFormat> for Format {
    fn from(format: DataFormat) -> Format {
        match format {
            DataFormat::Csv => Format::Csv,
            DataFormat::Tsv => Format::Tsv,
            DataFormat::Json => Format::Json,
            DataFormat::Jsonl => Format::JsonLines,
        }
    }
}

impl Args {
    /// The form of the results.
    fn format(&self) -> Format {
        match self.format {
            Some(OutputFormat::Table) => Format::Table,
            Some(OutputFormat::Csv) => Format::Csv,
            Some(OutputFormat::Json) => Format::Json,
            Some(OutputFormat::Jsonl) => Format::JsonLines,
            None => match &self.output {
                Some(path) => Format::of_path(path).unwrap_or(Format::Csv),
                None if io::stdout().is_terminal() => Format::Table,
                None => Format::Csv,
            },
        }
    }
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let start = Instant::now();
    let (text, data) = args.model.load_with(args.data.clone(), NAME)?;
    let model = text.parse()?;
    let options = options_with_types(&text, &model, &args.model, NAME)?;
    for (index, name) in args.only.iter().enumerate() {
        if args.only[..index].contains(name) {
            return Err(usage(NAME, format!("`--only` names `{name}` twice")));
        }
        let known = model.program().outputs.iter().map(|output| &*output.name);
        check_among(name, "output", known, "--only", NAME)?;
    }
    let results_on_terminal = args.output.is_none() && io::stdout().is_terminal();
    let input = data.as_deref().map(open).transpose()?;
    let mut progress = Progress::new(input.as_ref().and_then(Input::size), results_on_terminal);
    let dataset = match (input, &data) {
        (Some(input), Some(path)) => {
            let bar = progress.bar().clone();
            let input = input.through(|reader| bar.wrap_read(reader));
            Some(open_dataset(input, path, args.data_format, args.null.as_deref())?)
        }
        _ => None,
    };

    let sources =
        Sources { types: args.model.types().collect(), constants: &args.set, data: dataset, outputs: &args.only };
    let mut feed = Feed::new(&text, &model, sources, NAME)?;
    let mut options = feed.with_types(options.backend(args.backend.into()).compat(args.compat));
    if !args.only.is_empty() {
        options = options.outputs(args.only.iter().map(String::as_str));
    }
    let executor = model.compile(&options).map_err(|error| feed.explain_types(text.blame(&error)))?;
    note_fallback(&executor, args.verbose);

    // The inputs of the executor among the values of the feed: what was folded away is not asked for.
    let wanted = feed.positions(executor.inputs());
    let (columns, kept) = columns(&feed, &executor, args.keep_inputs);
    let output = match &args.output {
        Some(path) => Output::create(path)?,
        None => Output::stdout(),
    };
    let mut writer = RowWriter::new(args.format(), output, &columns, args.null.as_deref().unwrap_or_default())?;
    let mut session = executor.session();
    let (mut row, mut results) = (Vec::new(), Vec::new());
    while args.limit.is_none_or(|limit| feed.count() < limit) && feed.next()? {
        row.clear();
        row.extend(wanted.iter().map(|at| feed.values()[*at].clone()));
        let found = session.evaluate(&row).map_err(|error| feed.explain_row(text.blame(&error)))?;
        results.clear();
        results.extend(kept.iter().map(|at| feed.values()[*at].clone()));
        results.extend(found);
        writer.write(&results)?;
        progress.tell(feed.count(), "rows");
    }
    progress.finish();
    writer.finish()?.commit()?;
    if args.verbose {
        let (rows, seconds) = (feed.count(), start.elapsed().as_secs_f64());
        let _ = writeln!(io::stderr(), "note: {rows} rows in {seconds:.3} s by {}", ran(&executor));
    }
    Ok(())
}

/// Opens the file of rows.
pub(crate) fn open(path: &Path) -> Result<Input, Failure> {
    if path.as_os_str() == "-" { Ok(Input::stdin()) } else { Ok(Input::file(path)?) }
}

/// Opens the rows in the form asked for, or that of the file's name, or that it looks like.
pub(crate) fn open_dataset(
    input: Input,
    path: &Path,
    format: Option<DataFormat>,
    null: Option<&str>,
) -> Result<Dataset, Failure> {
    let known = format.map(Format::from).or_else(|| Format::of_path(path));
    let (input, format) = match known {
        Some(format) => (input, format),
        None => input.guess()?,
    };
    Ok(Dataset::open(input, &ReadOptions { format, null: null.map(str::to_owned) })?)
}

/// Names and types of the columns of the results, and which values of the feed stand before the outputs.
fn columns(feed: &Feed, executor: &Executor, keep_inputs: bool) -> (Vec<(String, QType)>, Vec<usize>) {
    let outputs = executor.outputs();
    let hidden: HashSet<&str> = outputs.iter().map(|output| &*output.name).collect();
    let kept: Vec<usize> =
        (0..feed.fields().len()).filter(|at| keep_inputs && !hidden.contains(&*feed.fields()[*at].0)).collect();
    let inputs = kept.iter().map(|at| feed.fields()[*at].clone());
    let columns = inputs.chain(outputs.iter().map(|output| (output.name.to_string(), output.qtype.clone())));
    (columns.collect(), kept)
}

/// Says on standard error that machine code could not be had, to a person or if asked to.
pub(crate) fn note_fallback(executor: &Executor, verbose: bool) {
    if let Some(reason) = executor.fallback()
        && (verbose || io::stderr().is_terminal())
    {
        let _ = writeln!(io::stderr(), "note: the interpreter runs the model: {reason}");
    }
}

fn ran(executor: &Executor) -> &'static str {
    match executor.backend() {
        Backend::Native => "machine code",
        Backend::Interpreter | Backend::Auto | Backend::Tiered => "the interpreter",
    }
}
