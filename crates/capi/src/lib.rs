//! The C interface of the compiler: what `include/cembra_compiler.h` declares. Nothing of the language or of evaluation is in this crate, only the
//! way of values between C's memory and the library's. The functions of `cembra.h`, for models that were compiled ahead of time, come along from
//! `cembra-runtime`.
//!
//! | file | what it is about |
//! |---|---|
//! | `memory` | pointers, sizes and strides of C, checked; texts |
//! | `layouts` | the structs of the header |
//! | `kinds` | the numbers of types |
//! | `failure`, `errors` | what went wrong, and how C is told; panics |
//! | `options`, `program`, `session` | the handles |
//! | `row_value`, `rows`, `tensors`, `structs` | one row: values, arrays, tensors, structs and lists of structs |
//! | `views` | what C sees of the values that a row came to |
//! | `columns` | many rows in C's memory |
//! | `arrow` | tables by Arrow's C data interface |
//!
//! Functions take references where C has pointers, so that null is an `Option`. What else a pointer promises is in the header.

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

/// The revision of the header: `CEMBRA_ABI_VERSION`.
pub const ABI_VERSION: u32 = 1;

/// The revision that the library has.
#[unsafe(no_mangle)]
pub extern "C" fn cembra_abi_version() -> u32 {
    ABI_VERSION
}

/// The version of the library.
#[unsafe(no_mangle)]
pub extern "C" fn cembra_version() -> Text<'static> {
    Text::new(env!("CARGO_PKG_VERSION"))
}
