//! The bodies of the fuzzer for a short while each.

mod arrays;
mod smoke;
mod tensors;
mod tiles;
