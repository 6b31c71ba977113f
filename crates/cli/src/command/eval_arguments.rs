//! The arguments of `cembra eval`, for models on rows and for models on tensors, and the settings that follow from them.

use crate::arguments::{
    Assignment, BackendChoice, DataOptions, Decimal, ModelArgs, NameList, PlayerChoice, WarningArgs,
};
use crate::deadline::parse_seconds;
use crate::failure::{Failure, usage};
use crate::pipeline::OnError;
use crate::source::STANDARD;
use cembra_table::{Format, Keep};
use clap::ValueEnum;
use std::io::{self, IsTerminal};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The name of the command, for errors about its command line.
pub(super) const NAME: &str = "eval";

/// The file extensions of the result formats, for a model of rows.
const ROW_ENDINGS: &str = "`.csv`, `.tsv`, `.json`, `.jsonl`, `.parquet` or `.arrow`";

/// The extension of Arrow streams, which are only read: results are written as Arrow files.
const ARROW_STREAM: &str = "arrows";

/// The extensions of compressed files.
const COMPRESSED: [&str; 4] = ["gz", "zst", "zstd", "bz2"];

/// The most threads that compute: each takes memory, and more threads than processors are useless.
const MOST_THREADS: usize = 256;

/// Evaluates a model on every row of the data
///
/// DATA is CSV (or TSV) with a header, an array of JSON objects, one JSON object on each line, Parquet or Arrow, and may be
/// compressed with gzip or zstd; its columns are matched to the inputs of the model by name. It may be larger than memory.
/// Without DATA the model is evaluated once, on the values of `-s`.
///
/// A model with tensors is evaluated once: DATA is an archive of NumPy (`.npz`) with an array for each input, or one array (`.npy`).
///
/// Standard output carries the results and nothing else: the model's outputs in the order they are written.
#[derive(clap::Args, Clone, Debug)]
#[command(
    override_usage = "cembra eval [OPTIONS] <MODEL> [DATA]...\n       cembra eval [OPTIONS] -e <EXPR> [DATA]...",
    after_help = "Exit status: 0 done, 1 a problem with the model or the data, 2 a wrong command line."
)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(super) model: ModelArgs,

    /// The files with the rows, all of one format, read in this order; `-` is standard input, `'b*.csv'` all files with matching names
    #[arg(value_name = "DATA")]
    pub(super) data: Vec<PathBuf>,

    /// A value for an input, the same for all rows: `-s x=1.5`, `-s 'name="Ann"'`
    #[arg(short = 's', long = "set", value_name = "NAME=VALUE", value_parser = Assignment::parse)]
    pub(super) set: Vec<Assignment>,

    /// A `.npy` file of NumPy for an input that is a tensor: `--input a=a.npy`; for an input in tiles, a checkpoint and the tensor in it,
    /// which has the input's name (`a=DIRECTORY`) or another one (`a=DIRECTORY:b`); may be given several times
    #[arg(long, value_name = "NAME=FILE", value_parser = ArrayFile::parse)]
    pub(super) input: Vec<ArrayFile>,

    /// The backend that runs the model; all give the same results, bit for bit
    #[arg(long, value_enum, default_value_t)]
    pub(super) backend: BackendChoice,

    /// The code that evaluates the rows of large tables; all give the same results, bit for bit
    #[arg(long, value_enum, default_value_t)]
    pub(super) isa: PlayerChoice,

    /// The format of the results; by default the one of the output file's name, else a table on a terminal, else CSV
    #[arg(long, value_enum)]
    pub(super) format: Option<OutputFormat>,

    #[command(flatten)]
    pub(super) data_options: DataOptions,

    /// The character before the fraction of numbers in CSV results and tables: `.` or `,`; with `,`, a semicolon separates the fields of CSV
    #[arg(long, value_name = "CHARACTER", value_enum)]
    pub(super) output_decimal: Option<Decimal>,

    /// Compute and print only these outputs, in this order; a name with a comma is quoted as in CSV: `--only 'a,"b,c"'`
    #[arg(long, value_name = "NAME,..", value_parser = NameList::parse)]
    only: Vec<NameList>,

    /// Print the inputs too, before the outputs, except inputs with the name of an output
    #[arg(long)]
    pub(super) keep_inputs: bool,

    /// Print these columns of DATA too, before everything else, whether the model uses them or not; a name with a comma is quoted as in CSV:
    /// `--keep 'a,"b,c"'`
    #[arg(long, value_name = "NAME,..", value_parser = NameList::parse, conflicts_with = "keep_all")]
    keep: Vec<NameList>,

    /// Print all columns of DATA too
    #[arg(long)]
    pub(super) keep_all: bool,

    /// The treatment of a row that cannot be read, or whose evaluation fails
    #[arg(long, value_enum, default_value_t)]
    pub(super) on_error: OnError,

    /// Write the rows that failed as CSV to a file; `-` is standard error
    #[arg(long, value_name = "FILE")]
    pub(super) errors: Option<PathBuf>,

    /// The number of threads; by default the number of processors
    #[arg(long, value_name = "N")]
    pub(super) threads: Option<NonZero<usize>>,

    #[command(flatten)]
    pub(super) tiles: TileArgs,

    #[command(flatten)]
    pub(super) ranks: RankArgs,

    /// Write the results to a file, which appears only when it is complete; `-` is standard output
    #[arg(short = 'o', long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,

    /// Read at most N rows
    #[arg(long, value_name = "N")]
    pub(super) limit: Option<u64>,

    /// End with an error if the evaluation takes longer than SECONDS
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    pub(super) time_limit: Option<Duration>,

    /// Allow the rewrites that may change the sign of a zero, a NaN or a rounding
    #[arg(long)]
    pub(super) compat: bool,

    #[command(flatten)]
    pub(super) warnings: WarningArgs,

    /// Print on standard error the types inferred from DATA and the rows that decided them, the code that ran, and its time; for tensors
    /// in tiles, the time of each step
    #[arg(short, long)]
    pub(super) verbose: bool,
}

