//! Constant folding: evaluates operators on literals, with the kernels that evaluations use. An operator that fails is not folded: the error must be
//! reported by the evaluation, and only if the value is used there. Operators on large operands are not folded either. Operators on edges (groupings
//! of elements) and array shapes are not folded: a few bytes may stand for any number of groups, so the result could be much larger than the text of
//! the model. Such operators are evaluated at run time, within the limits on evaluations.

use super::rewrite::replace;
use crate::pass::Options;
use crate::{Id, TypedGraph, TypedModel};
use cembra_expr::Program;
use cembra_ops::{Registry, ResolvedCall, Signature, call_within, id};
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

/// Returns true for an operator on literals.
fn is_foldable(graph: &TypedGraph, id: Id) -> bool {
    graph.op(id).is_some() && graph.operands(id).iter().all(|o| graph.value(*o).is_some())
}

/// Returns true for an operator on literals that may take as long as thousands of sums, so that the time is checked before it.
fn is_slow(graph: &TypedGraph, node: Id) -> bool {
    let is_number = |operand: &Id| graph.qtype(*operand).scalar().is_some_and(|scalar| !scalar.is_string());
    is_foldable(graph, node) && !graph.operands(node).iter().all(is_number)
}

/// Returns true if the node `node` is an operator on literals that fails when it is evaluated. If the time of `budget` is over, any operator may
/// count as failing, because the pass ends soon.
pub(super) fn is_failing_constant(graph: &TypedGraph, registry: &Registry, budget: &Budget, node: Id) -> bool {
    if is_slow(graph, node) && budget.check_time().is_err() {
        return true;
    }
    matches!(evaluate_on(graph, registry, node, |operand| graph.value(operand)), Some(Err(_)))
}

/// Returns the literal that the node `node`, an operator on literals, evaluates to; the node itself if it cannot be folded.
pub(super) fn fold(graph: &mut TypedGraph, registry: &Registry, node: Id) -> Id {
    match evaluate_constant(graph, registry, node, |operand| graph.value(operand)) {
        Some(value) => graph.literal(value, graph.origin(node)),
        None => node,
    }
}

/// Computes the value of a node from the values of its operands. `None` if an operand's value is not known, if the operator fails, or if an operand
/// or the result is too large.
pub(crate) fn evaluate_constant<'v>(
    graph: &TypedGraph,
    registry: &Registry,
    node: Id,
    value: impl Fn(Id) -> Option<&'v Value>,
) -> Option<Value> {
    evaluate_on(graph, registry, node, value)?.ok().filter(|value| memory_bytes(value) <= MOST_BYTES)
}

/// The size in bytes of the elements of the array that the node `node` makes of literals, at least one byte per element; `None` if the node does not
/// make an array of literals.
pub(super) fn written_bytes(graph: &TypedGraph, node: Id) -> Option<usize> {
    let operands = graph.as_op(node, id::ARRAY_MAKE_DENSE)?;
    operands.iter().try_fold(0_usize, |sum, operand| Some(sum + memory_bytes(graph.value(*operand)?).max(1)))
}

/// The array that the node `node` makes of literals, element by element; `None` if the array's elements have more than `most` bytes in total. The
/// limit is needed because many elements of an array may be the same text of the model.
pub(super) fn written_array(graph: &TypedGraph, registry: &Registry, node: Id, most: usize) -> Option<Value> {
    written_bytes(graph, node).filter(|bytes| *bytes <= most)?;
    call_node(graph, registry, node, &operands_of(graph, node, |operand| graph.value(operand))?, usize::MAX)?.ok()
}

/// The most bytes that all operands of a folded operator may have or stand for together, and the most bytes of its result.
const MOST_BYTES: usize = 1024;

/// The most bytes of memory that the evaluation of a folded operator may use besides its operands, and the most units of work on strings.
const ROOM: usize = 1 << 18;

/// The memory of a string, an array, an edge, a dictionary or a tensor, in bytes; 0 for other values. For tuples, the fields are not
/// counted.
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
        // The recursion is bounded: types nest only as deep as the text that spelled them.
        Value::Tuple(fields) => return fields.iter().map(meant_bytes).fold(0, usize::saturating_add),
        _ => 0,
    };
    memory_bytes(value).max(elements.saturating_mul(size_of::<i64>()))
}

/// The values of a node's operands, which `value` returns; `None` if the value of an operand is not known.
fn operands_of<'v>(
    graph: &TypedGraph,
    node: Id,
    value: impl Fn(Id) -> Option<&'v Value>,
) -> Option<SmallVec<[Value; 4]>> {
    graph.operands(node).iter().map(|operand| value(*operand).cloned()).collect()
}

/// Evaluates a node on the values of its operands, which `value` returns. `None` if the value of an operand is not known, or if the operator may need
/// much memory or work.
fn evaluate_on<'v>(
    graph: &TypedGraph,
    registry: &Registry,
    node: Id,
    value: impl Fn(Id) -> Option<&'v Value>,
) -> Option<Result<Value, Fault>> {
    let args = operands_of(graph, node, value)?;
    // Tuples are made and taken apart without reading their fields.
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

/// Calls the operator of a node, with `room` bytes for its result and other memory.
fn call_node(
    graph: &TypedGraph,
    registry: &Registry,
    node: Id,
    args: &[Value],
    room: usize,
) -> Option<Result<Value, Fault>> {
    let (op, overload, lifted) = graph.operator(node)?;
    let operands = args.iter().map(Value::qtype).collect();
    let resolved = ResolvedCall { signature: Signature { operands, ret: graph.qtype(node).clone() }, overload, lifted };
    call_within(registry.get(op), &resolved, args, room)
}
