//! Tests of writing and reading model files, through the public interface of the crate.

#[path = "../text/anything.rs"]
mod anything;
mod damage;
mod golden;
#[path = "../text/random.rs"]
mod random;
mod round_trip;
