//! A program with tensors and other values as up to three programs: values that tensors take, tensors, values that are made of tensors. Each
//! keeps the positions and places of the nodes, so errors of each are at the right place of the text.

use super::apart::Apart;
use super::lowering::{Lowering, type_of};
use super::made::Made;
use cembra_expr::{Input, Node, NodeId, Output, Program};
use cembra_ops::{Registry, id};
use cembra_runtime::{QType, Scalar};
use cembra_tensor::{TensorError, TensorErrorKind};
use cembra_value::Promise;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Which part a value of the whole program is an output of, and which.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Origin {
    Before(usize),
    Tensors(usize),
    After(usize),
}

/// The programs that one is taken apart into. A value that goes from one to the next is an output of the former and an input of the latter, of
/// the same name.
#[derive(Debug, Default)]
pub(crate) struct Parts {
    /// Values that are computed from no tensor.
    pub(crate) before: Option<Arc<Program>>,
    pub(crate) tensors: Option<Arc<Program>>,
    /// Values that are computed from tensors by operators that those do not have.
    pub(crate) after: Option<Arc<Program>>,
    /// Where the outputs come from.
    pub(crate) outputs: Vec<Origin>,
}

/// The name of a value that goes from one part to the next. No input of a text has a percent sign in its name.
fn crossing(node: NodeId) -> Arc<str> {
    format!("%{}", node.index()).into()
}

/// An input of a part that another part computes.
fn input(program: &Program, node: NodeId, qtype: QType) -> Input {
    let span = program.graph.span(node);
    Input { name: crossing(node), qtype: Some(qtype), promise: Promise::Nothing, default: None, span }
}

/// An output of a part that another part takes.
fn output(program: &Program, node: NodeId) -> Output {
    Output { name: crossing(node), node, span: program.graph.span(node) }
}

/// The program with these outputs, in which other parts compute some nodes.
fn part(program: &Program, outputs: Vec<Output>, given: &BTreeMap<NodeId, QType>) -> Option<Arc<Program>> {
    if outputs.is_empty() {
        return None;
    }
    let mut part = program.clone();
    for (node, qtype) in given {
        part.graph.put_leaf(*node, &crossing(*node));
        part.inputs.push(input(program, *node, qtype.clone()));
    }
    Some(Arc::new(program_of(&part, outputs)))
}

/// A program with these outputs, and the inputs that they need.
pub(super) fn program_of(program: &Program, outputs: Vec<Output>) -> Program {
    let mut alone = Program { outputs, ..program.clone() };
    let mut needed = alone.needed_inputs().into_iter();
    alone.inputs.retain(|_| needed.next().unwrap_or(false));
    alone
}

impl Lowering<'_> {
    /// The parts of a program that was sorted; none if all of it are tensors.
    pub(super) fn taken_apart(&self, program: &Program) -> Result<Option<Parts>, TensorError> {
        let Some(apart) = &self.apart else { return Ok(None) };
        if apart.imports.is_empty() && !program.outputs.iter().any(|output| self.is_apart(output.node)) {
            return Ok(None);
        }
        let of_tensors = |(node, (qtype, _)): (&NodeId, &(QType, _))| {
            let qtype = match qtype {
                QType::Array(_, Scalar::WeakFloat) => QType::Tensor(Scalar::Float64, 1),
                QType::Array(_, scalar) => QType::Tensor(*scalar, 1),
                QType::Scalar(Scalar::WeakFloat) => QType::FLOAT64,
                other => other.clone(),
            };
            (*node, qtype)
        };
        let imports: BTreeMap<NodeId, QType> = apart.imports.iter().map(of_tensors).collect();
        let exports = self.exports(apart, program)?;
        let mut before: Vec<Output> = imports.keys().map(|node| output(program, *node)).collect();
        // The array of a tensor is made of the tensor, which is the output.
        let of = |node: &NodeId| Output { node: self.exported(apart, *node), ..output(program, *node) };
        let mut tensors: Vec<Output> = exports.keys().map(of).collect();
        let (mut after, mut outputs) = (Vec::new(), Vec::with_capacity(program.outputs.len()));
        for own in &program.outputs {
            let (to, origin): (&mut Vec<Output>, fn(usize) -> Origin) = match self.is_apart(own.node) {
                false => (&mut tensors, Origin::Tensors),
                true if apart.depends(own.node) => (&mut after, Origin::After),
                true => (&mut before, Origin::Before),
            };
            outputs.push(origin(to.len()));
            to.push(own.clone());
        }
        Ok(Some(Parts {
            before: part(program, before, &BTreeMap::new()),
            tensors: part(program, tensors, &imports),
            after: part(program, after, &exports),
            outputs,
        }))
    }

    /// True for a value that is computed apart, and for a tuple of values none of which has axes.
    fn is_apart(&self, node: NodeId) -> bool {
        match self.made[node.index()] {
            Made::Apart => true,
            Made::Tuple(_) => !self.has_axes(node),
            _ => false,
        }
    }

    /// The tensor that a value is made of which goes to the last part.
    fn exported(&self, apart: &Apart<'_>, node: NodeId) -> NodeId {
        match (apart.arrays.contains_key(&node), self.program.operands(node)) {
            (true, &[of]) => of,
            _ => node,
        }
    }

    /// The values of tensors that outputs of the last part are computed from, with their types.
    fn exports(&self, apart: &Apart<'_>, program: &Program) -> Result<BTreeMap<NodeId, QType>, TensorError> {
        let mut exports = BTreeMap::new();
        let mut seen = vec![false; program.graph.len()];
        let roots = program.outputs.iter().map(|output| output.node);
        let mut open: Vec<NodeId> = roots.filter(|node| self.is_apart(*node) && apart.depends(*node)).collect();
        while let Some(node) = open.pop() {
            if !apart.depends(node) || std::mem::replace(&mut seen[node.index()], true) {
                continue;
            }
            if let Some(qtype) = apart.arrays.get(&node) {
                exports.insert(node, qtype.clone());
                continue;
            }
            match self.made[node.index()] {
                Made::Whole(whole) if self.graph.extents(whole.node).is_empty() => {
                    exports.insert(node, type_of(&self.graph, whole));
                }
                Made::Apart | Made::Tuple(_) => open.extend(self.program.operands(node)),
                _ => {
                    let message = "a tensor is put into something that takes other values";
                    let error = TensorError::new(TensorErrorKind::ElementType, message).at(self.span(node));
                    return Err(error.hint("`array.of_tensor(x)` is an array of the elements of a tensor of one axis"));
                }
            }
        }
        Ok(exports)
    }
}

/// True if some output of a program needs a tensor of an array.
pub(super) fn is_of_arrays(program: &Program, registry: &Registry) -> bool {
    // Few programs name the operator at all.
    let Some(of_array) = program.graph.find_name(registry.get(id::TENSOR_OF_ARRAY).name) else { return false };
    let needed = program.graph.reachable(program.outputs.iter().map(|output| output.node));
    let mut nodes = (0..needed.len()).filter(|at| needed[*at]).map(NodeId::from_index);
    nodes.any(|node| matches!(program.graph.node(node), Node::Operator(name, _) if name == of_array))
}
