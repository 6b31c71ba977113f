//! Warnings about a typed model that probably does not compute what its author meant: digits that are lost, comparisons that always or never hold,
//! branches that are never chosen. Warnings that need no types are found in `cembra-expr`.
//!
//! The graph has no rewrites except expansions, so a node is what the user wrote if it has the same operator as its
//! origin. A function is typed for each of its calls, so warnings about a function are limited to nodes that do not
//! depend on its arguments.

mod tensors;

use crate::pass::evaluate_constant;
use crate::{Id, Kind, Options, TypedGraph, TypedModel};
use cembra_expr::{FunctionBodies, Graph, Node, NodeId, Program, place_within};
use cembra_ops::{OpId, OverArrays, Registry, Typing, id};
use cembra_runtime::{QType, Scalar};
use cembra_value::{Code, Diagnostic, Diagnostics, ScalarValue, Span, Value, Warnings};
use smallvec::SmallVec;

pub use tensors::find_tensor_warnings;

/// Adds warnings about the model to `found`. The model must be the result of the pass `expand`.
///
/// # Errors
/// If the time limit is exceeded.
pub fn find_warnings(
    model: &TypedModel,
    program: &Program,
    options: &Options,
    found: &mut Warnings,
) -> Result<(), Diagnostics> {
    let needed = model.needed();
    let values = constants(model, &needed, options)?;
    let bodies = FunctionBodies::of(program);
    let registry = options.registry;
    for id in model.graph.ids().filter(|id| needed[id.index()]) {
        options.budget.check_visit(id.index())?;
        let origin = model.graph.origin(id);
        let Node::Operator(name, operands) = program.graph.node(origin) else { continue };
        let Some(op) = registry.find(program.graph.name(name)) else { continue };
        let op = chosen(&model.graph, id, op, registry);
        let place = program.graph.span(origin);
        let written = WrittenOperator { graph: &program.graph, registry, op, operands, place };
        digits(&model.graph, id, &values, &written, found);
        if place.is_none_or(|place| !bodies.cover(place)) {
            comparison(&model.graph, id, &values, &written, found);
            branch(&model.graph, id, &values, &written, found);
        }
    }
    Ok(())
}

/// The operator that the named operator `op` stands for on the operands of the node `id`.
fn chosen(graph: &TypedGraph, id: Id, op: OpId, registry: &Registry) -> OpId {
    let types = graph.operands(id).iter().map(|operand| graph.qtype(*operand));
    if !registry.get(op).is_replaceable(types.clone()) {
        return op;
    }
    registry.meant(op, &types.collect::<SmallVec<[&QType; 4]>>())
}

/// An operator as the program names it, with its operands and its place in the text.
struct WrittenOperator<'p> {
    graph: &'p Graph,
    registry: &'p Registry,
    op: OpId,
    operands: &'p [NodeId],
    place: Option<Span>,
}

impl WrittenOperator<'_> {
    /// The place of an operand in the text; `None` if the operand is not written inside of this operator.
    fn place_of(&self, operand: NodeId) -> Option<Span> {
        place_within(self.graph, operand, self.place?)
    }

    /// The value of an operand that is a literal; `None` for other operands.
    fn literal(&self, operand: NodeId) -> Option<&Value> {
        match self.graph.node(operand) {
            Node::Literal(value) => Some(value),
            _ => None,
        }
    }

    /// The operator of an operand, as the program names it, without marks for conversions; `None` if the operand is not an operator.
    fn operator(&self, operand: NodeId) -> Option<OpId> {
        let mut operand = operand;
        loop {
            let Node::Operator(name, below) = self.graph.node(operand) else { return None };
            match (self.registry.find(self.graph.name(name))?, below) {
                (id::WIDE | id::BESIDE, [of, ..]) => operand = *of,
                (op, _) => return Some(op),
            }
        }
    }

    /// Adds to a warning the place of an operand, with the label `text`. Returns the warning unchanged if the operand
    /// has no place.
    fn also(&self, warning: Diagnostic, operand: Option<&NodeId>, text: &str) -> Diagnostic {
        match operand.and_then(|operand| self.place_of(*operand)) {
            Some(place) => warning.also(place, text),
            None => warning,
        }
    }
}

