//! Tests of the operators' records in the registry: lowering rules against kernels, algebraic laws, missing arguments,
//! arrays in strips (blocks of elements), and allocations.

#[path = "../counting/mod.rs"]
#[expect(dead_code, reason = "bytes are for other programs")]
mod counting;
#[path = "../specials/mod.rs"]
mod specials;

mod allocation;
mod arranging;
mod laws;
mod lift;
mod rules;
mod strips;
mod windows;
