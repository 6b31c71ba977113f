//! Models of a folder as a service: it reads a request a line and writes an answer a line.
//!
//! ```text
//! echo 'pricing {"unit_price": 10, "quantity": 9, "country": "DE"}' |
//!     cargo run -p example-service -- docs/examples/service/models
//! ```
//!
//! A request is the name of a model and its inputs as JSON. The line `reload` has what changed in the folder take effect. A
//! real service has a protocol for a transport, and one thread for each request: `Service` is shared between threads as it is.

mod service;

use service::Service;
use std::io::{BufRead, Write};
use std::process::ExitCode;

/// Answers requests until there are no more.
fn serve(folder: &str, requests: impl BufRead, mut answers: impl Write) -> Result<(), Box<dyn std::error::Error>> {
    let service = Service::load(folder)?;
    for line in requests.lines() {
        let line = line?;
        let (word, rest) = line.split_once(' ').unwrap_or((&line, ""));
        let answer = match word {
            "reload" => service.reload(),
            model => service.answer(model, rest),
        };
        // An error is an answer too; it stays on its line.
        writeln!(
            answers,
            "{}",
            answer.unwrap_or_else(|error| format!("error: {}", error.to_string().replace('\n', " ")))
        )?;
    }
    Ok(())
}

fn main() -> ExitCode {
    let folder = std::env::args().nth(1).unwrap_or_else(|| "docs/examples/service/models".to_owned());
    match serve(&folder, std::io::stdin().lock(), std::io::stdout().lock()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "{error}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests;
