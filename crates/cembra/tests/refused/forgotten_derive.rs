//! Must not compile: structs and enums without the derive that they need. The message names the derive.

use std::collections::HashMap;

struct Order {
    price: f64,
}

struct Bill {
    total: f64,
}

enum Card {
    Debit,
}

#[derive(cembra::Output)]
struct Answer {
    card: Card,
    bills: Vec<Bill>,
}

fn main() {
    let model = cembra::Model::parse("input price: f64; output total = price").unwrap();
    let options = cembra::Options::default();
    let _ = model.executor::<Order, f64>(&options);
    let _ = model.executor::<(), Bill>(&options);
    let _ = model.executor::<HashMap<String, f64>, Answer>(&options);
}
