//! Machine code of rules and rows against the evaluator on bits, and where code is placed.

#[path = "../../../ops/tests/specials/mod.rs"]
mod specials;

mod lanes;
mod placement;
mod rows;
