//! Requests with a customer who may be missing and a list of items, as lines of JSON: what reading them by serde into the same structs takes, and
//! reading and evaluating them by each way in. Then the structs alone, by the model and by hand, for several numbers of items. Nanoseconds per
//! request, minima of interleaved rounds.
//! `cargo run --release --manifest-path benches/Cargo.toml --example requests [requests]`.

use cembra::json::{JsonColumns, JsonRow, JsonRows};
use cembra::{Model, ModelExecutor, Options, RunOptions, Value};
use cembra_benches::measure::shortest;
use serde::Deserialize;
use std::hint::black_box;
use std::io::Write;
use std::ops::Range;

/// Rows of a batch.
const BATCH: usize = 4096;

/// Rounds of a comparison.
const ROUNDS: usize = 9;

/// Numbers of items of requests whose structs alone are measured, and how many requests there are of each.
const ITEMS: [usize; 5] = [0, 3, 10, 30, 300];
const ALONE: usize = 256;

#[derive(cembra::Input, Deserialize)]
struct Customer {
    name: String,
    age: Option<i32>,
}

#[derive(cembra::Input, Deserialize)]
struct Item {
    price: f64,
    count: i64,
    kind: Option<String>,
}

#[derive(cembra::Input, Deserialize)]
struct Order {
    #[cembra(rename = "customer")]
    customer: Option<Customer>,
    items: Vec<Item>,
}

#[derive(cembra::Output, Default, PartialEq, Debug)]
struct Bill {
    total: f64,
    books: f64,
    old: bool,
}