/// The values of the nodes that depend on no input, as far as they can be computed.
fn constants(model: &TypedModel, needed: &[bool], options: &Options) -> Result<Vec<Option<Value>>, Diagnostics> {
    let graph = &model.graph;
    let mut values: Vec<Option<Value>> = Vec::with_capacity(graph.len());
    for id in graph.ids() {
        let value = match graph.value(id) {
            _ if !needed[id.index()] => None,
            Some(value) => Some(value.clone()),
            None if graph.operands(id).iter().all(|operand| values[operand.index()].is_some()) => {
                // A regular expression can take as long as thousands of sums.
                options.budget.check_time()?;
                evaluate_constant(graph, options.registry, id, |operand| values[operand.index()].as_ref())
            }
            None => None,
        };
        values.push(value);
    }
    Ok(values)
}

/// Returns true for operators by which the user asks for a conversion to 32-bit floats.
fn asks_for_floats(op: OpId) -> bool {
    matches!(op, id::TO_FLOAT32 | id::CAST | id::CAST_VALUES | id::FLOAT | id::DECLARED | id::DECLARED_OPERAND)
}

/// Warns about integers that become 32-bit floats because of the other operands, and do not fit: integers of 64 bits, known integers,
/// and integers that are compared.
fn digits(graph: &TypedGraph, id: Id, values: &[Option<Value>], written: &WrittenOperator<'_>, found: &mut Warnings) {
    if asks_for_floats(written.op) {
        return;
    }
    if let Some(at) = rounded_elements(graph, id, written.registry) {
        found.add(Code::LostDigits, written.place, || lost(written.operands.get(at), written));
    }
    if let Some(at) = compared_elements(graph, id, values, written) {
        found.add(Code::LostDigits, written.place, || compared(written.operands.get(at), written));
    }
    for (at, operand) in graph.operands(id).iter().enumerate() {
        // An expansion may have other operands than the operator that it replaces.
        let is_alike = written.operands.len() == graph.operands(id).len();
        let wrote = written.operands.get(at).filter(|_| is_alike);
        if let Some(cast) = graph.as_op(*operand, id::TO_FLOAT32) {
            let is_asked_for = |wrote: &NodeId| written.operator(*wrote).is_some_and(asks_for_floats);
            let is_written = wrote.map_or_else(|| written.operands.iter().any(is_asked_for), is_asked_for);
            let known = values[cast[0].index()].as_ref().and_then(Value::as_scalar).and_then(as_integer);
            match graph.qtype(cast[0]).of_each().scalar() {
                _ if is_written => {}
                Some(Scalar::Int64) => found.add(Code::LostDigits, written.place, || lost(wrote, written)),
                Some(Scalar::Int32) => match known {
                    Some(integer) => rounded(integer, integer as f32, wrote, written, found),
                    None if compares(graph, id, at, values, written) => {
                        found.add(Code::LostDigits, written.place, || compared(wrote, written));
                    }
                    None => {}
                },
                _ => {}
            }
        } else if graph.op(id) == Some(written.op)
            && let (Some(wrote), Some(value)) = (wrote, graph.value(*operand))
            && let Some(integer) = written.literal(*wrote).and_then(Value::as_scalar)
            && let (Some(integer), Some(ScalarValue::Float32(float))) = (as_integer(integer), value.as_scalar())
        {
            rounded(integer, *float, Some(wrote), written, found);
        }
    }
}

/// The warning about an i64 that becomes an f32.
fn lost(wrote: Option<&NodeId>, written: &WrittenOperator<'_>) -> Diagnostic {
    let message = "an i64 becomes an f32 here, which keeps 7 of its up to 19 digits";
    let leaf = wrote.and_then(|wrote| match written.graph.node(*wrote) {
        Node::Leaf(name) => Some(&**written.graph.name(name)),
        _ => None,
    });
    let hint = format!("write `to_float64({})` to compute in f64", leaf.unwrap_or("x"));
    written.also(Diagnostic::new(Code::LostDigits, message), wrote, "this is an i64").hint(hint)
}

/// Warns about a known integer, if the float that it becomes has another value.
fn rounded(integer: i64, float: f32, wrote: Option<&NodeId>, written: &WrittenOperator<'_>, found: &mut Warnings) {
    if f64::from(float) as i128 == i128::from(integer) {
        return;
    }
    found.add(Code::LostDigits, written.place, || {
        let message = format!("{integer} becomes {float} here, the nearest f32");
        let warning = Diagnostic::new(Code::LostDigits, message).hint("write `to_float64(x)` to compute in f64");
        written.also(warning, wrote, "this is an integer")
    });
}

