//! Evaluates nodes while a program on arrays grows. The values of inputs are random. The values of operators are computed by the interpreter, one
//! operator at a time.

use super::{Grower, TOO_LARGE};
use crate::any_value;
use crate::arrays;
use crate::edit::stripped;
use crate::generator::HIDDEN;
use crate::panics::caught;
use crate::subject::{Row, Subject};
use cembra::{Backend, Model, Options};
use cembra_expr::{Graph, Input, Node, NodeId, Output, Program};
use cembra_runtime::QType;
use cembra_value::Value;
use std::sync::Arc;

impl Grower<'_> {
    /// Returns `node` if it has a value on the first row. Otherwise records it as failing and hides it, so that it does not become an operand.
    pub(super) fn tried(&mut self, node: NodeId) -> Option<NodeId> {
        if self.pool.types[node.index()] == QType::Function || !self.pool.types[node.index()].is_run_time() {
            return Some(node);
        }
        if self.value(node).is_some() {
            return Some(node);
        }
        self.pool.depths[node.index()] = HIDDEN;
        self.failing.push(node);
        None
    }

    /// Returns the value of `node` on the first row; `None` if it fails. The function recurses, but not deeply, because the depth of programs is
    /// limited.
    pub(super) fn value(&mut self, node: NodeId) -> Option<Value> {
        if let Some(known) = self.values.get(&node) {
            return known.clone();
        }
        let value = self.evaluated(node).filter(|value| arrays::sizes(value).iter().all(|size| *size <= TOO_LARGE));
        self.values.insert(node, value.clone());
        value
    }

    /// Computes the value of `node` on the first row, with the interpreter if it is an operator; `None` if it fails or is a parameter.
    pub(super) fn evaluated(&mut self, node: NodeId) -> Option<Value> {
        match self.pool.graph.node(node) {
            Node::Literal(value) => Some(value.clone()),
            Node::Leaf(name) => {
                let name = self.pool.graph.name(name).clone();
                let qtype = self.pool.types[node.index()].as_input();
                Some(self.input(&name, &qtype))
            }
            Node::Placeholder(_) => None,
            Node::Operator(name, operands) => {
                let (name, operands) = (self.pool.graph.name(name).clone(), operands.to_vec());
                let alone = operands
                    .iter()
                    .all(|operand| self.literal(*operand).is_some() || self.pool.types[operand.index()].is_run_time());
                let given: Option<Vec<Value>> =
                    if alone { operands.iter().map(|operand| self.value(*operand)).collect() } else { None };
                let (program, row) = match given {
                    Some(given) => self.alone(&name, &operands, given),
                    None => self.up_to(node),
                };
                self.run(node, program, row)
            }
        }
    }

    /// Returns a program with only the operator `name`, and a row for it. The operands `operands` are inputs of the program, which have the values
    /// `given` in the row.
    pub(super) fn alone(&self, name: &str, operands: &[NodeId], given: Vec<Value>) -> (Program, Row) {
        let (mut graph, mut inputs, mut row) = (Graph::new(), Vec::new(), Vec::new());
        let operands: Vec<NodeId> = operands
            .iter()
            .zip(given)
            .map(|(operand, value)| {
                if let Some(literal) = self.literal(*operand) {
                    return graph.literal(literal.clone(), None);
                }
                let name: Arc<str> = format!("n{}", operand.index()).into();
                if inputs.iter().all(|input: &Input| input.name != name) {
                    let qtype = Some(self.pool.types[operand.index()].clone());
                    inputs.push(Input { qtype, ..Input::untyped(name.clone(), None) });
                    row.push((name.clone(), value));
                }
                graph.leaf(&name, None)
            })
            .collect();
        let node = graph.operator(name, &operands, None);
        let outputs = vec![Output { name: "y".into(), node, span: None }];
        (Program { graph, inputs, outputs, ..Program::default() }, Row::new(row))
    }

    /// Returns a program that has `node` as its output, with all nodes that `node` needs, and the program's row.
    pub(super) fn up_to(&mut self, node: NodeId) -> (Program, Row) {
        let (inputs, outputs) = (self.inputs(), vec![Output { name: "y".into(), node, span: None }]);
        let program = Program { graph: self.pool.graph.clone(), inputs, outputs, ..Program::default() };
        (stripped(&program), Row::new(self.row.clone()))
    }

    /// Returns all inputs of the program so far, after giving each a value in the first row.
    pub(super) fn inputs(&mut self) -> Vec<Input> {
        let inputs = self.pool.inputs.clone();
        for input in &inputs {
            self.input(&input.name, &input.qtype.clone().unwrap_or(QType::FLOAT64));
        }
        inputs
    }

    /// Evaluates `program`, which has one output, on `row`; `None` if it fails. If the program is rejected or panics, `node` is recorded as a
    /// suspect.
    pub(super) fn run(&mut self, node: NodeId, program: Program, row: Row) -> Option<Value> {
        let options = Options::default().without_pass("optimise").keep_weak_outputs(true);
        let model = Model::from_program(program);
        match caught(|| Backend::Interpreter.run(&model, &options, &[row])) {
            Ok(Ok(answers)) => answers.into_iter().next()?.ok()?.pop(),
            _ => {
                self.suspects.push(node);
                None
            }
        }
    }

    /// Returns the value of the input `name` in the first row, which is drawn at the first request.
    pub(super) fn input(&mut self, name: &Arc<str>, qtype: &QType) -> Value {
        if let Some((_, value)) = self.row.iter().find(|(known, _)| known == name) {
            return value.clone();
        }
        let value = any_value::row_value(self.pool.random, qtype, self.pool.config);
        self.row.push((name.clone(), value.clone()));
        value
    }
}
