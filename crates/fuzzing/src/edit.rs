//! Edits of programs, for damaging and shrinking them. An edit makes a copy of a program in which one node is replaced and unneeded nodes are left
//! out.

use cembra_expr::{Graph, Input, Node, NodeId, Program};
use cembra_ops::{Argument, OpId, Registry, Typing, compare_types, id};
use cembra_runtime::QType;
use cembra_value::Value;
use std::sync::Arc;

/// The replacement for a node of a program: another node, a literal, an input or an operator.
#[derive(Clone, Debug)]
pub(crate) enum Edit {
    /// The node is replaced by this earlier node.
    Node(NodeId),
    /// The node is replaced by this literal.
    Literal(Value),
    /// The node is replaced by a new input with this name and type.
    Leaf(Arc<str>, QType),
    /// The node is replaced by a parameter with this name, which belongs to no function.
    Placeholder(Arc<str>),
    /// The node is replaced by this operator, whose operands are earlier nodes.
    Operator(Arc<str>, Vec<NodeId>),
}

impl Edit {
    fn operands(&self) -> &[NodeId] {
        match self {
            Edit::Node(node) => std::slice::from_ref(node),
            Edit::Operator(_, operands) => operands,
            Edit::Literal(_) | Edit::Leaf(..) | Edit::Placeholder(_) => &[],
        }
    }
}

/// Returns a copy of `program` that has only the nodes that an output needs. All inputs stay.
pub(crate) fn stripped(program: &Program) -> Program {
    copied(program, None)
}

/// Returns a copy of `program` with the node `at` replaced as `edit` says, and without unneeded nodes.
pub(crate) fn edited(program: &Program, at: NodeId, edit: &Edit) -> Program {
    copied(program, Some((at, edit)))
}

fn copied(program: &Program, change: Option<(NodeId, &Edit)>) -> Program {
    let from = &program.graph;
    let edit_of = |node: NodeId| change.filter(|(at, _)| *at == node).map(|(_, edit)| edit);
    let operands = |node: NodeId| edit_of(node).map_or_else(|| from.operands(node), Edit::operands);
    let mut needed = vec![false; from.len()];
    for output in &program.outputs {
        needed[output.node.index()] = true;
    }
    for index in (0..from.len()).rev() {
        if needed[index] {
            for operand in operands(NodeId::from_index(index)) {
                needed[operand.index()] = true;
            }
        }
    }
    let (inputs, outputs) = (program.inputs.clone(), program.outputs.clone());
    let mut made = Program { inputs, outputs, ..Program::default() };
    let to = &mut made.graph;
    let mut copies = vec![NodeId::from_index(0); from.len()];
    for index in (0..from.len()).filter(|index| needed[*index]) {
        let node = NodeId::from_index(index);
        let renamed = |nodes: &[NodeId]| nodes.iter().map(|node| copies[node.index()]).collect::<Vec<_>>();
        copies[index] = if let Some(edit) = edit_of(node) {
            match edit {
                Edit::Node(other) => copies[other.index()],
                Edit::Literal(value) => to.literal(value.clone(), None),
                Edit::Leaf(name, _) => to.leaf(name, None),
                Edit::Placeholder(name) => to.placeholder(name, None),
                Edit::Operator(name, operands) => to.operator(name, &renamed(operands), None),
            }
        } else {
            match from.node(node) {
                Node::Leaf(name) => to.leaf(from.name(name), None),
                Node::Placeholder(name) => to.placeholder(from.name(name), None),
                Node::Literal(value) => to.literal(value.clone(), None),
                Node::Operator(name, operands) => to.operator(from.name(name), &renamed(operands), None),
            }
        };
    }
    for output in &mut made.outputs {
        output.node = copies[output.node.index()];
    }
    if let Some((_, Edit::Leaf(name, qtype))) = change {
        made.inputs.push(Input { qtype: Some(qtype.clone()), ..Input::untyped(name.clone(), None) });
    }
    made
}

/// Returns the value of the node `node` if it is a literal; `None` if the node is not a literal.
pub(crate) fn literal(graph: &Graph, node: NodeId) -> Option<&Value> {
    match graph.node(node) {
        Node::Literal(value) => Some(value),
        _ => None,
    }
}

