//! An array field of elements that models do not have is refused with a message that says which they may have; so is an output
//! that would be borrowed from nobody.

#[derive(cembra::Input)]
struct Row<'a> {
    small: &'a [u8],
    nested: Vec<Vec<f64>>,
}

#[derive(cembra::Output)]
struct Found<'a> {
    borrowed: &'a [f64],
}

fn main() {}
