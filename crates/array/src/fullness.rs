//! Finds which nodes of a typed graph are full. A node is *full* if it is an array without missing elements, or an edge
//! (the grouping of an array's elements) that assigns every element to a group. A full array can be stored and computed
//! without presence bits. Fullness follows from the declarations of inputs (`[f64]` promises that no element is
//! missing), from literals, and from the rules of operators. Nothing is evaluated, and a node counts as not full if its
//! fullness is not certain.
//!
//! Fullness is a property of nodes, not of types: a full array has the same type as an array with missing elements. A
//! full array may still have presence bits; then all of them are set.

use crate::passes::is_of_splits;
use cembra_ops::{Argument, FullRule, Registry, StripMethod, Structure, id};
use cembra_prepare::{Id, Kind, LoopId, TypedGraph, TypedModel};
use cembra_runtime::{EdgeType, QType};
use cembra_value::{EdgeForm, Promise, Value};
use rustc_hash::FxHashSet;
use smallvec::SmallVec;

/// The most rounds in which loops whose state may have missing elements are searched for. Each round assumes that the
/// states of all remaining loops are full. If the search has not ended after these rounds, no loop's state counts as
/// full.
const ROUNDS: usize = 8;

/// Returns for each node, by its index, whether the node is certainly full: an array or a scalar without missing values, an edge
/// (the grouping of an array's elements) that assigns every element to a group, or a tuple whose fields are all full. A scalar
/// counts as full if its type is not optional.
#[must_use]
pub fn fullness(model: &TypedModel) -> Vec<bool> {
    let (graph, registry) = (&model.graph, model.registry);
    let loops: Vec<(Id, LoopId)> = graph
        .ids()
        .filter_map(|node| match graph.kind(node) {
            Kind::Loop(of) => Some((node, of)),
            _ => None,
        })
        .collect();
    // The state of a loop is full if its first value is, and if a round that begins with a full state ends with one.
    let mut gaps: FxHashSet<LoopId> = FxHashSet::default();
    for _ in 0..ROUNDS {
        let full = with_states(graph, registry, &gaps);
        let is_left = |(node, of): &&(Id, LoopId)| !gaps.contains(of) && !stays_full(graph, *node, &full);
        let left: Vec<LoopId> = loops.iter().filter(is_left).map(|(_, of)| *of).collect();
        if left.is_empty() {
            return full;
        }
        gaps.extend(left);
    }
    gaps.extend(loops.iter().map(|(_, of)| *of));
    with_states(graph, registry, &gaps)
}

/// Returns true if the initial state of a loop is full, and if the state that a round computes is full too. `full` has
/// the fullness of each node, computed under the assumption that the state is full.
fn stays_full(graph: &TypedGraph, node: Id, full: &[bool]) -> bool {
    let [init, round] = graph.operands(node) else { return false };
    let next = graph.made_fields(*round).and_then(|fields| fields.first());
    full[init.index()] && next.is_some_and(|next| full[next.index()])
}

/// Returns, for each node, whether it is full under the assumption that the state of each loop is full, except for
/// loops in `gaps`.
fn with_states(graph: &TypedGraph, registry: &Registry, gaps: &FxHashSet<LoopId>) -> Vec<bool> {
    // Operands come before their users in a graph.
    let mut full = Vec::with_capacity(graph.len());
    for node in graph.ids() {
        let is_full = match graph.kind(node) {
            // A loop gives the last round's state and mask, but only the state is used.
            Kind::Loop(of) | Kind::State(of) => !gaps.contains(&of),
            _ => is_full_type(graph.qtype(node)) || is_full(graph, registry, node, &full),
        };
        full.push(is_full);
    }
    full
}

/// Returns true if neither a value of the type nor a part of the value can be missing. Types with arrays are not full.
fn is_full_type(qtype: &QType) -> bool {
    // Types nest only as deep as the text that spelled them.
    match qtype {
        QType::Scalar(_)
        | QType::Shape(_)
        | QType::ArrayShape(_)
        | QType::Edge(EdgeType::Scalars | EdgeType::ToScalar(_))
        | QType::Meta
        | QType::Unspecified => true,
        QType::Tuple(fields) => fields.iter().all(is_full_type),
        QType::Optional(_)
        | QType::Array(..)
        | QType::Edge(EdgeType::Arrays(_))
        | QType::Nothing
        | QType::Function
        | QType::Dict(..)
        | QType::Sequence(_)
        | QType::Tensor(..) => false,
    }
}

