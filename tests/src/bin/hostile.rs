//! `hostile`: runs models made to exhaust the library, each in a process of its own, and prints what became of them, how
//! long a processor worked on each, and the most memory the process had, source included. With `--page` it prints
//! `docs/hostile-models.md`.

use cembra_tests::hostile::{Case, HEAD, Row, TAIL, cases};
use clap::Parser;
use std::process::{Command, ExitCode};

/// Runs hostile models and prints time, peak memory and outcome of each.
///
/// Exits with 1 if an outcome is not the expected one.
#[derive(Parser, Debug)]
#[command(version)]
struct Arguments {
    /// Run only cases whose name contains this.
    #[arg(long, value_name = "SUBSTRING")]
    only: Option<String>,
    /// Print the page of the documents around the table.
    #[arg(long)]
    page: bool,
    /// Run one case in this process.
    #[arg(long, value_name = "NAME", hide = true)]
    one: Option<String>,
}

#[expect(clippy::print_stdout, clippy::print_stderr, reason = "this is what the command is for")]
fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if let Some(case) = cases().find(|case| arguments.one.as_deref() == Some(case.name)) {
        let run = case.run();
        println!("{}\t{}\t{}", run.outcome, run.time.as_millis(), peak_mib());
        return ExitCode::SUCCESS;
    }
    let chosen = |case: &&Case| arguments.only.as_ref().is_none_or(|only| case.name.contains(only.as_str()));
    let mut surprises = 0;
    // The head of the page ends with that of the table.
    let table = HEAD.rfind("\n\n").map_or(0, |at| at + 2);
    print!("{}", if arguments.page { HEAD } else { &HEAD[table..] });
    for case in cases().filter(chosen) {
        let [outcome, time, memory] = in_a_process(case);
        let is_expected = outcome == case.outcome;
        print!("{}", Row { name: case.name, outcome, time, memory });
        if !is_expected {
            surprises += 1;
            eprintln!("{}: expected {}", case.name, case.outcome);
        }
    }
    if arguments.page {
        print!("{TAIL}");
    }
    ExitCode::from(u8::from(surprises > 0))
}

/// Outcome, milliseconds and mebibytes of a case; what the process says in its place if it does not end well.
fn in_a_process(case: &Case) -> [String; 3] {
    let run = std::env::current_exe().and_then(|this| Command::new(this).args(["--one", case.name]).output());
    let text = run.as_ref().map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    let mut fields = text.trim_end().split('\t');
    match (fields.next(), fields.next(), fields.next()) {
        (Some(outcome), Some(time), Some(memory)) => [outcome.into(), time.into(), memory.into()],
        _ => {
            let status = run.map_or_else(|error| error.to_string(), |output| output.status.to_string());
            [format!("DIED: {status}"), String::new(), String::new()]
        }
    }
}

/// The most memory this process had so far, in mebibytes; 0 where the system does not say.
fn peak_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kib.unwrap_or(0) / 1024
}
