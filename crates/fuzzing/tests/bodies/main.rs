//! Tests that run each part of the fuzzer for a short time.

mod arrays;
mod smoke;
mod tensors;
mod tiles;
