//! Warnings that need no types: undeclared names and unused definitions, comparisons with `missing`, conditions that are tested twice. Warnings that
//! need types are in `cembra-prepare`.

mod conditions;
mod names;

pub use names::SimilarName;

use crate::{Graph, NodeId, Program};
use cembra_value::{Span, Warnings};

/// Adds warnings about a program to `found`. `is_typed` returns true for the names of inputs whose types are given outside of the program, so that
/// they are known to exist. A program that was not read from text has no warnings.
pub fn find_warnings(program: &Program, is_typed: &dyn Fn(&str) -> bool, found: &mut Warnings) {
    if program.definitions.declared_inputs().is_none() {
        return;
    }
    names::unused(program, found);
    names::similar(program, is_typed, found);
    conditions::find(program, found);
}

/// The most spans of a node that are searched, because a shared node may have very many.
const PLACES: usize = 256;

/// Returns a span of the node in the text that lies inside of the span `whole` and is smaller; `None` if the node has no such span.
#[must_use]
pub fn place_within(graph: &Graph, node: NodeId, whole: Span) -> Option<Span> {
    let is_within = |span: &Span| whole.start <= span.start && span.end <= whole.end && *span != whole;
    graph.spans(node).take(PLACES).find(is_within)
}
