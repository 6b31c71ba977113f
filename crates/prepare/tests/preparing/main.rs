//! Passes and regions.

mod passes;
mod regions;
