//! Warnings about comparisons and conditions with a known result: comparisons with `missing` and `nan`, and a condition that an earlier or
//! enclosing condition has already tested.

use super::place_within;
use crate::bodies::FunctionBodies;
use crate::infix::{Fixity, Operation, WHERE};
use crate::text::is_plain_name;
use crate::{Graph, NameId, Node, NodeId, Program};
use cembra_value::{Code, Diagnostic, ScalarValue, Span, Value, Warnings};
use rustc_hash::FxHashMap;

/// Adds warnings for comparisons with `missing` or `nan`, and for repeated conditions.
pub(super) fn find(program: &Program, found: &mut Warnings) {
    let bodies = FunctionBodies::of(program);
    comparisons(&program.graph, &bodies, found);
    repeated(&program.graph, &bodies, found);
}

/// A value that equals nothing, not even itself.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NeverEqual {
    Missing,
    Nan,
}

fn unequal(graph: &Graph, node: NodeId) -> Option<NeverEqual> {
    let Node::Literal(value) = graph.node(node) else { return None };
    match value {
        Value::Missing(_) | Value::Nothing => Some(NeverEqual::Missing),
        Value::Scalar(scalar) | Value::Present(scalar) => match scalar {
            ScalarValue::Float32(x) if x.is_nan() => Some(NeverEqual::Nan),
            ScalarValue::Float64(x) | ScalarValue::WeakFloat(x) if x.is_nan() => Some(NeverEqual::Nan),
            _ => None,
        },
        _ => None,
    }
}

/// Returns the names in a graph of the comparisons that have a token.
fn comparison_names(graph: &Graph) -> Vec<(NameId, Operation)> {
    let single = Operation::ALL.iter().filter(|operation| operation.fixity() == Fixity::Single);
    single.filter_map(|operation| Some((graph.find_name(operation.name())?, *operation))).collect()
}

/// Finds comparisons with `missing` and `nan`. Inside of a function they count only if the value is written there, because a call may pass such a
/// value as an argument.
fn comparisons(graph: &Graph, bodies: &FunctionBodies<'_>, found: &mut Warnings) {
    let names = comparison_names(graph);
    if names.is_empty() {
        return;
    }
    let ids = || (0..graph.len()).map(NodeId::from_index);
    let mut written: Vec<u32> = ids()
        .filter(|node| unequal(graph, *node).is_some())
        .flat_map(|node| graph.spans(node))
        .map(|span| span.start)
        .collect();
    written.sort_unstable();
    let is_written_in = |whole: Span| {
        let first = written.partition_point(|start| *start < whole.start);
        written.get(first).is_some_and(|start| *start < whole.end)
    };
    for node in ids() {
        let Node::Operator(name, [left, right]) = graph.node(node) else { continue };
        let Some((_, operation)) = names.iter().find(|(known, _)| *known == name) else { continue };
        let values = [unequal(graph, *left), unequal(graph, *right)];
        let Some(value) = values.into_iter().flatten().next() else { continue };
        let place = graph.span(node);
        if place.is_some_and(|place| bodies.cover(place) && !is_written_in(place)) {
            continue;
        }
        let other = if values[0].is_some() { *right } else { *left };
        let other = match graph.node(other) {
            Node::Leaf(name) if is_plain_name(graph.name(name)) => graph.name(name),
            _ => "x",
        };
        match value {
            NeverEqual::Missing => found.add(Code::MissingComparison, place, || {
                let message = format!("`{}` with `missing` is never true", operation.text());
                let warning = Diagnostic::new(Code::MissingComparison, message);
                match operation {
                    Operation::Equal => warning.hint(format!("write `not has({other})` to ask if a value is missing")),
                    Operation::NotEqual => warning.hint(format!("write `has({other})` to ask if there is a value")),
                    _ => warning,
                }
            }),
            NeverEqual::Nan => found.add(Code::ConstantComparison, place, || {
                let holds = if *operation == Operation::NotEqual { "always" } else { "never" };
                let message = format!("`{}` with `nan` is {holds} true", operation.text());
                Diagnostic::new(Code::ConstantComparison, message).hint(format!("write `is_nan({other})`"))
            }),
        }
    }
}

/// Finds conditions in a chain of `else if` that were tested earlier in the chain.
fn repeated(graph: &Graph, bodies: &FunctionBodies<'_>, found: &mut Warnings) {
    let Some(name) = graph.find_name(WHERE) else { return };
    let parts = |node: NodeId| match graph.node(node) {
        Node::Operator(found, &[condition, _, other]) if found == name => Some((condition, other)),
        _ => None,
    };
    let is_inside = |inner: Option<Span>, outer: Option<Span>| match (inner, outer) {
        (Some(inner), Some(outer)) => outer.start <= inner.start && inner.end <= outer.end,
        (inner, outer) => inner == outer,
    };
    // A conditional inside of another chain begins no chain of its own, and a chain ends at one that was walked before.
    let mut is_walked = vec![false; graph.len()];
    let mut goes_on = vec![false; graph.len()];
    let ids = || (0..graph.len()).rev().map(NodeId::from_index);
    for (node, (_, other)) in ids().filter_map(|node| Some((node, parts(node)?))) {
        goes_on[other.index()] |= is_inside(graph.span(other), graph.span(node));
    }
    let mut tested: FxHashMap<NodeId, Option<Span>> = FxHashMap::default();
    for head in ids().filter(|node| !goes_on[node.index()]) {
        tested.clear();
        let (mut node, mut whole) = (head, graph.span(head));
        while let Some((condition, other)) = parts(node)
            && is_inside(graph.span(node), whole)
            && !std::mem::replace(&mut is_walked[node.index()], true)
        {
            whole = graph.span(node);
            let place = whole.and_then(|whole| place_within(graph, condition, whole)).or(whole);
            match tested.get(&condition) {
                Some(first) if bodies.is_as_written(node) => found.add(Code::UnreachableBranch, place, || {
                    let message = "this condition was tested before, so its branch is never taken";
                    let warning = Diagnostic::new(Code::UnreachableBranch, message);
                    match first.filter(|first| Some(*first) != place) {
                        Some(first) => warning.also(first, "tested here first"),
                        None => warning,
                    }
                }),
                Some(_) => {}
                None => {
                    tested.insert(condition, place);
                }
            }
            node = other;
        }
    }
}
