//! Prints the quote for an order, both as JSON: `cargo run -p example-quote [order.json]`.

use example_quote::{ORDER, Order, executor};
use std::error::Error;
use std::io::Write;

fn main() -> Result<(), Box<dyn Error>> {
    let order = match std::env::args().nth(1) {
        Some(file) => std::fs::read_to_string(file)?,
        None => ORDER.to_owned(),
    };
    let order: Order = serde_json::from_str(&order)?;
    let quote = executor()?.run(&order)?;
    writeln!(std::io::stdout(), "{}", serde_json::to_string_pretty(&quote)?)?;
    Ok(())
}
