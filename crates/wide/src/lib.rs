//! The wide assembler: compiles a tape (a straight-line program on scalars) to a loop over many rows, with AVX-512 or AVX2, in its own machine code,
//! in some microseconds. The caller provides the arrays of rows, and handles rows that fail.
//!
//! From a tape to a loop: `select` chooses machine instructions for virtual registers (`program`), and `schedule` orders
//! them. `registers` allocates registers (`homes` describes the memory of values) while `emit` writes the instructions
//! (`encode`). `loops` adds the loop over rows, `rare` the calls of scalar functions. `wide` makes the code executable and
//! runs the rows after the last full vector. `divisor` describes division by a shared value as a multiplication by its
//! inverse, `quotient` the divisions of rows for which that is not exact. `docs/wide.md` gives the reasons.

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
