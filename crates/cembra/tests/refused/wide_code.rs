//! Must not compile: an enum with a discriminant that does not fit the type of `repr`.

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
