//! `cembra fuzz`: compares the backends on random programs.

use super::print;
use crate::failure::{Failure, usage};
use crate::progress::Progress;
use crate::ranks;
use cembra_fuzzing::Config;
use std::io::{self, IsTerminal};

/// Compares the backends on random programs and rows
///
/// A program on which the backends differ is made as small as possible. It is shown with its row and the command that finds it again, and the exit
/// status is 1. The last line sums up. Processes that an MPI launcher started also test tiled tensors together, as ranks.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(flatten)]
    effort: Effort,

    /// The seed for all random choices: the same seed gives the same programs
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// The percentage of programs that compute on arrays; the seed decides which ones
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u8).range(..=100))]
    arrays: u8,

    /// The number of the first program
    #[arg(long, value_name = "N", default_value_t = 0)]
    start: u64,
}

#[derive(clap::Args, Debug)]
#[group(required = true, multiple = false)]
struct Effort {
    /// The number of programs to try
    #[arg(long, value_name = "N")]
    programs: Option<u64>,

    /// The number of seconds to try programs
    #[arg(long, value_name = "N")]
    seconds: Option<u64>,

    /// The number of graphs of tensors, their derivatives and statements to try, instead of programs
    #[arg(long, value_name = "N")]
    tensors: Option<u64>,

    /// The number of graphs and statements on tiled tensors, and functions of these, to try, instead of programs
    #[arg(long, value_name = "N")]
    tiles: Option<u64>,
}

/// Runs `cembra fuzz`.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let Effort { programs, seconds, tensors, tiles } = args.effort;
    if tiles.is_none() && !ranks::works_alone("only `fuzz --tiles` can be distributed to ranks") {
        return Ok(());
    }
    let programs = programs.or(tensors).or(tiles);
    let arrays = f64::from(args.arrays) / 100.0;
    let config = Config { programs, seconds, arrays, seed: args.seed, start: args.start, ..Config::default() };
    let mut progress = Progress::new(programs, io::stdout().is_terminal());
    let what = if tensors.is_some() { "graphs" } else { "programs" };
    let tell = &mut |tried| {
        progress.bar().set_position(tried);
        progress.tell(tried, what);
    };
    let (report, is_broken) = if tensors.is_some() {
        let report = cembra_fuzzing::run_tensors(&config, tell);
        (report.to_string(), report.mismatch().is_some())
    } else if tiles.is_some() {
        let world = ranks::join().map_err(|error| usage("fuzz", error))?;
        let link = world.ranks().map(|ranks| ranks.link().clone());
        let report = cembra_fuzzing::run_tiles(&config, link, tell);
        let is_first = world.rank() == 0;
        drop(world);
        ranks::leave();
        if !is_first {
            // All ranks have the same result.
            return report.mismatch().map_or(Ok(()), |_| Err(Failure::Reported));
        }
        (report.to_string(), report.mismatch().is_some())
    } else {
        let report = cembra_fuzzing::run(&config, tell);
        (report.to_string(), report.mismatch().is_some())
    };
    progress.finish();
    print(&format!("{report}\n"))?;
    if is_broken { Err(Failure::Reported) } else { Ok(()) }
}
