//! Exports: the annotations `annotation.export` and `annotation.export_value` give names to values inside of
//! expressions. This module adds these values to a program's outputs. The annotations stay in the graph until
//! preparation removes them.

use crate::Error;
use cembra_expr::{Graph, Node, NodeId, Output, Program};
use cembra_ops::{OpId, Registry, id};
use cembra_runtime::Excerpt;
use cembra_value::{Code, Diagnostic, Diagnostics, ScalarValue, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Returns the program with its exports (named values inside of expressions) added after its outputs, in the order of the graph. If export names are
/// wrong, returns an error with at most `most_problems` problems.
pub(crate) fn with_exports(program: &Arc<Program>, most_problems: usize) -> Result<Arc<Program>, Error> {
    let graph = &program.graph;
    let name_of = |op: OpId| graph.find_name(Registry::standard().get(op).name);
    let (export, export_value) = (name_of(id::EXPORT), name_of(id::EXPORT_VALUE));
    if export.is_none() && export_value.is_none() {
        return Ok(program.clone());
    }
    let mut outputs = program.outputs.clone();
    let mut known: BTreeMap<Arc<str>, usize> = outputs.iter().map(|o| o.name.clone()).zip(0..).collect();
    let mut problems = Vec::new();
    let needed = graph.reachable(outputs.iter().map(|output| output.node));
    for at in (0..graph.len()).filter(|at| needed[*at]) {
        let node = NodeId::from_index(at);
        let Node::Operator(name, operands) = graph.node(node) else { continue };
        let exported = match operands {
            [x, tag] if Some(name) == export => (tag, *x),
            [_, tag, value] if Some(name) == export_value => (tag, *value),
            _ => continue,
        };
        // A tag that is not a text is reported when types are found.
        let Some(tag) = text(graph, *exported.0) else { continue };
        if problems.len() >= most_problems.max(1) {
            break;
        }
        match known.get(tag).map(|at| &outputs[*at]) {
            Some(other) if other.node == exported.1 => {}
            Some(other) => {
                let problem = Diagnostic::new(Code::Name, format!("two outputs are named `{}`", Excerpt::quoted(tag)));
                let problem = problem.at(graph.span(node)).hint("give one output another name");
                problems.push(match other.span {
                    Some(span) => problem.also(span, "the other output is defined here"),
                    None => problem,
                });
            }
            None => {
                known.insert(tag.clone(), outputs.len());
                outputs.push(Output { name: tag.clone(), node: exported.1, span: graph.span(node) });
            }
        }
    }
    Diagnostics::check(problems)?;
    let mut exporting = Program::clone(program);
    exporting.outputs = outputs;
    Ok(Arc::new(exporting))
}

fn text(graph: &Graph, node: NodeId) -> Option<&Arc<str>> {
    match graph.node(node) {
        Node::Literal(Value::Scalar(ScalarValue::Text(text))) => Some(text),
        _ => None,
    }
}
