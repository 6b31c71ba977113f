//! Splits a program with tensors and other values into up to three programs: values from which tensors are computed, tensors, and the rest. Nodes
//! keep their positions and spans, so errors in each part refer to the right place in the text.
//!
//! The rest consists of values that are made from tensors, such as a text of a sum, and of all values made from such values, including tensors. The
//! program of the rest is split again.
//!
//! Tiled tensors only have float elements. If a program cuts tensors into tiles, numbers that are not floats are computed by the parts before and
//! after the tensors, unless an operand of their operator is a tensor with axes.

use super::lower::{Lowering, type_of};
use super::made::NodeForm;
use super::non_tensors::NonTensorFacts;
use crate::options::signature::crossing_name;
use cembra_expr::{Input, Node, NodeId, Output, Program};
use cembra_ops::{Registry, id};
use cembra_runtime::{QType, Scalar};
use cembra_value::{Error, Value};
use rustc_hash::FxHashSet;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The part that computes an output of the whole program, and the output's index in that part.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Origin {
    Before(usize),
    Tensors(usize),
    After(usize),
}

/// The programs that a program with tensors is split into. A value that one part passes to the next part is an output of the first and an input of
/// the second, with the same name.
#[derive(Debug, Default)]
pub(crate) struct Parts {
    /// The program of the values that do not depend on tensors; `None` if no such values must be computed.
    pub(crate) before: Option<Arc<Program>>,
    pub(crate) tensors: Option<Arc<Program>>,
    /// The program of the values that are computed from tensors by operators that tensors do not have, and of all values made from such values.
    /// `None` if the program has no such values.
    pub(crate) after: Option<Arc<Program>>,
    /// For each output of the whole program, the part that computes it.
    pub(crate) outputs: Vec<Origin>,
}

/// Makes an input for a value that another part computes.
fn input(program: &Program, node: NodeId, qtype: QType) -> Input {
    let span = program.graph.span(node);
    Input { qtype: Some(qtype), ..Input::untyped(crossing_name(node), span) }
}

/// Makes an output for a value that another part takes.
fn output(program: &Program, node: NodeId) -> Output {
    Output { name: crossing_name(node), node, span: program.graph.span(node) }
}

/// Makes the part of a program with these outputs. The nodes in `given` become inputs. `None` if there are no outputs.
fn part(program: &Program, outputs: Vec<Output>, given: &BTreeMap<NodeId, QType>) -> Option<Arc<Program>> {
    if outputs.is_empty() {
        return None;
    }
    let mut part = program.clone();
    for (node, qtype) in given {
        part.graph.put_leaf(*node, &crossing_name(*node));
        part.inputs.push(input(program, *node, qtype.clone()));
    }
    Some(Arc::new(program_of(&part, outputs)))
}

/// Makes a program with the outputs `outputs` and the inputs that they need.
pub(super) fn program_of(program: &Program, outputs: Vec<Output>) -> Program {
    let mut alone = Program { outputs, ..program.clone() };
    let mut needed = alone.needed_inputs().into_iter();
    alone.inputs.retain(|_| needed.next().unwrap_or(false));
    alone
}

