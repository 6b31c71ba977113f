//! Must not compile: an output field with a type that models do not have, and an input field whose type is a type
//! parameter. The message lists the possible types. Other input fields are errors only if a model reads them.

use std::collections::HashMap;

#[derive(cembra::Output)]
struct Found<'t> {
    name: &'t str,
}

#[derive(cembra::Input)]
struct Row<T> {
    labels: HashMap<String, String>,
    x: Option<T>,
}

fn main() {}
