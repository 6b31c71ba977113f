//! Types of one's own with serde, in a program that uses cembra: orders as JSON with `untagged` and `flatten`, settings as TOML
//! with whatever else they hold. cembra turns on no feature of `serde_json`, which would be on in this program too and change
//! what these types read and write. It reads numbers with all their digits in a way of its own.
//!
//! Run it with `cargo run -p example-own-types`. What it prints is asserted by its test.

use cembra::json::{Json, JsonRow, JsonRows};
use cembra::{Model, Options};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::error::Error;
use std::io::Write;

/// An amount, as the shops write it.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(untagged)]
enum Amount {
    Cents(i64),
    Euros(f64),
    Words(String),
}

impl Amount {
    fn euros(&self) -> Option<f64> {
        match self {
            Amount::Cents(cents) => Some(f64::from(i32::try_from(*cents).ok()?) / 100.0),
            Amount::Euros(euros) => Some(*euros),
            Amount::Words(_) => None,
        }
    }
}

#[derive(Debug, PartialEq, Deserialize, Serialize)]
struct Terms {
    amount: Amount,
    rebate: f64,
}

#[derive(Debug, PartialEq, Deserialize, Serialize)]
struct Order {
    id: u64,
    #[serde(flatten)]
    terms: Terms,
}

/// What the model sees of an order.
#[derive(cembra::Input)]
struct Row {
    amount: Option<f64>,
    rebate: f64,
}

#[derive(Debug, PartialEq, Deserialize, Serialize)]
struct Settings {
    model: String,
    least: f64,
    /// Of other programs, and kept for them.
    #[serde(flatten)]
    others: Map<String, Value>,
}

const SETTINGS: &str = "\
model = \"amount * (1.0 - rebate)\"
least = 0.5
retries = 3

[zone]
name = \"west\"
factor = 1.25
";

const ORDERS: [&str; 3] = [
    r#"{"id":1,"amount":1250,"rebate":0.5}"#,
    r#"{"id":18446744073709551615,"amount":8.25,"rebate":0.0}"#,
    r#"{"id":3,"amount":"later","rebate":0.25}"#,
];

/// Writes what each order costs, the settings, and a row that goes to the model as it is written.
fn show(out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    let settings: Settings = toml::from_str(SETTINGS)?;
    let model = Model::parse(&settings.model)?;
    let mut cost = model.executor::<Row, Option<f64>>(&Options::default())?;
    for text in ORDERS {
        let order: Order = serde_json::from_str(text)?;
        let row = Row { amount: order.terms.amount.euros(), rebate: order.terms.rebate };
        let cost = cost.run(&row)?.map(|cost| cost.max(settings.least));
        writeln!(out, "{:?} costs {cost:?} in {}", order.terms.amount, serde_json::to_string(&order)?)?;
    }
    write!(out, "{}", toml::to_string(&settings)?)?;

    let model = Model::parse("input x: f32; input n: i64; (x, n)")?;
    let mut run = model.executor_between::<_, (), _>(&JsonRows, &Json, &Options::default())?;
    let mut found = Map::new();
    run.listen(&JsonRow::parse(r#"{"x": 1.000000059604644775390626, "n": 9007199254740993}"#)?, &mut found)?;
    writeln!(out, "{}", Value::from(found))?;
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    show(&mut std::io::stdout().lock())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_with_serde_are_as_without_cembra() {
        let mut out = Vec::new();
        show(&mut out).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "\
Cents(1250) costs Some(6.25) in {\"id\":1,\"amount\":1250,\"rebate\":0.5}
Euros(8.25) costs Some(8.25) in {\"id\":18446744073709551615,\"amount\":8.25,\"rebate\":0.0}
Words(\"later\") costs None in {\"id\":3,\"amount\":\"later\",\"rebate\":0.25}
model = \"amount * (1.0 - rebate)\"
least = 0.5
retries = 3

[zone]
factor = 1.25
name = \"west\"
{\"result\":[1.0000001,9007199254740993]}
"
        );
    }

    /// Each of these is otherwise with `arbitrary_precision`, `preserve_order` or `unbounded_depth` of `serde_json`.
    #[test]
    fn serde_json_has_no_features() {
        assert_eq!(serde_json::from_str::<Amount>("7").unwrap(), Amount::Cents(7));
        let sorted: Vec<_> =
            serde_json::from_str::<Map<String, Value>>(r#"{"b":1,"a":2}"#).unwrap().into_iter().collect();
        assert_eq!(sorted, [("a".to_owned(), 2.into()), ("b".to_owned(), 1.into())]);
        assert_eq!(toml::to_string(&serde_json::json!({"n": 1})).unwrap(), "n = 1\n");
        assert!(serde_json::from_str::<Value>("1e999").is_err());
        assert!(serde_json::from_str::<Value>(&format!("{}{}", "[".repeat(200), "]".repeat(200))).is_err());
    }
}
