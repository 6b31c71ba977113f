//! `versus`: cembra against the hand-written limit, in one run.

use cembra_benches::compile::Compile;
use cembra_benches::measure::Effort;
use cembra_benches::record::{self, Record};
use cembra_benches::scalar::Scalar;
use cembra_benches::{Error, user, workload};
use clap::{Args, Parser, Subcommand};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

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
    /// Nanoseconds per call of a function: as a built-in operator, and as operators of the user.
    User(Common),
}

#[derive(Args)]
struct Common {
    /// Also writes the records to this file, as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Measured rounds; every subject runs once a round.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    rounds: Option<u32>,
}

impl Common {
    fn effort(&self, rounds: u32, warm_up: usize, fill: Duration) -> Effort {
        Effort { rounds: self.rounds.unwrap_or(rounds) as usize, warm_up, fill }
    }

    fn report(&self, records: &[Record]) -> Result<(), Error> {
        let mut out = std::io::stdout().lock();
        writeln!(out, "{}", record::machine())?;
        record::write_table(records, &mut out)?;
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
            common.report(&scalar.records)
        }
        What::Compile(common) => {
            let mut compile = Compile::new(common.effort(301, 30, Duration::ZERO));
            workload::visit_all(&mut compile)?;
            common.report(&compile.records)
        }
        What::User(common) => common.report(&user::run(common.effort(31, 3, Duration::from_millis(2)))?),
    }
}
