//! Tests of tiled tensors: golden data, properties of random tensors, and hostile input.

mod array_files;
mod blocks;
#[cfg(feature = "checkpoints")]
mod checkpoints;
mod elementwise;
mod faults;
mod golden;
mod graphs;
mod hostile;
mod links;
mod operations;
mod placed;
mod plans;
mod products;
mod random;
mod ranks;
mod reductions;
mod shapes;
mod sources;
mod symbolic;
mod threads;
mod tilings;