/// Returns true if field `at` of a list of structs is a scalar that is not optional. The list has one array per field,
/// and the array of this field then has no missing elements.
fn is_full_of_list(list: &QType, at: Option<usize>) -> bool {
    let field = || match list.element()? {
        QType::Tuple(fields) => fields.get(at?),
        _ => None,
    };
    matches!(field(), Some(QType::Scalar(_)))
}

/// Returns true if the value is full: an array or a scalar without missing values, an edge that assigns every element
/// to a group, or a tuple of full values.
fn is_full_value(value: &Value) -> bool {
    // Values nest only as deep as the text that spelled them.
    match value {
        Value::Array(_, array) => array.first_missing().is_none(),
        Value::Edge(edge) => match edge.form() {
            EdgeForm::Scalars | EdgeForm::ToScalar(_) | EdgeForm::Splits(_) => true,
            EdgeForm::Mapping(groups, _) => groups.first_missing().is_none(),
        },
        Value::Tuple(fields) => fields.iter().all(is_full_value),
        Value::Present(_) => true,
        other => is_full_type(&other.qtype()),
    }
}

/// Returns true if a node is full because of its operator and the fullness of its operands, even if its type allows
/// missing values. `full` has the fullness of all earlier nodes.
fn is_full(graph: &TypedGraph, registry: &Registry, node: Id, full: &[bool]) -> bool {
    let operands = graph.operands(node);
    let all = |operands: &[Id]| operands.iter().all(|operand| full[operand.index()]);
    match graph.kind(node) {
        Kind::Leaf(leaf) => matches!(graph.leaf_promise(leaf), Promise::Full | Promise::Splits),
        Kind::Literal(_) => graph.value(node).is_some_and(is_full_value),
        // The result is one of the two branches.
        Kind::Where { .. } => all(&operands[1..]),
        Kind::Operator { op: id::MAP, .. } => {
            // The parameters of the body have optional types, so its result type holds for missing elements too.
            graph.body(node).is_some_and(|body| is_full_type(body.graph.qtype(body.result)))
        }
        Kind::Operator { .. } if graph.is_elementwise(registry, node) => {
            is_full_of_each(graph, registry, node, full).unwrap_or(false)
        }
        Kind::Operator { op: id::ARRAY_EXPAND, .. } if is_of_own_group(graph, registry, node, full) => true,
        Kind::Operator { op, .. } => match registry.structure(op) {
            Some(Structure::MakeTuple | Structure::MakeNamed) => all(operands),
            Some(Structure::GetNth) => match (graph.made_fields(operands[0]), position(graph, operands[1])) {
                (Some(fields), Some(at)) => fields.get(at).is_some_and(|field| full[field.index()]),
                (_, at) => full[operands[0].index()] || is_full_of_list(graph.qtype(operands[0]), at),
            },
            Some(_) => false,
            None => match registry.get(op).full {
                FullRule::Never => false,
                FullRule::Always => is_of_arrays(graph.qtype(node)),
                FullRule::Operands => is_of_arrays(graph.qtype(node)) && all(operands),
                FullRule::First => is_of_arrays(graph.qtype(node)) && all(&operands[..1]),
            },
        },
        // The states of loops are handled by the caller, from all rounds.
        Kind::Loop(_) | Kind::State(_) | Kind::CompileTime(_) => false,
    }
}

/// Returns true if no element of the node `expanded` is missing because `expanded` gives each element the result that
/// an aggregation computes for the element's own group, as in `array.expand(max(x, into=by), by)` with a full `x`. The
/// aggregation must have a result for every group that has elements. Groups without elements may lack a result, because
/// no element receives it.
fn is_of_own_group(graph: &TypedGraph, registry: &Registry, expanded: Id, full: &[bool]) -> bool {
    let [gathered, edge] = graph.operands(expanded) else { return false };
    let ([x, into], Some(op)) = (graph.operands(*gathered), graph.op(*gathered)) else { return false };
    let is_there = matches!(registry.get(op).in_strips, Some(StripMethod::Fold(fold)) if fold.is_there_of_full());
    is_there && into == edge && is_of_splits(graph, *edge) && full[x.index()]
}

