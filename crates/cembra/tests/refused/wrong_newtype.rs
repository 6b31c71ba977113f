//! Must not compile: a `FieldType` derive for a struct around a type that models do not have.

#[derive(cembra::FieldType)]
struct Labels(Vec<String>);

fn main() {}
