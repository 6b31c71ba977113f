//! Preparation turns an untyped expression and the types of its leaves (inputs) into a typed graph of kernel operators, literals and leaves. In the
//! graph every implicit cast is explicit, and each `where` is either lazy (only the chosen branch is evaluated) or not.
//!
//! The passes are named entries of one ordered list. A pass can be left out or made the last, and its result can be
//! printed.

mod extension;
mod graph;
mod pass;
mod prepared;
mod region;
mod type_table;
mod warnings;

pub use extension::{Extension, Rewriter};
pub use graph::{Body, Id, Kind, LoopId, TypedGraph};
pub use pass::{
    Mode, OnDemandLeaves, OnDemandValue, Options, PASSES, Pass, Rewrite, ask_for, is_askable, node_types, place,
    prepare, prepare_graph, prepare_part, prepare_typed, rewrites,
};
pub use prepared::{Prepared, RegionModel, Regions, TypedModel};
pub use region::{RegionId, RegionTree};
pub use warnings::{find_tensor_warnings, find_warnings};
