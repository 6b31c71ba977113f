//! Finds the spans of function bodies in a program's text. The nodes that a call of a function makes have spans in the function's body, so a warning
//! about one call would seem to be about the function. Code that finds warnings uses this module to test whether a span is in a body.

use crate::infix::LAMBDA;
use crate::{Defines, Node, NodeId, Program};
use cembra_value::Span;
use rustc_hash::FxHashMap;

/// The index that stands for no function.
const NONE: u32 = u32::MAX;

/// The spans of the bodies of a program's functions, named and anonymous. They tell whether a warning about a node would point into a body.
pub struct FunctionBodies<'p> {
    program: &'p Program,
    /// The spans of the named functions, in the order of the text, without overlap.
    named: Vec<Span>,
    /// The spans of all functions, in the order of the text, without overlap.
    covered: Vec<Span>,
    /// For each node, the index of a named function whose parameters the node depends on; `NONE` if there is no such function. Empty if there are no
    /// named functions.
    made_of: Vec<u32>,
}

impl<'p> FunctionBodies<'p> {
    /// Finds the bodies of all functions in the text of `program`.
    #[must_use]
    pub fn of(program: &'p Program) -> Self {
        let graph = &program.graph;
        let functions = program.definitions.iter().filter(|(_, one)| one.defines == Defines::Function);
        let (names, named): (Vec<&str>, Vec<Span>) = functions.map(|(name, one)| (name, one.whole)).unzip();
        let lambda = graph.find_name(LAMBDA);
        let is_lambda = |node: &NodeId| matches!(graph.node(*node), Node::Operator(name, _) if Some(name) == lambda);
        let ids = || (0..graph.len()).map(NodeId::from_index);
        let mut all = named.clone();
        if lambda.is_some() {
            all.extend(ids().filter(is_lambda).flat_map(|node| graph.spans(node)));
        }
        all.sort_unstable();
        let mut covered: Vec<Span> = Vec::new();
        for span in all {
            match covered.last_mut() {
                Some(last) if span.start < last.end => last.end = last.end.max(span.end),
                _ => covered.push(span),
            }
        }
        let mut made_of = Vec::new();
        if !named.is_empty() {
            let numbers: FxHashMap<&str, u32> = names.into_iter().zip(0..).collect();
            made_of.resize(graph.len(), NONE);
            for node in ids() {
                made_of[node.index()] = match graph.node(node) {
                    // The parameter `x` of the function `f` is called `f.x` in the graph.
                    Node::Placeholder(name) => {
                        let function = graph.name(name).split_once('.').map(|(function, _)| function);
                        function.and_then(|function| numbers.get(function)).copied().unwrap_or(NONE)
                    }
                    _ => {
                        let operands = graph.operands(node).iter().map(|operand| made_of[operand.index()]);
                        operands.min().unwrap_or(NONE)
                    }
                };
            }
        }
        FunctionBodies { program, named, covered, made_of }
    }

    /// Returns true if the span `place` begins inside of a function's body.
    #[must_use]
    pub fn cover(&self, place: Span) -> bool {
        at(&self.covered, place).is_some()
    }

    /// Returns true if `node` certainly has the operands that the text at its span shows. This is so if the span is outside of all named functions,
    /// or if the node is in a function's own body and not in a copy that a call made.
    #[must_use]
    pub fn is_as_written(&self, node: NodeId) -> bool {
        let place = self.program.graph.span(node);
        place.and_then(|place| at(&self.named, place)).is_none_or(|function| self.made_of[node.index()] == function)
    }
}

/// Returns the index of the span in `spans` that contains `place`; `None` if no span contains it. `spans` must be sorted and must not overlap.
fn at(spans: &[Span], place: Span) -> Option<u32> {
    let behind = spans.partition_point(|span| span.start <= place.start);
    let last = behind.checked_sub(1)?;
    (place.start < spans[last].end).then_some(last as u32)
}
