//! Operators on literals are evaluated, by the kernels the run time uses. One that fails is left in place: its error
//! belongs to the evaluation, and only if the value is used there. One on long strings, or that makes one, is left too: a
//! small model could fold to one that is larger than memory.

use super::rewrite::replace;
use crate::pass::Options;
use crate::{Id, TypedGraph, TypedModel};
use cembra_expr::Program;
use cembra_ops::{Registry, Resolved, Signature, call, id};
use cembra_runtime::{Fault, Scalar};
use cembra_value::{Diagnostics, ScalarValue, Value};
use smallvec::SmallVec;

pub(super) fn run(model: &mut TypedModel, _: &Program, options: &Options) -> Result<(), Diagnostics> {
    if !model.graph.ids().any(|id| is_foldable(&model.graph, id)) {
        return Ok(());
    }
    replace(model, &options.budget, |graph, _, node| {
        // A pattern can take as long as thousands of sums: the time is looked at for each.
        if graph.op(node).is_some()
            && graph.operands(node).iter().any(|o| graph.qtype(*o).scalar() == Some(Scalar::Text))
        {
            options.budget.check_time()?;
        }
        Ok(fold(graph, options.registry, node))
    })
}

/// True for an operator on literals.
fn is_foldable(graph: &TypedGraph, id: Id) -> bool {
    graph.op(id).is_some() && graph.operands(id).iter().all(|o| graph.value(*o).is_some())
}

/// True for an operator on literals that fails.
pub(super) fn is_failing_constant(graph: &TypedGraph, registry: &Registry, node: Id) -> bool {
    matches!(evaluate_on(graph, registry, node, STRINGS, |operand| graph.value(operand)), Some(Err(_)))
}

/// The literal a node on literals evaluates to, or the node itself.
pub(super) fn fold(graph: &mut TypedGraph, registry: &Registry, node: Id) -> Id {
    match evaluate_constant(graph, registry, node, |operand| graph.value(operand)) {
        Some(value) => graph.literal(value, graph.origin(node)),
        None => node,
    }
}

/// The value of a node on operands of which the values are known; `None` if one is not, it fails, or a string is long.
pub(crate) fn evaluate_constant<'v>(
    graph: &TypedGraph,
    registry: &Registry,
    node: Id,
    value: impl Fn(Id) -> Option<&'v Value>,
) -> Option<Value> {
    evaluate_on(graph, registry, node, STRINGS, value)?.ok().filter(|value| string_bytes(value) <= STRINGS)
}

/// The array that a node makes of literals, element by element, as long as it is written.
pub(super) fn written_array(graph: &TypedGraph, registry: &Registry, node: Id) -> Option<Value> {
    let made = (graph.op(node)? == id::ARRAY_MAKE_DENSE)
        .then(|| evaluate_on(graph, registry, node, usize::MAX, |operand| graph.value(operand)))?;
    made?.ok()
}

/// The most bytes of strings an operator is evaluated on, or makes.
const STRINGS: usize = 1024;

/// The bytes of a string, of an array or an edge; tuples only hold those of their fields.
fn string_bytes(value: &Value) -> usize {
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

/// What a node evaluates to on operands of which the values are known; `None` if one is not, and for strings of more bytes.
fn evaluate_on<'v>(
    graph: &TypedGraph,
    registry: &Registry,
    node: Id,
    most: usize,
    value: impl Fn(Id) -> Option<&'v Value>,
) -> Option<Result<Value, Fault>> {
    let (op, overload, lifted) = graph.operator(node)?;
    let args: SmallVec<[Value; 4]> =
        graph.operands(node).iter().map(|operand| value(*operand).cloned()).collect::<Option<_>>()?;
    if args.iter().map(string_bytes).sum::<usize>() > most {
        return None;
    }
    let operands = args.iter().map(Value::qtype).collect();
    let resolved = Resolved { signature: Signature { operands, ret: graph.qtype(node).clone() }, overload, lifted };
    call(registry.get(op), &resolved, &args)
}
