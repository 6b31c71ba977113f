//! Tests of models as files, through the public interface.

#[path = "../text/anything.rs"]
mod anything;
mod damage;
mod golden;
#[path = "../text/random.rs"]
mod random;
mod round_trip;
