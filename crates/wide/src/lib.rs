//! The wide assembler: plays a tape on many rows with AVX-512 or AVX2, in its own machine code. It compiles a tape to a loop in
//! some microseconds. Where rows come from and what happens to rows that fail is the caller's business.
//!
//! From a tape to a loop: `select` chooses machine instructions on values without registers (`program`), and `schedule` orders
//! them. `registers` allocates registers (`homes` describes where else values are) while `emit` writes the instructions
//! (`encode`). `loops` adds the walk over rows, `rare` the calls of scalar functions. `wide` publishes the code and plays the
//! rows after the last whole step. `divisor` describes division by a shared value as a multiplication, `quotient` the rows for
//! which that is not right. `docs/wide.md` gives the reasons.

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
