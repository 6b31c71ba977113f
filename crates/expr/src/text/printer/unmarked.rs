//! Removes conversion marks from a program before it is printed. A mark is an operator (`core._wide` or `core._beside`)
//! that converts an integer operand to f64 by the number rule. A text has no marks, because the parser adds them again.

use crate::infix::{BESIDE, WIDE};
use crate::text::numbers::{Marker, NodeKinds};
use crate::{Definitions, Graph, NameId, Node, NodeId, Program, Vocabulary};
use cembra_value::Value;

/// Returns `program` without its conversion marks, if reading its text without a `numbers` line adds exactly these marks again; `None` otherwise.
pub(super) fn unmarked(program: &Program, vocabulary: &dyn Vocabulary) -> Option<Program> {
    let roots = || program.outputs.iter().map(|output| output.node);
    let needed = program.graph.reachable(roots());
    let mut marker = GraphMarker { graph: program.graph.clone(), vocabulary, known: NodeKinds::default() };
    for input in &program.inputs {
        let leaf = marker.graph.leaf(&input.name, None);
        if let Some(qtype) = &input.qtype {
            marker.known.declare(&marker.graph, vocabulary, leaf, qtype);
        }
    }
    let marks = [WIDE, BESIDE].map(|mark| marker.graph.find_name(mark));
    let is_mark = |name: NameId| marks.contains(&Some(name));
    // For each node, the node without its marks.
    let mut bare: Vec<NodeId> = (0..needed.len()).map(NodeId::from_index).collect();
    let mut copies: Vec<NodeId> = Vec::with_capacity(needed.len());
    let mut made = Graph::new();
    for (at, is_needed) in needed.iter().enumerate() {
        let id = NodeId::from_index(at);
        let copy = match program.graph.node(id) {
            _ if !is_needed => made.literal(Value::Nothing, None),
            Node::Leaf(name) => made.leaf(program.graph.name(name), None),
            Node::Placeholder(name) => made.placeholder(program.graph.name(name), None),
            Node::Literal(value) => made.literal(value.clone(), None),
            Node::Operator(name, operands) if is_mark(name) => {
                bare[at] = bare[operands.first()?.index()];
                copies[bare[at].index()]
            }
            Node::Operator(name, operands) => {
                let below: Vec<NodeId> = operands.iter().map(|operand| bare[operand.index()]).collect();
                let Ok(marked) = marker.marked_operands(name, &below);
                if marked.as_deref().unwrap_or(&below) != operands {
                    return None;
                }
                let below: Vec<NodeId> = below.iter().map(|operand| copies[operand.index()]).collect();
                made.operator(program.graph.name(name), &below, None)
            }
        };
        copies.push(copy);
    }
    let mut outputs = program.outputs.clone();
    for output in &mut outputs {
        let at = output.node.index();
        if bare.get(at).copied() != Some(output.node) {
            return None;
        }
        output.node = copies[at];
    }
    Some(Program {
        graph: made,
        inputs: program.inputs.clone(),
        externs: program.externs.clone(),
        tiles: program.tiles.clone(),
        outputs,
        tests: program.tests.clone(),
        definitions: Definitions::default(),
    })
}

/// A graph to which the number rule's marks are added again.
struct GraphMarker<'v> {
    graph: Graph,
    vocabulary: &'v dyn Vocabulary,
    known: NodeKinds,
}

impl Marker for GraphMarker<'_> {
    type Stop = std::convert::Infallible;

    fn known(&mut self) -> (&Graph, &dyn Vocabulary, &mut NodeKinds) {
        (&self.graph, self.vocabulary, &mut self.known)
    }

    fn wide_literal(&mut self, value: f64, _: NodeId) -> Result<NodeId, Self::Stop> {
        Ok(self.graph.literal(Value::from(value), None))
    }

    fn mark(&mut self, mark: &str, operands: &[NodeId]) -> Result<NodeId, Self::Stop> {
        Ok(self.graph.operator(mark, operands, None))
    }
}
