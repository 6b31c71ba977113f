//! An array field of elements that models do not have is refused with a message that says which they may have; so is an output
//! that would be borrowed from nobody.

#[derive(cembra::Output)]
struct Found<'a> {
    borrowed: &'a [f64],
    nested: Vec<Vec<f64>>,
}

fn main() {}
