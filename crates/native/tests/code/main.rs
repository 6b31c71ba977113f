//! Tests of machine code: rules and rows against the interpreter, and code at different addresses.

#[path = "../../../ops/tests/specials/mod.rs"]
mod specials;

mod lanes;
mod placement;
mod rows;