/// The formats of results that `--format` names.
#[derive(Clone, Copy, ValueEnum, Debug)]
pub(super) enum OutputFormat {
    /// A table for people
    Table,
    /// Comma-separated values with a header
    Csv,
    /// An array of objects
    Json,
    /// An object on each line
    Jsonl,
    /// Parquet
    Parquet,
    /// Arrow, as a file
    Arrow,
    /// An array of NumPy, for a model with tensors
    Npy,
    /// Named arrays of NumPy, for a model with tensors
    Npz,
}

impl Args {
    /// The format of the results: that of `--format`, else that of the output file's extension, else the default.
    pub(super) fn format(&self) -> Result<Format, Failure> {
        Ok(match self.format {
            Some(OutputFormat::Table) => Format::Table,
            Some(OutputFormat::Csv) => Format::Csv,
            Some(OutputFormat::Json) => Format::Json,
            Some(OutputFormat::Jsonl) => Format::JsonLines,
            Some(OutputFormat::Parquet) => Format::Parquet,
            Some(OutputFormat::Arrow) => Format::Arrow,
            Some(OutputFormat::Npy | OutputFormat::Npz) => {
                return Err(usage(
                    NAME,
                    "`--format npy` and `--format npz` can only be used for models with tensors, not for rows",
                ));
            }
            None => match self.ending() {
                Some(ending) => Format::of_ending(&ending)
                    .filter(|_| ending != ARROW_STREAM)
                    .ok_or_else(|| self.no_ending(&ending, "rows", ROW_ENDINGS))?,
                None if self.output.is_none() && io::stdout().is_terminal() => Format::Table,
                None => Format::Csv,
            },
        })
    }

    /// The path of the file for the results; `None` for standard output.
    pub(super) fn output_path(&self) -> Option<&Path> {
        self.output.as_deref().filter(|path| path.as_os_str() != STANDARD)
    }

    /// The extension of the output file, in lower case. `None` with `--format`, without an output file or an extension, and for devices and
    /// pipes.
    pub(super) fn ending(&self) -> Option<String> {
        let path = self.output_path().filter(|_| self.format.is_none())?;
        let is_special = std::fs::metadata(path).is_ok_and(|there| !there.is_file() && !there.is_dir());
        let ending = path.extension().filter(|_| !is_special)?;
        Some(ending.to_string_lossy().to_ascii_lowercase())
    }

    /// The error that the extension `ending` of the output file is not a format for `results`; `known` lists their formats.
    pub(super) fn no_ending(&self, ending: &str, results: &str, known: &str) -> Failure {
        let path = self.output.as_deref().unwrap_or(Path::new("")).display();
        let advice = if COMPRESSED.contains(&ending) {
            "leave the last extension of the name out: results cannot be compressed"
        } else {
            "give the format with `--format`, or end the name of the file in one of these formats"
        };
        usage(NAME, format!("`-o {path}`: `.{ending}` is not a format of {results}; the formats are {known}; {advice}"))
    }

    /// Returns an error if the extension of the file for failed rows belongs to another format than CSV.
    pub(super) fn check_errors(&self) -> Result<(), Failure> {
        let Some(path) = &self.errors else { return Ok(()) };
        let is_compressed = path.extension().is_some_and(|ending| COMPRESSED.iter().any(|known| ending == *known));
        if is_compressed || Format::of_path(path).is_some_and(|format| format != Format::Csv) {
            let path = path.display();
            return Err(usage(
                NAME,
                format!("`--errors {path}`: the name must end in `.csv`, because failed rows are written as CSV"),
            ));
        }
        if self.on_error == OnError::Fail {
            let message = "add `--on-error skip` or `--on-error missing`: without it the first row that fails ends the run, and \
                           `--errors` has nothing to write";
            return Err(usage(NAME, message));
        }
        Ok(())
    }

