//! What can be told of a program without types: names that nobody declares and definitions that nobody uses, comparisons with
//! `missing`, conditions that are tested twice. What takes types is found in `cembra-prepare`.

mod conditions;
mod names;

pub use names::SimilarName;

use crate::{Graph, NodeId, Program};
use cembra_value::{Span, Warnings};

/// Adds what a program says and probably should not. `is_typed` tells which inputs have types that the program does not give:
/// somebody knows those. Of a program that was not read from text nothing is told.
pub fn find_warnings(program: &Program, is_typed: &dyn Fn(&str) -> bool, found: &mut Warnings) {
    if program.definitions.declared_inputs().is_none() {
        return;
    }
    names::unused(program, found);
    names::similar(program, is_typed, found);
    conditions::find(program, found);
}

/// How many places of a node are looked at: shared nodes may have very many.
const PLACES: usize = 256;

/// Where a node is written within a place.
#[must_use]
pub fn place_within(graph: &Graph, node: NodeId, whole: Span) -> Option<Span> {
    let is_within = |span: &Span| whole.start <= span.start && span.end <= whole.end && *span != whole;
    graph.spans(node).take(PLACES).find(is_within)
}
