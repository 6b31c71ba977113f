//! `einsum`: products by labels for programs outside of this one, a line of JSON in for a line of JSON out.

use cembra::Backend;
use cembra_tests::tensor::{TensorEngine, answer};
use std::io::{self, BufRead, Write};
use std::process::ExitCode;

fn main() -> ExitCode {
    let engine = TensorEngine::new(Backend::default());
    let mut out = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let answered = line.map_err(|error| error.to_string()).and_then(|line| {
            let answer = answer(&engine, &line).map_err(|error| error.to_string())?;
            writeln!(out, "{answer}").and_then(|()| out.flush()).map_err(|error| error.to_string())
        });
        if let Err(problem) = answered {
            // With standard error closed there is nobody to tell.
            let _ = writeln!(io::stderr(), "einsum: {problem}");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}
