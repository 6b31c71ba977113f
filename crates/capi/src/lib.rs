//! The C interface of the compiler: the functions that `include/cembra_compiler.h` declares. This crate only converts values between C's memory and
//! the library. The language and the evaluation are in other crates. The functions of `cembra.h`, for models compiled ahead of time, come from
//! `cembra-runtime` and are exported too.
//!
//! | module | content |
//! |---|---|
//! | `memory` | pointers, sizes and strides of C, checked; texts |
//! | `layouts` | the structs of the header |
//! | `kinds` | the numbers of types |
//! | `failure`, `errors` | failures, their form in C, panics |
//! | `options`, `program`, `session` | the types that C has handles for |
//! | `row_value`, `rows`, `tensors`, `structs` | one row: values, arrays, tensors, structs and lists of structs |
//! | `views` | C's view of a row's output values |
//! | `columns` | many rows in C's memory |
//! | `arrow` | tables by Arrow's C data interface |
//!
//! Functions take references where C has pointers, so a null pointer is `None`. The header states the other requirements for pointers.

pub mod arrow;
pub mod columns;
pub mod errors;
mod failure;
mod kinds;
pub mod layouts;
pub mod memory;
pub mod options;
pub mod program;
mod row_value;
pub mod rows;
pub mod session;
mod structs;
mod tensors;
mod views;

use memory::Text;

/// The revision of the interface that `cembra_compiler.h` declares: `CEMBRA_ABI_VERSION`.
pub const ABI_VERSION: u32 = 1;

/// Returns the revision of the interface that the library implements, to compare with the header's.
#[unsafe(no_mangle)]
pub extern "C" fn cembra_abi_version() -> u32 {
    ABI_VERSION
}

/// Returns the version of the library, such as `0.1.0`.
#[unsafe(no_mangle)]
pub extern "C" fn cembra_version() -> Text<'static> {
    Text::new(env!("CARGO_PKG_VERSION"))
}
