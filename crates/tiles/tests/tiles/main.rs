//! Tiled tensors: golden cases, properties at random, and what hostile input comes to.

mod blocks;
mod elementwise;
mod golden;
mod products;
mod random;
mod shapes;
mod sources;
mod symbolic;
mod tilings;