    /// The choice of data columns that are copied to the results.
    pub(super) fn keep(&self) -> Keep {
        match (self.keep_all, self.keep.as_slice()) {
            (true, _) => Keep::All,
            (false, []) => Keep::None,
            (false, lists) => Keep::These(NameList::joined(lists)),
        }
    }

    /// The names of the outputs that are computed and printed; empty for all outputs.
    pub(super) fn only(&self) -> Vec<String> {
        NameList::joined(&self.only)
    }

    /// Returns true if fields of CSV data are copied to the results as they are written. For this, `format`, the format of the results, must be
    /// CSV, TSV or a table, and data and results must have the same decimal character.
    pub(super) fn is_verbatim(&self, format: Format) -> bool {
        let is_same = |decimal| decimal == self.data_options.decimal.unwrap_or(Decimal::Point);
        matches!(format, Format::Csv | Format::Tsv | Format::Table) && self.output_decimal.is_none_or(is_same)
    }

    /// The number of threads that compute, at most [`MOST_THREADS`]. It is 1 if `--limit` is given.
    pub(super) fn threads(&self) -> usize {
        match self.threads.or(std::thread::available_parallelism().ok()) {
            // A limit counts the rows in order.
            _ if self.limit.is_some() => 1,
            Some(threads) => threads.get().min(MOST_THREADS),
            None => 1,
        }
    }
}

/// The options of tiles on the command line.
#[derive(clap::Args, Clone, Debug)]
pub(super) struct TileArgs {
    /// Leave out tiles whose norm per element is below NUMBER, in a model that cuts tensors into tiles; by default the machine epsilon of the
    /// elements' type
    #[arg(long, value_name = "NUMBER", value_parser = parse_threshold)]
    pub(super) threshold: Option<f64>,

    /// End with an error before tiles take more memory: `4G`, `500M`, or a number of bytes
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    pub(super) most_bytes: Option<usize>,
}

/// The options of ranks on the command line: processes that a launcher of MPI starts, or threads.
#[derive(clap::Args, Clone, Debug)]
pub(super) struct RankArgs {
    /// Distribute the tiles of a model to N ranks, each a thread, for tests and teaching. With `mpirun -n N cembra eval ..`, ranks are
    /// processes
    #[arg(long, value_name = "N")]
    pub(super) ranks: Option<NonZero<usize>>,

    /// Continue if the processors of the ranks multiply with different instructions: results then agree only up to rounding
    #[arg(long)]
    pub(super) any_processor: bool,

    /// With `-o DIRECTORY.tiles`: write each output as soon as it is computed, and skip those that are there already
    #[arg(long)]
    pub(super) resume: bool,
}

/// Parses a number that is at least 0.
fn parse_threshold(argument: &str) -> Result<f64, String> {
    let threshold = argument.trim().parse::<f64>().ok().filter(|threshold| *threshold >= 0.0);
    threshold.ok_or_else(|| "expected a number of at least 0, as in `--threshold 1e-8`".to_owned())
}

/// Parses a number of bytes. The suffixes `K`, `M`, `G` and `T` are powers of 1,024.
fn parse_bytes(argument: &str) -> Result<usize, String> {
    const UNITS: &str = "KMGT";
    let text = argument.trim();
    let unit = text.chars().last().and_then(|last| UNITS.find(last.to_ascii_uppercase()));
    let (number, shift) = match unit {
        Some(unit) => (&text[..text.len() - 1], 10 * (unit + 1)),
        None => (text, 0),
    };
    let bytes =
        number.trim().parse::<usize>().ok().and_then(|number| number.checked_mul(1_usize.checked_shl(shift as u32)?));
    bytes.ok_or_else(|| "expected a number of bytes, as in `--most-bytes 4G`".to_owned())
}

/// An array file that the command line gives to an input: `a=a.npy`.
#[derive(Clone, Debug)]
pub(super) struct ArrayFile {
    pub(super) name: String,
    pub(super) path: PathBuf,
}

impl ArrayFile {
    /// Parses the command-line argument `name=path`.
    pub(super) fn parse(argument: &str) -> Result<ArrayFile, String> {
        match argument.split_once('=') {
            Some((name, path)) if !name.trim().is_empty() && !path.is_empty() => {
                Ok(ArrayFile { name: name.trim().to_owned(), path: path.into() })
            }
            _ => Err("expected a name and a file, as in `a=a.npy`".to_owned()),
        }
    }

    /// If the file is a checkpoint, returns its directory and the name of a tensor in it: `DIRECTORY` means the tensor with the input's
    /// name, `DIRECTORY:b` the tensor `b`. `None` for other files.
    pub(super) fn in_checkpoint(&self) -> Option<(&Path, &str)> {
        if self.path.is_dir() {
            return Some((&self.path, &self.name));
        }
        let (directory, tensor) = self.path.to_str()?.rsplit_once(':')?;
        Some((Path::new(directory), tensor)).filter(|(directory, _)| directory.is_dir())
    }
}
