//! Must not compile: an array field with an element type that models do not have, and an output that is a borrowed
//! slice. The message lists the possible types.

#[derive(cembra::Output)]
struct Found<'a> {
    borrowed: &'a [f64],
    nested: Vec<Vec<f64>>,
}

fn main() {}
