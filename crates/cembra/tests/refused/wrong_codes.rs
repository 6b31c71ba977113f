//! Must not compile: enums whose variants have equal or invalid texts or numbers, and types that are neither.

#[derive(cembra::FieldType)]
struct Pair(i64, i64);

#[derive(cembra::FieldType)]
enum Nothing {}

#[derive(cembra::FieldType)]
enum Amount {
    Cents(i64),
    None,
}

#[derive(cembra::FieldType)]
enum Card {
    Gold,
    #[cembra(rename = "Gold")]
    Silver,
}

#[derive(cembra::FieldType)]
#[cembra(repr = "u8")]
enum Small {
    One = 1,
}

#[derive(cembra::FieldType)]
#[cembra(repr = "i32")]
enum Named {
    #[cembra(rename = "one")]
    One = 1,
}

#[derive(cembra::FieldType)]
#[cembra(repr = "i32", rename_all = "lowercase")]
enum Both {
    One = 1,
}

#[derive(cembra::FieldType)]
#[cembra(rename_all = "lowercase")]
union Either {
    x: f64,
    y: i64,
}

fn main() {}
