//! Operators on literals are evaluated, by the kernels the run time uses. One that fails is left in place: its error
//! belongs to the evaluation, and only if the value is used there. So is one on operands that are large, or stand for much: an edge or a
//! shape of a few bytes may stand for any number of groups, and an operator on it would take more memory than the model has text.
//! What is left is evaluated by a run, within its limits.

use super::rewrite::replace;
use crate::pass::Options;
use crate::{Id, TypedGraph, TypedModel};
use cembra_expr::Program;
use cembra_ops::{Registry, Resolved, Signature, call_within, id};
use cembra_runtime::{Fault, FaultKind};
use cembra_value::{Budget, Diagnostics, ScalarValue, Value};
use smallvec::SmallVec;

pub(super) fn run(model: &mut TypedModel, _: &Program, options: &Options) -> Result<(), Diagnostics> {
    if !model.graph.ids().any(|id| is_foldable(&model.graph, id)) {
        return Ok(());
    }
    replace(model, &options.budget, |graph, _, node| {
        if is_slow(graph, node) {
            options.budget.check_time()?;
        }
        Ok(fold(graph, options.registry, node))
    })
}

/// True for an operator on literals.
fn is_foldable(graph: &TypedGraph, id: Id) -> bool {
    graph.op(id).is_some() && graph.operands(id).iter().all(|o| graph.value(*o).is_some())
}

/// True for an operator on literals that may take as long as thousands of sums: the time is looked at before each.
fn is_slow(graph: &TypedGraph, node: Id) -> bool {
    let is_number = |operand: &Id| graph.qtype(*operand).scalar().is_some_and(|scalar| !scalar.is_string());
    is_foldable(graph, node) && !graph.operands(node).iter().all(is_number)
}

/// True for an operator on literals that fails. Where the time of `budget` is over, any operator may fail, because the pass ends soon.
pub(super) fn is_failing_constant(graph: &TypedGraph, registry: &Registry, budget: &Budget, node: Id) -> bool {
    if is_slow(graph, node) && budget.check_time().is_err() {
        return true;
    }
    matches!(evaluate_on(graph, registry, node, |operand| graph.value(operand)), Some(Err(_)))
}

/// The literal a node on literals evaluates to, or the node itself.
pub(super) fn fold(graph: &mut TypedGraph, registry: &Registry, node: Id) -> Id {
    match evaluate_constant(graph, registry, node, |operand| graph.value(operand)) {
        Some(value) => graph.literal(value, graph.origin(node)),
        None => node,
    }
}

/// The value of a node on operands of which the values are known; `None` if one is not, it fails, or an operand or the result is large.
pub(crate) fn evaluate_constant<'v>(
    graph: &TypedGraph,
    registry: &Registry,
    node: Id,
    value: impl Fn(Id) -> Option<&'v Value>,
) -> Option<Value> {
    evaluate_on(graph, registry, node, value)?.ok().filter(|value| memory_bytes(value) <= MOST_BYTES)
}

/// The bytes of the elements that an array of literals has, at least one for each; `None` if a node makes no such array.
pub(super) fn written_bytes(graph: &TypedGraph, node: Id) -> Option<usize> {
    let operands = graph.as_op(node, id::ARRAY_MAKE_DENSE)?;
    operands.iter().try_fold(0_usize, |sum, operand| Some(sum + memory_bytes(graph.value(*operand)?).max(1)))
}

/// The array that a node makes of literals, element by element; `None` if its elements have more than `most` bytes. A text that is written
/// once may be many elements.
pub(super) fn written_array(graph: &TypedGraph, registry: &Registry, node: Id, most: usize) -> Option<Value> {
    written_bytes(graph, node).filter(|bytes| *bytes <= most)?;
    call_node(graph, registry, node, &operands_of(graph, node, |operand| graph.value(operand))?, usize::MAX)?.ok()
}

/// The most bytes that all operands of an operator that is evaluated have and stand for, and those of its result.
const MOST_BYTES: usize = 1024;

/// The bytes that an operator that is evaluated may take beside its operands, and the units of work on strings that it may do.
const ROOM: usize = 1 << 18;

/// The memory of a string, of an array or an edge; tuples only hold those of their fields.
fn memory_bytes(value: &Value) -> usize {
    match value.as_scalar() {
        Some(ScalarValue::Text(text)) => text.len(),
        Some(ScalarValue::Bytes(bytes)) => bytes.len(),
        _ => match value {
            Value::Array(_, array) => array.memory_bytes(),
            Value::Edge(edge) => edge.memory_bytes(),
            Value::Dict(dict) => dict.memory_bytes(),
            Value::Tensor(tensor) => tensor.memory_bytes(),
            _ => 0,
        },
    }
}

/// The bytes that a value has, or would have if each element and each group that it stands for were a number.
fn meant_bytes(value: &Value) -> usize {
    let elements = match value {
        Value::Array(_, array) => array.len(),
        Value::ArrayShape(_, size) => *size,
        Value::Edge(edge) => edge.child_size().saturating_add(edge.parent_size()),
        Value::Tensor(tensor) => tensor.extents().iter().fold(1, |all: usize, extent| all.saturating_mul(*extent)),
        // Types nest only as deep as the text that spelled them.
        Value::Tuple(fields) => return fields.iter().map(meant_bytes).fold(0, usize::saturating_add),
        _ => 0,
    };
    memory_bytes(value).max(elements.saturating_mul(size_of::<i64>()))
}

/// The operands of a node; `None` if the value of one is not known.
fn operands_of<'v>(
    graph: &TypedGraph,
    node: Id,
    value: impl Fn(Id) -> Option<&'v Value>,
) -> Option<SmallVec<[Value; 4]>> {
    graph.operands(node).iter().map(|operand| value(*operand).cloned()).collect()
}

/// The result of a node on operands of which the values are known; `None` if one is not, or for an operator that may need much.
fn evaluate_on<'v>(
    graph: &TypedGraph,
    registry: &Registry,
    node: Id,
    value: impl Fn(Id) -> Option<&'v Value>,
) -> Option<Result<Value, Fault>> {
    let args = operands_of(graph, node, value)?;
    // Tuples are made and taken apart without a look at their fields.
    let is_structure = graph.op(node).is_some_and(|op| registry.structure(op).is_some());
    let bytes = if is_structure { memory_bytes } else { meant_bytes };
    if args.iter().map(bytes).fold(0, usize::saturating_add) > MOST_BYTES {
        return None;
    }
    match call_node(graph, registry, node, &args, ROOM)? {
        Err(Fault { kind: FaultKind::ArenaLimit | FaultKind::WorkLimit, .. }) => None,
        made => Some(made),
    }
}

/// Calls the operator of a node, with `room` bytes for its result and beside it.
fn call_node(
    graph: &TypedGraph,
    registry: &Registry,
    node: Id,
    args: &[Value],
    room: usize,
) -> Option<Result<Value, Fault>> {
    let (op, overload, lifted) = graph.operator(node)?;
    let operands = args.iter().map(Value::qtype).collect();
    let resolved = Resolved { signature: Signature { operands, ret: graph.qtype(node).clone() }, overload, lifted };
    call_within(registry.get(op), &resolved, args, room)
}
