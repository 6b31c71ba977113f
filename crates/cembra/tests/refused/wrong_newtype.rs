//! A type of one's own stands for a type that models have, and for nothing else.

#[derive(cembra::FieldType)]
struct Labels(Vec<String>);

fn main() {}
