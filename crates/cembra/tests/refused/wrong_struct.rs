//! Must not compile: outputs that are structs without a derive, lists of these, lists of lists, or dictionaries.

use std::collections::HashMap;

struct Plain {
    price: f64,
}

#[derive(cembra::Output)]
struct Item {
    price: f64,
}

#[derive(cembra::Output)]
struct Order {
    plain: Plain,
    plains: Vec<Plain>,
    nested: Vec<Vec<Item>>,
    by_name: HashMap<String, f64>,
}

fn main() {}
