//! Reads parcels from standard input, a line each, and prints what the model says of them.

mod parcel;

use cembra_runtime::{Optional, Text};
use std::error::Error;
use std::str::FromStr;

/// `-` stands for what is missing.
fn optional<T: FromStr + Copy + Default>(word: &str) -> Result<Optional<T>, T::Err> {
    if word == "-" { Ok(Optional::missing()) } else { Ok(Optional::present(word.parse()?)) }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut model = parcel::Model::new()?;
    for line in std::io::stdin().lines() {
        let line = line?;
        let words: Vec<&str> = line.split_whitespace().collect();
        let [weight, distance, country, express, per_day] = words[..] else { return Err("five words a line".into()) };
        let input = parcel::Input {
            weight: weight.parse()?,
            distance: optional(distance)?,
            country: Text::new(country),
            express: express.parse()?,
            per_day: optional(per_day)?,
        };
        match model.evaluate(&input) {
            Ok(output) => {
                let days = output.days.get().map_or_else(|| "-".to_owned(), |days| days.to_string());
                let heavy = if output.heavy.is_present() { "heavy" } else { "light" };
                println!("{} {} {days} {heavy}", output.price, output.zone.as_str());
            }
            Err(fault) => {
                let (start, end) = fault.span().unwrap_or_default();
                println!("fault {} at {start}..{end}: {fault}", fault.kind().name());
            }
        }
    }
    Ok(())
}
