//! The records of the registry: rules against kernels, laws, lifting, strips and allocations.

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