/// Returns true for arrays and edges, the only types to which an operator's [`FullRule`] applies. Whether a scalar may
/// be missing is part of its type.
fn is_of_arrays(qtype: &QType) -> bool {
    matches!(qtype, QType::Array(..) | QType::Edge(_))
}

/// Returns the integer that the literal node `index` has, such as the position of a field in a tuple; `None` if the
/// node is not a literal integer.
pub(crate) fn position(graph: &TypedGraph, index: Id) -> Option<usize> {
    usize::try_from(graph.value(index)?.as_scalar()?.bits()).ok()
}

/// Returns whether an elementwise operator has a full result. The operator is resolved for single elements, where
/// elements of full arrays are not optional; the result is full if that result type is not optional. `None` if the
/// operator does not take such elements.
fn is_full_of_each(graph: &TypedGraph, registry: &Registry, node: Id, full: &[bool]) -> Option<bool> {
    let operands = graph.operands(node);
    let types: SmallVec<[QType; 4]> = operands
        .iter()
        .map(|operand| match graph.qtype(*operand) {
            QType::Array(_, scalar) => QType::of(*scalar, !full[operand.index()]),
            other => other.clone(),
        })
        .collect();
    // A literal type of an array is replaced by the type of its elements.
    let literals: SmallVec<[Option<Value>; 4]> =
        operands.iter().map(|operand| graph.value(*operand).map(Value::of_each)).collect();
    let args: SmallVec<[Argument<'_>; 4]> =
        types.iter().zip(&literals).map(|(qtype, literal)| Argument { qtype, literal: literal.as_ref() }).collect();
    let resolved = registry.resolve(graph.op(node)?, &args).ok()?;
    Some(!resolved.signature.ret.is_optional())
}

#[cfg(test)]
mod tests {
    use super::*;
    use cembra_value::Limits;

    /// Returns whether an expression is full. The inputs `x`, `y` and `ids` are full; `gaps` need not be.
    fn full(expression: &str) -> bool {
        let text = format!(
            "input x, y: [f64], gaps: [f64?], ids: [i64], holes: [i64?], by: splits, of: mapping, any: edge\n\
             input k: f64, maybe: f64?, on: bool, given: ([f64], f64)\n{expression}"
        );
        let program = cembra_expr::parse(&text, Registry::standard(), &Limits::default()).expect(&text);
        let prepared =
            cembra_prepare::prepare(&program, &|_| None, &cembra_prepare::Options::default(), &mut |_, _| {});
        let model = prepared.expect(&text).model().clone();
        let full = fullness(&model);
        full[model.outputs[0].1.index()]
    }

    #[test]
    fn what_is_done_to_full_elements_is_full() {
        for (expression, expected) in [
            ("x", true),
            ("gaps", false),
            ("x + y * k", true),
            ("x + maybe", false),
            ("x + gaps", false),
            ("gaps ?? x", true),
            ("gaps ?? 0.0", true),
            ("gaps ?? maybe", false),
            ("x & (y > 0.0)", false),
            ("x > y", false),
            ("core.has(x)", true),
            ("core.has(gaps)", false),
            // The result is full, but its type does not say so.
            ("core.const_like(gaps, 1.0)", false),
            ("core.const_like(x, 1.0)", true),
            ("where(x > 0.0, x, y)", true),
            ("where(gaps > 0.0, x, 1.0)", true),
            ("where(x > 0.0, x)", false),
            ("where(x > 0.0, x, gaps)", false),
            ("if on then x else y + 1.0", true),
            ("if on then x else gaps", false),
            ("if on then x", false),
            ("math.sqrt(x) // 3.0", true),
            ("strings.as_text(x)", true),
            ("core.to_int32(x)", true),
            ("core.map(fn(e) = (e ?? 1.0) * 2.0, gaps)", true),
            ("core.map(fn(e) = e * 2.0, x)", false),
            ("(x, gaps).0", true),
            ("(x, gaps).1", false),
            ("given.0", false),
            ("given.1", true),
            ("maybe", false),
        ] {
            assert_eq!(full(expression), expected, "{expression}");
        }
    }

    #[test]
    fn operators_on_arrays_say_when_they_make_what_is_full() {
        for (expression, expected) in [
            ("[1, 2]", true),
            ("[1, missing]", false),
            ("[k, k]", true),
            ("[k, maybe]", false),
            ("math.sum(gaps, into=any)", true),
            ("array.count(gaps, into=any)", true),
            ("math.mean(x, into=by)", false),
            ("max(x, into=by)", false),
            ("math.prod(x, into=by)", false),
            ("logical_any(core.to_bool(x), into=by)", true),
            ("logical_any(core.to_bool(gaps), into=by)", false),
            ("core.any(x > 0.0, into=by)", false),
            ("cum_sum(x, over=edge.to_scalar(x))", true),
            ("cum_sum(gaps, over=by)", false),
            ("cum_sum(x, over=by)", true),
            ("cum_sum(x, over=of)", false),
            ("array.ordinal_rank(x, over=by)", true),
            ("array.ordinal_rank(gaps)", false),
            ("array.expand(math.sum(gaps, into=by), by)", true),
            ("array.expand(math.sum(gaps, into=of), of)", false),
            ("array.expand(math.sum(gaps, into=any), any)", false),
            ("array.expand(math.mean(x, into=by), by)", true),
            ("array.expand(max(x + y, into=by), by)", true),
            ("array.expand(math.mean(gaps, into=by), by)", false),
            ("array.expand(math.mean(x, into=of), of)", false),
            ("array.expand(math.mean(x, into=any), any)", false),
            // Each element takes the result of a group of another edge, which may be without elements.
            ("array.expand(math.mean(x, into=by), edge.from_sizes(ids))", false),
            ("array.expand(math.mean(x, into=edge.from_sizes(ids)), edge.from_sizes(ids))", true),
            ("array.expand(core.any(core.has(x), into=by), by)", true),
            ("array.expand(math.mean(x, into=by) + 1.0, by)", false),
            ("math.softmax(x, over=by)", true),
            ("math.softmax(x, over=of)", false),
            ("array.expand(x, edge.from_mapping(ids, 3))", true),
            ("array.expand(x, edge.from_mapping(holes, 3))", false),
            ("array.expand(x, edge.from_sizes(ids))", true),
            ("array.expand(k, edge.to_scalar(gaps))", true),
            ("array.expand(maybe, edge.to_scalar(x))", false),
            ("array.expand(x, edge.compose(of, by))", false),
            ("edge.mapping(by)", true),
            ("edge.mapping(of)", false),
            ("edge.sizes(of)", true),
            ("array.iota(core.shape_of(gaps))", true),
            ("core.const_with_shape(core.shape_of(gaps), 1.0)", true),
            ("core.const_with_shape(core.shape_of(x), maybe)", false),
            ("array.concat(x, y)", true),
            ("array.concat(x, gaps)", false),
            ("array.slice(x, 0, 1)", true),
            ("array.slice(gaps, 0, 1)", false),
            ("array.select(x, gaps > 0.0)", true),
            ("array.present_values(gaps)", true),
            ("array.unique(gaps)", true),
            ("x[ids]", true),
            ("x[holes]", false),
            ("x[0]", false),
            ("gaps[0]", false),
            ("seq.reduce(fn(s, i) = s * 0.5 + y, seq.range(9), x)", true),
            ("seq.reduce(fn(s, i) = s * 0.5 + gaps, seq.range(9), x)", false),
            ("seq.reduce(fn(s, i) = x * 0.5 + y, seq.range(9), gaps)", false),
            ("core.while_loop(x, fn(s) = math.sum(s) > 1.0, fn(s) = s - y)", true),
            ("core.while_loop((x, y), fn(s) = s.0[0] > 1.0, fn(s) = (s.1, s.0)).0", true),
            // Gaps enter with the second round.
            ("core.while_loop((x, y, gaps), fn(s) = s.0[0] > 1.0, fn(s) = (s.1, s.2, x)).0", false),
            ("seq.reduce(fn(s, i) = seq.reduce(fn(t, j) = t + s, seq.range(i), x), seq.range(9), y)", true),
            (
                "seq.reduce(fn(s, i) = s & (seq.reduce(fn(t, j) = t + s, seq.range(i), x) > 0.0), seq.range(9), y)",
                false,
            ),
        ] {
            assert_eq!(full(expression), expected, "{expression}");
        }
    }
}
