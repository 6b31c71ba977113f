//! Tests of the text language and the builder, through the public interface.

mod common;
mod errors;
mod parse;
mod print;
