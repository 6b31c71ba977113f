//! Must not compile: derives for a packed struct. Models read and write fields in place, so fields must be aligned.

#[derive(cembra::Input)]
#[repr(C, packed)]
struct Row {
    flag: bool,
    x: f64,
}

#[derive(cembra::Output)]
#[repr(packed(2))]
struct Found {
    flag: bool,
    y: f64,
}

#[derive(cembra::Input)]
#[repr(C, align(16))]
struct Fine {
    flag: bool,
    x: f64,
}

fn main() {}
