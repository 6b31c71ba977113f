//! The third opinion: evaluates the typed graph itself, node by node and only what is asked for, with values in boxes.
//! It shares the operators' kernels with the interpreter but no plan, no frame and no decision on laziness, so that a
//! mistake in those shows even where both backends make it.

use crate::subject::Row;
use cembra_expr::{Program, Value};
use cembra_ops::{OpDef, Registry, Resolved, Signature, call, id};
use cembra_prepare::{Id, Kind, Options, Prepared};

/// The typed graph before anything is folded, optimised or made lazy; `None` if preparation refuses the program.
pub(crate) fn prepare(program: &Program) -> Option<Prepared> {
    let options = Options { stop_after: Some("cast".to_owned()), ..Options::default() };
    cembra_prepare::prepare(program, &|_| None, &options, &mut |_, _| {}).ok()
}

/// The outputs of a row; `None` if an operator that one of them needs faults.
pub(crate) fn evaluate(prepared: &Prepared, row: &Row) -> Option<Vec<Value>> {
    let graph = &prepared.graph;
    let mut values: Vec<Option<Value>> = vec![None; graph.len()];
    let mut stack: Vec<Id> = prepared.outputs.iter().rev().map(|(_, output)| *output).collect();
    while let Some(node) = stack.last().copied() {
        if values[node.index()].is_some() {
            stack.pop();
            continue;
        }
        let operands = graph.operands(node);
        let value = match graph.kind(node) {
            Kind::Leaf(leaf) => row.get(graph.leaf_name(leaf))?.clone(),
            Kind::Literal(_) => graph.value(node)?.clone(),
            Kind::Operator { op, .. } if op == id::WHERE => {
                let Some(condition) = &values[operands[0].index()] else {
                    stack.push(operands[0]);
                    continue;
                };
                let chosen = operands[if matches!(condition, Value::Missing(_)) { 2 } else { 1 }];
                let Some(value) = &values[chosen.index()] else {
                    stack.push(chosen);
                    continue;
                };
                value.clone()
            }
            Kind::Operator { op, overload, lifted } => {
                if let Some(unknown) = operands.iter().find(|operand| values[operand.index()].is_none()) {
                    stack.push(*unknown);
                    continue;
                }
                let args: Vec<Value> = operands.iter().filter_map(|o| values[o.index()].clone()).collect();
                let types = operands.iter().map(|operand| graph.qtype(*operand).clone()).collect();
                let signature = Signature { operands: types, ret: graph.qtype(node).clone() };
                let def: &OpDef = Registry::standard().get(op);
                call(def, &Resolved { signature, overload, lifted }, &args)?.ok()?
            }
            Kind::Where => return None,
        };
        values[node.index()] = Some(value);
    }
    prepared.outputs.iter().map(|(_, output)| values[output.index()].clone()).collect()
}
