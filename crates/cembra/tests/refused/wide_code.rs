//! A number that the type of the others has no place for.

#[derive(cembra::FieldType)]
#[cembra(repr = "i32")]
#[repr(i64)]
enum Code {
    Low = 1,
    High = 1 << 40,
}

#[derive(cembra::FieldType)]
#[cembra(repr = "u64")]
enum Negative {
    Below = -1,
}

fn main() {}
