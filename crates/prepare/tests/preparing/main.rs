//! Tests of the passes of preparation and of the regions that they assign to nodes.

mod passes;
mod regions;
