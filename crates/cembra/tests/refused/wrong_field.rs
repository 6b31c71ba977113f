//! A field of a type that models do not have is refused with a message that says which they may have.

#[derive(cembra::Input)]
struct Row {
    small: u8,
}

#[derive(cembra::Output)]
struct Found<'t> {
    name: &'t str,
}

fn main() {}