/// Returns, by node index, the type of every node that an output needs, and `None` for a node that no output needs. The types are computed with the
/// operator registry alone. The result is `None` if the program is ill-typed.
pub(crate) fn types(program: &Program) -> Option<Vec<Option<QType>>> {
    let registry = Registry::standard();
    let graph = &program.graph;
    if takes_functions(program) || has_made_names(program) {
        return types_of_preparation(program);
    }
    let needed = graph.reachable(program.outputs.iter().map(|output| output.node));
    let mut types: Vec<Option<QType>> = vec![None; graph.len()];
    for index in (0..graph.len()).filter(|index| needed[*index]) {
        let qtype = match graph.node(NodeId::from_index(index)) {
            Node::Placeholder(_) => return None,
            Node::Literal(value) => value.qtype(),
            Node::Leaf(name) => {
                let name = graph.name(name);
                let input = program.inputs.iter().find(|input| input.name == *name)?;
                match &input.default {
                    Some(default) => QType::Scalar(default.scalar()),
                    // Operators see a dictionary input as a dictionary.
                    None => match input.qtype.as_ref()? {
                        qtype if let Some((key, value)) = qtype.as_map() => QType::Dict(key, value),
                        qtype => qtype.clone(),
                    },
                }
            }
            Node::Operator(name, operands) => {
                let mut args = Vec::with_capacity(operands.len());
                for operand in operands {
                    let qtype = types[operand.index()].as_ref()?;
                    args.push(Argument { qtype, literal: literal(graph, *operand) });
                }
                let op = registry.find(graph.name(name))?;
                match &args[..] {
                    // Types are compared while types are found.
                    [Argument { literal: Some(x), .. }, Argument { literal: Some(y), .. }]
                        if compare_types(op, x, y).is_some() =>
                    {
                        QType::MASK
                    }
                    _ => {
                        let given: Vec<&QType> = args.iter().map(|arg| arg.qtype).collect();
                        let meant = registry.get(registry.meant(op, &given));
                        // An operator that stands for an expression of structs is expanded while types are found.
                        if matches!(meant.typing, Typing::Instantiated) {
                            return types_of_preparation(program);
                        }
                        meant.resolve(&args).ok()?.signature.ret
                    }
                }
            }
        };
        types[index] = Some(qtype);
    }
    let has_type = |node: NodeId| types[node.index()].as_ref().is_some_and(QType::is_run_time);
    let typed = !program.outputs.is_empty() && program.outputs.iter().all(|output| has_type(output.node));
    typed.then_some(types)
}

/// Returns the operator and the operands of the node `node`; `None` unless it is an operator of the registry.
pub(crate) fn operator(graph: &Graph, node: NodeId) -> Option<(OpId, &[NodeId])> {
    let Node::Operator(name, operands) = graph.node(node) else { return None };
    Some((Registry::standard().find(graph.name(name))?, operands))
}

/// Returns true if the node `node` is an operator on functions or sequences.
pub(crate) fn instantiates(graph: &Graph, node: NodeId) -> bool {
    operator(graph, node).is_some_and(|(op, _)| matches!(Registry::standard().get(op).typing, Typing::Instantiated))
}

/// Returns true if an output needs an operator on functions or sequences, so that the registry alone cannot find the types.
pub(crate) fn takes_functions(program: &Program) -> bool {
    let graph = &program.graph;
    let needed = graph.reachable(program.outputs.iter().map(|output| output.node));
    (0..graph.len()).filter(|at| needed[*at]).any(|at| instantiates(graph, NodeId::from_index(at)))
}

/// Returns true if the field names of a tuple are computed from literals, which only preparation evaluates.
fn has_made_names(program: &Program) -> bool {
    let graph = &program.graph;
    let is_literal = |operand: &NodeId| literal(graph, *operand).is_some();
    (0..graph.len())
        .filter_map(|at| operator(graph, NodeId::from_index(at)))
        .any(|(op, operands)| op == id::MAKE_NAMED && operands.first().is_some_and(|names| !is_literal(names)))
}

/// Returns the types that preparation finds. The types inside of a function may be those of one of its calls.
fn types_of_preparation(program: &Program) -> Option<Vec<Option<QType>>> {
    let options = cembra_prepare::Options { stop_after: Some("types".to_owned()), ..Default::default() };
    let prepared = cembra_prepare::prepare(program, &|_| None, &options, &mut |_, _| {}).ok()?;
    let graph = &prepared.model().graph;
    let mut types = vec![None; program.graph.len()];
    for id in graph.ids() {
        types[graph.origin(id).index()] = Some(graph.qtype(id).clone());
    }
    Some(types)
}