impl Lowering<'_> {
    /// Splits a program into parts, once it is known which nodes are tensors; `None` if all its values are tensors.
    pub(super) fn split_into_parts(&self, program: &Program) -> Result<Option<Parts>, Error> {
        let Some(non_tensors) = &self.non_tensors else { return Ok(None) };
        if non_tensors.imports.is_empty() && !program.outputs.iter().any(|output| self.is_non_tensor(output.node)) {
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
        let imports: BTreeMap<NodeId, QType> = non_tensors.imports.iter().map(of_tensors).collect();
        let (mut before, mut tensors, mut after) = (Vec::new(), Vec::new(), Vec::new());
        let mut outputs = Vec::with_capacity(program.outputs.len());
        for own in &program.outputs {
            let (to, origin): (&mut Vec<Output>, fn(usize) -> Origin) = match self.is_non_tensor(own.node) {
                false => (&mut tensors, Origin::Tensors),
                true if non_tensors.depends(own.node) => (&mut after, Origin::After),
                true => (&mut before, Origin::Before),
            };
            outputs.push(origin(to.len()));
            to.push(own.clone());
        }
        let mut exports = self.exports(non_tensors, program, true);
        if exports.is_empty() && tensors.is_empty() {
            // All tensors are in branches, so the first parts would be empty.
            exports = self.exports(non_tensors, program, false);
        }
        // An array of a tensor is made by the last part; the tensor is the output.
        let of = |node: &NodeId| Output { node: self.exported(non_tensors, *node), ..output(program, *node) };
        tensors.extend(exports.keys().map(of));
        let tensors = part(program, tensors, &imports);
        let inputs = tensors.iter().flat_map(|part| &part.inputs);
        let taken: FxHashSet<&str> = inputs.map(|input| &*input.name).collect();
        let imports = imports.keys().map(|node| output(program, *node));
        before.extend(imports.filter(|import| taken.contains(&*import.name)));
        Ok(Some(Parts {
            before: part(program, before, &BTreeMap::new()),
            after: part(program, after, &exports),
            tensors,
            outputs,
        }))
    }

    /// Returns true if a node is not computed by tensors, is a tuple of values without axes, or is a literal that tensors
    /// cannot have.
    fn is_non_tensor(&self, node: NodeId) -> bool {
        match self.made[node.index()] {
            NodeForm::NonTensor => true,
            NodeForm::Tuple(_) => !self.has_axes(node),
            NodeForm::Tensor(_) => self.is_beside_tiles(node),
            NodeForm::Nothing => match self.value(node) {
                Some(Value::Scalar(value)) => {
                    let is_element = value.scalar().is_tensor_element() && !self.is_beside_tiles(node);
                    !is_element && value.scalar() != Scalar::WeakFloat
                }
                Some(Value::Present(_) | Value::Missing(_) | Value::Dict(_) | Value::Edge(_)) => true,
                _ => false,
            },
            _ => false,
        }
    }

    /// Returns true if the program cuts tensors into tiles and the node is a number that tiles cannot have, computed from
    /// numbers alone.
    fn is_beside_tiles(&self, node: NodeId) -> bool {
        if !self.non_tensors.as_ref().is_some_and(|non_tensors| non_tensors.is_tiled) || self.has_axes(node) {
            return false;
        }
        let scalar = match (self.made[node.index()], self.value(node)) {
            (NodeForm::Tensor(whole), _) => self.graph.scalar(whole.node),
            (_, Some(Value::Scalar(value))) => value.scalar(),
            _ => return false,
        };
        let is_of_numbers = match self.program.node(node) {
            Node::Operator(name, operands) => {
                let op = self.registry.find(self.program.name(name));
                !op.is_some_and(|op| self.registry.get(op).typing.is_of_tensors())
                    && !operands.iter().any(|operand| self.has_axes(*operand))
            }
            _ => true,
        };
        is_of_numbers && !scalar.is_float()
    }

    /// The tensor that a value for the last part is made from; the node itself if it is a tensor.
    fn exported(&self, non_tensors: &NonTensorFacts<'_>, node: NodeId) -> NodeId {
        match (non_tensors.arrays.contains_key(&node), self.program.operands(node)) {
            (true, &[of]) => of,
            _ => node,
        }
    }

    /// Returns the values of the tensor part from which the last part computes outputs, each with its type.
    ///
    /// A branch of a condition that the last part decides is computed only if it is chosen. The last part computes it again
    /// from its operands if it has axes or may fail.
    fn exports(
        &self,
        non_tensors: &NonTensorFacts<'_>,
        program: &Program,
        may_leave_out: bool,
    ) -> BTreeMap<NodeId, QType> {
        let mut exports = BTreeMap::new();
        let mut seen = vec![false; program.graph.len()];
        let roots = program.outputs.iter().map(|output| output.node);
        let mut open: Vec<NodeId> =
            roots.filter(|node| self.is_non_tensor(*node) && non_tensors.depends(*node)).collect();
        let mut branches: Vec<NodeId> = Vec::new();
        let mut failing: Option<Vec<bool>> = None;
        loop {
            let is_branch = may_leave_out && open.is_empty();
            let Some(node) = open.pop().or_else(|| branches.pop()) else { return exports };
            if !non_tensors.depends(node) || std::mem::replace(&mut seen[node.index()], true) {
                continue;
            }
            let (op, operands) = match self.program.node(node) {
                Node::Operator(name, operands) => (self.registry.find(self.program.name(name)), operands),
                // An input is also an input of the last part; without axes it is a number there.
                _ if self.has_axes(node) => continue,
                _ => (None, &[][..]),
            };
            let to = if is_branch { &mut branches } else { &mut open };
            let is_beside = self.is_beside_tiles(node);
            match self.made[node.index()] {
                NodeForm::Tensor(_)
                    if is_branch
                        && !is_beside
                        && op != Some(id::TENSOR_GRAD)
                        && self.is_left_out(node, &mut failing) =>
                {
                    to.extend(operands);
                }
                NodeForm::Tensor(whole) if !is_beside => {
                    exports.insert(node, type_of(&self.graph, whole));
                }
                _ => match (non_tensors.arrays.get(&node), op, operands) {
                    (Some(qtype), ..) => {
                        exports.insert(node, qtype.clone());
                    }
                    (None, Some(id::WHERE | id::SHORT_WHERE), &[condition, chosen, other]) => {
                        to.push(condition);
                        branches.extend([chosen, other]);
                    }
                    _ => to.extend(operands),
                },
            }
        }
    }

    /// Returns true if a tensor in a branch should only be computed when needed, because it has axes or may fail.
    fn is_left_out(&self, node: NodeId, failing: &mut Option<Vec<bool>>) -> bool {
        let failing = failing.get_or_insert_with(|| {
            let mut failing = vec![false; self.program.len()];
            for at in 0..self.program.len() {
                if let Node::Operator(name, operands) = self.program.node(NodeId::from_index(at)) {
                    let op = self.registry.find(self.program.name(name));
                    failing[at] = op.is_none_or(|op| !self.registry.get(op).is_total())
                        || operands.iter().any(|operand| failing[operand.index()]);
                }
            }
            failing
        });
        self.has_axes(node) || failing[node.index()]
    }
}

/// Returns true if an output of the program needs a tensor that is made from an array.
pub(super) fn is_of_arrays(program: &Program, registry: &Registry) -> bool {
    // Few programs use the operator at all.
    let Some(of_array) = program.graph.find_name(registry.get(id::TENSOR_OF_ARRAY).name) else { return false };
    let needed = program.graph.reachable(program.outputs.iter().map(|output| output.node));
    let mut nodes = (0..needed.len()).filter(|at| needed[*at]).map(NodeId::from_index);
    nodes.any(|node| matches!(program.graph.node(node), Node::Operator(name, _) if name == of_array))
}
