//! Fields of packed structs are not aligned; models read and write fields where they are.

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