const MODEL: &str = "
    input customer: {name: text, age: i32?}?
    input items: [{price: f64, count: i64, kind: text?}]
    output total = sum(map(fn(i) = i.price * i.count, items))
    output books = sum(items.price & (items.kind == \"book\"))
    output old: bool = customer.age > 65 and customer.name != \"\"
";

/// The bill of an order, by hand.
fn bill(order: &Order) -> Bill {
    let total = order.items.iter().map(|item| item.price * item.count as f64).sum();
    let books = order.items.iter().filter(|item| item.kind.as_deref() == Some("book")).map(|item| item.price).sum();
    let is_old = |customer: &Customer| customer.age.is_some_and(|age| age > 65) && !customer.name.is_empty();
    Bill { total, books, old: order.customer.as_ref().is_some_and(is_old) }
}

/// Random requests, each with a number of items that lies in `items`.
fn lines(requests: usize, items: &Range<usize>) -> Vec<String> {
    let mut random = fastrand::Rng::with_seed(7);
    let line = |random: &mut fastrand::Rng| {
        let kinds = ["\"book\"", "\"toy\"", "\"food\"", "null"];
        let items: Vec<String> = (0..random.usize(items.clone()))
            .map(|_| {
                let (price, count) = (random.u32(50..20_000), random.u32(1..10));
                let kind = kinds[random.usize(..kinds.len())];
                format!("{{\"price\":{}.{:02},\"count\":{count},\"kind\":{kind}}}", price / 100, price % 100)
            })
            .collect();
        let customer = match random.u32(..5) {
            0 => "null".to_owned(),
            1 => "{\"name\":\"Ann\",\"age\":null}".to_owned(),
            _ => format!("{{\"name\":\"n{}\",\"age\":{}}}", random.u32(..1000), random.u32(18..91)),
        };
        format!("{{\"customer\":{customer},\"items\":[{}]}}", items.join(","))
    };
    (0..requests).map(|_| line(&mut random)).collect()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let requests: usize = std::env::args().nth(1).map_or(Ok(20_000), |requests| requests.parse())?;
    let lines = lines(requests, &(0..9));
    let model = Model::parse(MODEL)?;
    let mut derived = model.executor::<Order, Bill>(&Options::default())?;
    let mut texts = model.executor_from::<JsonRow, Bill>(&JsonRows, &Options::default())?;
    let batch = model.batch(&Options::default())?;
    let mut columns = JsonColumns::new(&batch)?;
    lines.iter().try_for_each(|line| columns.push(line))?;
    let together = columns.with(|columns| batch.run_with(&RunOptions::new().rows(lines.len()), columns))?;
    for (row, line) in lines.iter().enumerate() {
        let order: Order = serde_json::from_str(line)?;
        let expected = bill(&order);
        assert_eq!(derived.run(&order)?, expected);
        assert_eq!(texts.run(&JsonRow::parse(line)?)?, expected);
        // The sum of no floats is -0 by hand.
        let Bill { total, books, old } = expected;
        let found = together.columns.iter().map(|column| column.value(row));
        assert!(found.eq([(total + 0.0).into(), (books + 0.0).into(), old.into()].map(Some::<Value>)));
    }
    let orders: Vec<Order> = lines.iter().map(|line| serde_json::from_str(line)).collect::<Result<_, _>>()?;
    let read = || -> Result<(), serde_json::Error> {
        for line in &lines {
            black_box(bill(&serde_json::from_str::<Order>(line)?));
        }
        Ok(())
    };
    let mut out = std::io::stdout().lock();
    let mut say = |name: &str, [by_hand, time]: [f64; 2]| {
        let each = requests as f64;
        let (hand, model, share) = (by_hand / each, time / each, by_hand / time);
        writeln!(
            out,
            "{name:40} {model:6.0} ns per request, serde and by hand {hand:6.0}: {share:.2} of its requests per second"
        )
    };
    let alone = shortest(
        ROUNDS,
        || read().map_err(Into::into),
        || -> Result<(), Box<dyn std::error::Error>> {
            for order in &orders {
                black_box(derived.run(order)?);
            }
            Ok(())
        },
    );
    say("structs by the derive, the model alone", alone)?;
    let mut then = model.executor::<Order, Bill>(&Options::default())?;
    let both = shortest(
        ROUNDS,
        || read().map_err(Into::into),
        || -> Result<(), Box<dyn std::error::Error>> {
            for line in &lines {
                black_box(then.run(&serde_json::from_str::<Order>(line)?)?);
            }
            Ok(())
        },
    );
    say("serde into structs, then the model", both)?;
    let by_text = shortest(
        ROUNDS,
        || read().map_err(Into::into),
        || -> Result<(), Box<dyn std::error::Error>> {
            for line in &lines {
                black_box(texts.run(&JsonRow::parse(line)?)?);
            }
            Ok(())
        },
    );
    say("JsonRow, then the model", by_text)?;
    let many = shortest(
        ROUNDS,
        || read().map_err(Into::into),
        || -> Result<(), Box<dyn std::error::Error>> {
            for lines in lines.chunks(BATCH) {
                columns.truncate(0);
                lines.iter().try_for_each(|line| columns.push(line))?;
                black_box(columns.with(|columns| batch.run_with(&RunOptions::new().rows(lines.len()), columns))?);
            }
            Ok(())
        },
    );
    say("JsonColumns, then the model on batches", many)?;
    let reading = shortest(
        ROUNDS,
        || -> Result<(), Box<dyn std::error::Error>> {
            for line in &lines {
                black_box(serde_json::from_str::<Order>(line)?);
            }
            Ok(())
        },
        || -> Result<(), Box<dyn std::error::Error>> {
            for lines in lines.chunks(BATCH) {
                columns.truncate(0);
                lines.iter().try_for_each(|line| columns.push(line))?;
            }
            Ok(())
        },
    );
    say("JsonColumns, beside serde: reading alone", reading)?;
    for items in ITEMS {
        let [by_hand, by_model] = structs_alone(&mut derived, items)?;
        let ratio = by_model / by_hand;
        writeln!(out, "structs of {items} items alone: the model {by_model:.0} ns, by hand {by_hand:.0}: {ratio:.2}")?;
    }
    Ok(())
}

/// Nanoseconds per request whose structs are there: by hand, and by the model into a kept bill.
fn structs_alone(model: &mut ModelExecutor<Order, Bill>, items: usize) -> Result<[f64; 2], Box<dyn std::error::Error>> {
    let lines = lines(ALONE, &(items..items + 1));
    let orders: Vec<Order> = lines.iter().map(|line| serde_json::from_str(line)).collect::<Result<_, _>>()?;
    let mut kept = Bill::default();
    let times = shortest(
        ROUNDS,
        || -> Result<(), cembra::Error> {
            for order in black_box(&orders) {
                black_box(bill(order));
            }
            Ok(())
        },
        || {
            for order in black_box(&orders) {
                model.run_into(order, &mut kept)?;
                black_box(&kept);
            }
            Ok(())
        },
    );
    Ok(times.map(|time| time / ALONE as f64))
}