/// Returns true if an i32 is compared as an f32 with a value that may be so large that an f32 does not distinguish integers near it.
fn compares(graph: &TypedGraph, id: Id, at: usize, values: &[Option<Value>], written: &WrittenOperator<'_>) -> bool {
    let is_small = |operand: &Id| values[operand.index()].as_ref().is_some_and(is_small);
    let others = graph.operands(id).iter().enumerate().filter(|(other, _)| *other != at);
    graph.op(id) == Some(written.op) && is_comparison(written.op) && !others.map(|(_, other)| other).any(is_small)
}

/// Returns true for a float below the integers that an f32 does not distinguish, or an infinity. Up to that limit every integer is an
/// f32, and a larger integer stays larger.
fn is_small(value: &Value) -> bool {
    const LARGEST: f32 = 16_777_216.0;
    match value.as_scalar() {
        Some(ScalarValue::Float32(value)) => value.abs() < LARGEST || value.is_infinite(),
        Some(ScalarValue::WeakFloat(value)) => value.abs() < f64::from(LARGEST) || value.is_infinite(),
        _ => false,
    }
}

/// The warning about an i32 that is compared with a float.
fn compared(wrote: Option<&NodeId>, written: &WrittenOperator<'_>) -> Diagnostic {
    let message = "an i32 is compared as an f32 here, which does not tell integers beyond 16777216 apart";
    let warning = Diagnostic::new(Code::LostDigits, message).hint("write `to_float64(x)` to compare as f64");
    written.also(warning, wrote, "this is an i32")
}

/// The index of the operand that is an i32, alone or in an array, and that is compared as an f32, element by element, with a value that may be so
/// large that an f32 does not distinguish integers near it. `None` if there is no such operand. The operand is found by types, because casts of
/// elements are not explicit yet.
fn compared_elements(
    graph: &TypedGraph,
    id: Id,
    values: &[Option<Value>],
    written: &WrittenOperator<'_>,
) -> Option<usize> {
    if !graph.is_elementwise(written.registry, id) {
        return None;
    }
    let of = |operand: &Id| graph.qtype(*operand).of_each().scalar();
    let operands = graph.operands(id);
    let is_single = operands.iter().any(|operand| matches!(of(operand), Some(Scalar::Float32 | Scalar::WeakFloat)));
    let at = operands.iter().position(|operand| of(operand) == Some(Scalar::Int32)).filter(|_| is_single)?;
    compares(graph, id, at, values, written).then_some(at)
}

/// The index of the operand that is an array of i64 and that the operator converts to f32, element by element or as a whole. `None` if there is no
/// such operand. The operand is found by types, because casts of elements are not explicit yet.
fn rounded_elements(graph: &TypedGraph, id: Id, registry: &Registry) -> Option<usize> {
    let Kind::Operator { op, .. } = graph.kind(id) else { return None };
    if matches!(registry.get(op).over_arrays, OverArrays::Kernel(_)) {
        // An operator that picks elements by index has floats among its operands.
        let of = |operand: &Id| graph.qtype(*operand).of_each().scalar();
        let is_float =
            |operand: &Id| matches!(of(operand), Some(Scalar::Float32 | Scalar::Float64 | Scalar::WeakFloat));
        let operands = graph.operands(id);
        let is_rounded = graph.qtype(id).of_each().scalar() == Some(Scalar::Float32)
            && !asks_for_floats(op)
            && !operands.iter().any(is_float);
        let is_long =
            |operand: &Id| matches!(graph.qtype(*operand), QType::Array(..)) && of(operand) == Some(Scalar::Int64);
        return operands.iter().position(is_long).filter(|_| is_rounded);
    }
    if !matches!(registry.get(op).typing, Typing::Promote(_)) || !graph.is_elementwise(registry, id) {
        return None;
    }
    let scalars = || graph.operands(id).iter().map(|operand| graph.qtype(*operand).of_each().scalar());
    let has = |wanted: &[Scalar]| scalars().flatten().any(|scalar| wanted.contains(&scalar));
    let becomes_float = graph.qtype(id).of_each().scalar() == Some(Scalar::Float32)
        || has(&[Scalar::Float32, Scalar::WeakFloat]) && !has(&[Scalar::Float64]);
    scalars().position(|scalar| scalar == Some(Scalar::Int64)).filter(|_| becomes_float)
}

fn as_integer(value: &ScalarValue) -> Option<i64> {
    match value {
        ScalarValue::Int32(value) => Some(i64::from(*value)),
        ScalarValue::Int64(value) => Some(*value),
        _ => None,
    }
}

