//! A field of a type that models do not have is refused with a message that says which they may have: of an output at once, of
//! an input where its type is a parameter, so that nobody knows. Other inputs are refused when a model asks for them.

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
