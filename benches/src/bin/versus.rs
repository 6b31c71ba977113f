//! `versus`: cembra against the hand-written limit, in one run.

use cembra_benches::allocations::Counting;
use cembra_benches::arrays;
use cembra_benches::batch::{self, report};
use cembra_benches::compile::{self, Compile};
use cembra_benches::measure::Effort;
use cembra_benches::record::{self, Record};
use cembra_benches::scalar::Scalar;
use cembra_benches::subject::Way;
use cembra_benches::{Error, large, life, requests, tensor, texts, user, workload};
use clap::{Args, Parser, Subcommand};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

#[cfg(feature = "peers")]
const PEERS: &[&str] = &cembra_benches::peers::NAMES;
#[cfg(not(feature = "peers"))]
const PEERS: &[&str] = &[];

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Measures cembra against the hand-written limit.
#[derive(Parser)]
#[command(name = "versus")]
struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Nanoseconds per call, one row at a time.
    Scalar(Common),
    /// Microseconds from text to something callable, warm.
    Compile(Common),
    /// The memory that compiling a large model takes; `compile` asks a process of its own for it.
    #[command(hide = true)]
    Peak {
        /// The model.
        workload: String,
        /// What compiles it.
        subject: String,
    },
    /// Nanoseconds per call of a function: as a built-in operator, and as operators of the user.
    User(Common),
    /// Nanoseconds per call of models that compare texts.
    Texts(Common),
    /// Nanoseconds per row of models over columns, and over structs.
    Batch(Batch),
    /// Nanoseconds per row of models over arrays and their groups, and per call of one over few elements.
    Arrays(Batch),
    /// Nanoseconds per request with a list of structs, from structs and from JSON, beside a function by hand.
    Requests(Common),
    /// Microseconds per run of tensor programs, beside a library of matrices, hand-written loops and the memory.
    Tensor(Tensor),
    /// The lives of many small models: load, first call, call, drop; the tails of their times, and their memory.
    Life(Life),
}

#[derive(Args)]
struct Life {
    #[command(flatten)]
    report: Report,
    /// How many models.
    #[arg(long, value_name = "N", default_value_t = life::MODELS as u32, value_parser = clap::value_parser!(u32).range(1..))]
    models: u32,
    /// Only these subjects. Resident memory is right only of the first: others use what it gave back.
    #[arg(long, value_name = "NAME", value_parser = life::WAYS.map(|way| way.name))]
    subject: Vec<String>,
}

#[derive(Args)]
struct Tensor {
    #[command(flatten)]
    common: Common,
    /// Only what has one of these in its name.
    #[arg(long, value_name = "NAME")]
    workload: Vec<String>,
}

#[derive(Args)]
struct Batch {
    #[command(flatten)]
    common: Common,
    /// Only these workloads.
    #[arg(long, value_name = "NAME")]
    workload: Vec<String>,
    /// No more rows than this: those of the largest size take gigabytes.
    #[arg(long, value_name = "N", default_value_t = 10_000_000)]
    most_rows: usize,
}

#[derive(Args)]
struct Report {
    /// Also writes the records to this file, as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

#[derive(Args)]
struct Common {
    #[command(flatten)]
    report: Report,
    /// Measured rounds; every subject runs once a round.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    rounds: Option<u32>,
}

impl Batch {
    fn plan(&self) -> batch::Plan {
        batch::Plan {
            effort: self.common.effort(21, 2, Duration::from_millis(2)),
            workloads: self.workload.clone(),
            most_rows: self.most_rows,
        }
    }
}

impl Common {
    fn effort(&self, rounds: u32, warm_up: usize, fill: Duration) -> Effort {
        Effort { rounds: self.rounds.unwrap_or(rounds) as usize, warm_up, fill }
    }
}

impl Report {
    fn write(&self, records: &[Record]) -> Result<(), Error> {
        let mut out = std::io::stdout().lock();
        writeln!(out, "{}", record::machine())?;
        record::write_table(records, &mut out)?;
        record::write_interpreter_ratios(records, PEERS, &mut out)?;
        self.keep(records)
    }

    fn keep(&self, records: &[Record]) -> Result<(), Error> {
        if let Some(path) = &self.json {
            let mut file = BufWriter::new(File::create(path)?);
            record::write_json(records, &mut file)?;
            file.flush()?;
        }
        Ok(())
    }
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Nowhere is left to report to if this fails.
            drop(writeln!(std::io::stderr(), "versus: {error}"));
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), Error> {
    match &arguments.what {
        What::Scalar(common) => {
            let mut scalar = Scalar::new(common.effort(31, 3, Duration::from_millis(2)));
            workload::visit_all(&mut scalar)?;
            common.report.write(&scalar.records)
        }
        What::Compile(common) => {
            let effort = common.effort(301, 30, Duration::ZERO);
            let mut compile = Compile::new(effort);
            workload::visit_all(&mut compile)?;
            compile.records.extend(compile::arrays(effort)?);
            compile.records.extend(large::run()?);
            common.report.write(&compile.records)
        }
        What::Peak { workload, subject } => {
            writeln!(std::io::stdout(), "{}", large::peak(workload, subject)?)?;
            Ok(())
        }
        What::Life(arguments) => {
            let wanted =
                |way: &Way| arguments.subject.is_empty() || arguments.subject.iter().any(|name| name == way.name);
            let ways: Vec<Way> = life::WAYS.into_iter().filter(wanted).collect();
            arguments.report.write(&life::run(arguments.models as usize, &ways)?)
        }
        What::Arrays(arguments) => arguments.common.report.write(&arrays::run(&arguments.plan())?),
        What::Batch(arguments) => {
            let records = batch::run(&arguments.plan())?;
            let mut out = std::io::stdout().lock();
            writeln!(out, "{}", record::machine())?;
            report::write_table(&records, &mut out)?;
            arguments.common.report.keep(&records)
        }
        What::Tensor(arguments) => {
            let effort = arguments.common.effort(15, 2, Duration::from_millis(5));
            arguments.common.report.write(&tensor::run(&arguments.workload, effort)?)
        }
        What::Requests(common) => common.report.write(&requests::run(common.effort(31, 3, Duration::from_millis(2)))?),
        What::Texts(common) => common.report.write(&texts::run(common.effort(31, 3, Duration::from_millis(2)))?),
        What::User(common) => common.report.write(&user::run(common.effort(31, 3, Duration::from_millis(2)))?),
    }
}