/// True if a mask is known to be present, false if it is known to be missing; `None` if neither is known.
fn holds(values: &[Option<Value>], id: Id) -> Option<bool> {
    match values[id.index()].as_ref()? {
        Value::Scalar(ScalarValue::Unit) | Value::Present(ScalarValue::Unit) => Some(true),
        Value::Missing(Scalar::Unit) => Some(false),
        _ => None,
    }
}

/// Returns true for comparisons that are written with a symbol.
fn is_comparison(op: OpId) -> bool {
    matches!(op, id::EQUAL | id::NOT_EQUAL | id::LESS | id::LESS_EQUAL | id::GREATER | id::GREATER_EQUAL)
}

/// Returns true if all operands of a comparison are literals that are written in it. Such a comparison is taken as intended.
fn compares_literals(written: &WrittenOperator<'_>) -> bool {
    let is_literal = |operand: &NodeId| written.literal(*operand).is_some();
    let is_here = |operand: &NodeId| written.place.is_none() || written.place_of(*operand).is_some();
    written.operands.iter().all(|operand| is_literal(operand) && is_here(operand))
}

/// Warns about comparisons of values that depend on no input, and of a value with itself.
fn comparison(
    graph: &TypedGraph,
    id: Id,
    values: &[Option<Value>],
    written: &WrittenOperator<'_>,
    found: &mut Warnings,
) {
    if graph.op(id) != Some(written.op) || !is_comparison(written.op) || compares_literals(written) {
        return;
    }
    let is_missing = |operand: &NodeId| matches!(written.literal(*operand), Some(Value::Missing(_) | Value::Nothing));
    if written.operands.iter().any(is_missing) {
        // Another warning, which needs no types, covers this.
        return;
    }
    let holds = match holds(values, id) {
        Some(holds) => Some((holds, "it depends on no input")),
        None => of_itself(graph, id, written).map(|holds| (holds, "both sides are the same")),
    };
    if let Some((holds, why)) = holds {
        found.add(Code::ConstantComparison, written.place, || {
            let often = if holds { "always" } else { "never" };
            Diagnostic::new(Code::ConstantComparison, format!("this comparison {often} holds: {why}"))
        });
    }
}

/// The result of the comparison of a value with itself; `None` if the operands differ, or if the result is not certain. NaN is not equal to itself,
/// and no comparison of a missing value holds.
fn of_itself(graph: &TypedGraph, id: Id, written: &WrittenOperator<'_>) -> Option<bool> {
    let ([x, y], [left, right]) = (graph.operands(id), written.operands) else { return None };
    if x != y || left != right {
        return None;
    }
    let qtype = graph.qtype(*x);
    let is_float = matches!(qtype.of_each().scalar()?, Scalar::Float32 | Scalar::Float64 | Scalar::WeakFloat);
    match written.op {
        id::LESS | id::GREATER => Some(false),
        id::NOT_EQUAL if !is_float => Some(false),
        id::EQUAL | id::LESS_EQUAL | id::GREATER_EQUAL if !is_float && matches!(qtype, QType::Scalar(_)) => Some(true),
        _ => None,
    }
}

/// Warns about conditions that depend on no input.
fn branch(graph: &TypedGraph, id: Id, values: &[Option<Value>], written: &WrittenOperator<'_>, found: &mut Warnings) {
    let is_conditional = matches!(graph.kind(id), Kind::Where { .. } | Kind::Operator { op: id::WHERE, .. });
    let [condition, on, off] = *written.operands else { return };
    if !is_conditional || !matches!(written.op, id::SHORT_WHERE | id::WHERE) {
        return;
    }
    let Some(holds) = graph.operands(id).first().and_then(|condition| holds(values, *condition)) else { return };
    // Without an `else` there is no other branch.
    let never = if holds { off } else { on };
    if holds && matches!(written.literal(never), Some(Value::Nothing)) {
        return;
    }
    let operands = written.graph.operands(condition);
    if let Some(op) = written.operator(condition).filter(|op| is_comparison(*op))
        && !compares_literals(&WrittenOperator { operands, op, place: written.graph.span(condition), ..*written })
    {
        // There is a warning about the comparison already.
        return;
    }
    found.add(Code::UnreachableBranch, written.place_of(never).or(written.place), || {
        let often = if holds { "always" } else { "never" };
        let warning = Diagnostic::new(Code::UnreachableBranch, "this branch is never chosen");
        written.also(warning, Some(&condition), &format!("this {often} holds"))
    });
}
