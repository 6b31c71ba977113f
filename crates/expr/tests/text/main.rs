//! Tests of the text language and the builder, through the public interface.

mod anything;
mod blocks;
mod common;
mod errors;
mod format;
mod parse;
mod print;
mod random;
mod sources;
mod tiles;
