//! The wide assembler: plays a tape on many rows with AVX-512 or AVX2, in machine code of its own. It makes a loop of a tape in
//! some microseconds; where rows come from, and what to do with those that fail, is for others to know.
//!
//! From a tape to a loop: `select` chooses machine instructions on values without registers (`program`), `schedule` puts them in
//! order, `registers` gives out registers (`homes` says where else values are) while `emit` writes the instructions (`encode`),
//! `loops` puts the walk over rows around them, `rare` the calls of scalar functions beside them, and `wide` publishes the code
//! and plays what is left behind the last whole step. `divisor` says how rows are divided by what they share, `quotient` where they are not. `docs/wide.md`
//! says why.

mod divisor;
mod emit;
mod encode;
mod ends;
mod error;
mod homes;
mod isa;
mod limits;
mod loops;
mod overlap;
mod program;
mod quotient;
mod rare;
mod registers;
mod schedule;
mod select;
#[cfg(test)]
mod tests;
mod wide;

pub use error::{Error, ErrorKind};
pub use isa::Isa;
pub use limits::Limits;
pub use wide::{WideLoop, compile};
