//! A third implementation to compare the backends with. It evaluates the typed graph directly, node by node and only as needed, with boxed values.
//! It shares the operators' kernels with the interpreter, but has no plan, no frame and no laziness analysis. So it finds an error in the plan, the
//! frame or the laziness analysis even if both backends have the error.

use crate::subject::Row;
use cembra_expr::Program;
use cembra_ops::{OpDef, Registry, ResolvedCall, Signature, call, id};
use cembra_prepare::{Id, Kind, LoopId, Options, Prepared, TypedGraph, TypedModel};
use cembra_value::{ScalarValue, Value};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Returns the typed graph of `program` before it is folded, optimised or made lazy; `None` if preparation rejects the program.
pub(crate) fn prepare(program: &Program) -> Option<TypedModel> {
    let options = Options { stop_after: Some("expand".to_owned()), ..Options::default() };
    match cembra_prepare::prepare(program, &|_| None, &options, &mut |_, _| {}).ok()? {
        Prepared::Typed(model) => Some(model),
        Prepared::Placed(_) => None,
    }
}

/// Returns true if a backend may evaluate a value that several branches share although no chosen branch needs it. There are five reasons:
///
/// - A condition depends on another conditional, so that the value's guard (the condition for computing it) may need the value itself.
/// - There are more conditions than a guard can have.
/// - Several loops share a value, which each loop evaluates once.
/// - The rounds of a loop choose branches independently.
/// - A condition needs a value that can fail and that is also needed outside of the condition.
pub(crate) fn is_entangled(model: &TypedModel) -> bool {
    let graph = &model.graph;
    let is_conditional = |node| matches!(graph.kind(node), Kind::Where { .. });
    let mut uses = vec![0; graph.len()];
    for operand in graph.ids().flat_map(|node| graph.operands(node)) {
        uses[operand.index()] += 1;
    }
    let (mut fails, mut tangled) = (vec![false; graph.len()], vec![false; graph.len()]);
    for node in graph.ids() {
        let any = |flags: &[bool]| graph.operands(node).iter().any(|operand| flags[operand.index()]);
        let fails_itself = match graph.kind(node) {
            Kind::Operator { op, .. } => !model.registry.get(op).is_total(),
            _ => false,
        };
        fails[node.index()] = fails_itself || any(&fails);
        tangled[node.index()] = is_conditional(node)
            || matches!(graph.kind(node), Kind::State(_))
            || (fails[node.index()] && uses[node.index()] > 1)
            || any(&tangled);
    }
    let conditionals = || graph.ids().filter(|node| is_conditional(*node));
    let loops = graph.ids().filter(|node| matches!(graph.kind(*node), Kind::Loop(_)));
    conditionals().count() > MOST_CONDITIONS
        || loops.count() > 1
        || conditionals().any(|node| tangled[graph.operands(node)[0].index()])
}

/// The most conditions on a path to a value for which the value's guard (the condition for computing it) is exact.
const MOST_CONDITIONS: usize = 8;

/// Returns the model's outputs for `row`, and the names of the inputs that they need; `None` if an operator that an output needs faults.
pub(crate) fn evaluate(model: &TypedModel, row: &Row) -> Option<(Vec<Value>, HashSet<Arc<str>>)> {
    let graph = &model.graph;
    let mut values: Vec<Option<Value>> = vec![None; graph.len()];
    let mut loops: HashMap<LoopId, Rounds> = HashMap::new();
    let mut needed: HashSet<Arc<str>> = HashSet::new();
    let mut stack: Vec<Id> = model.outputs.iter().rev().map(|(_, output)| *output).collect();
    while let Some(node) = stack.last().copied() {
        if values[node.index()].is_some() {
            stack.pop();
            continue;
        }
        let operands = graph.operands(node);
        let value = match graph.kind(node) {
            Kind::Leaf(leaf) => {
                needed.insert(graph.leaf_name(leaf).clone());
                row.get(graph.leaf_name(leaf))?.clone()
            }
            Kind::Literal(_) => graph.value(node)?.clone(),
            Kind::Where { .. } => {
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
                match op {
                    id::DICT_TABLE => looked_up(&args)?,
                    id::DICT_RANGED => ranged(&args)?,
                    _ => call(def, &ResolvedCall { signature, overload, lifted }, &args)?.ok()?,
                }
            }
            Kind::Loop(of) => {
                let Some(init) = values[operands[0].index()].clone() else {
                    stack.push(operands[0]);
                    continue;
                };
                let rounds = loops.entry(of).or_insert_with(|| Rounds::of(graph, of));
                if let Some(state) = rounds.state.filter(|state| values[state.index()].is_none()) {
                    values[state.index()] = Some(init);
                }
                let Some(Value::Tuple(parts)) = values[operands[1].index()].clone() else {
                    stack.push(operands[1]);
                    continue;
                };
                rounds.made.iter().for_each(|made| values[made.index()] = None);
                if !matches!(parts.get(1), Some(Value::Missing(_))) {
                    let state = rounds.state?;
                    rounds.left = rounds.left.checked_sub(1)?;
                    values[state.index()] = parts.first().cloned();
                    continue;
                }
                Value::Tuple(parts)
            }
            // The state only has a value in a round of its loop.
            Kind::State(_) | Kind::CompileTime(_) => return None,
        };
        values[node.index()] = Some(value);
    }
    let outputs: Option<Vec<Value>> = model.outputs.iter().map(|(_, output)| values[output.index()].clone()).collect();
    Some((outputs?, needed))
}

/// Looks a key up in a dictionary entry by entry, because the hash table exists only in a compiled model.
fn looked_up(args: &[Value]) -> Option<Value> {
    let [Value::Dict(dict), key] = args else { return None };
    let value = key.as_scalar().and_then(|key| dict.entries().find(|(known, _)| known == key)?.1);
    Some(Value::optional(dict.values().scalar(), value))
}

/// Returns the value of the last range whose bound is at most the key.
fn ranged(args: &[Value]) -> Option<Value> {
    let [Value::Dict(dict), key] = args else { return None };
    let is_from = |bound: &ScalarValue, key: &ScalarValue| match (bound, key) {
        (ScalarValue::Text(bound), ScalarValue::Text(key)) => bound.as_bytes() <= key.as_bytes(),
        (ScalarValue::Float32(bound), ScalarValue::Float32(key)) => bound <= key,
        (ScalarValue::Float64(bound), ScalarValue::Float64(key)) => bound <= key,
        (ScalarValue::WeakFloat(bound), ScalarValue::WeakFloat(key)) => bound <= key,
        (ScalarValue::UInt64(bound), ScalarValue::UInt64(key)) => bound <= key,
        (ScalarValue::Int32(bound), ScalarValue::Int32(key)) => bound <= key,
        (ScalarValue::Date(bound), ScalarValue::Date(key)) => bound.0 <= key.0,
        (ScalarValue::Timestamp(bound), ScalarValue::Timestamp(key)) => bound.0 <= key.0,
        (bound, key) => bound.bits().cast_signed() <= key.bits().cast_signed(),
    };
    let key = key.as_scalar();
    let last = key.and_then(|key| dict.entries().filter(|(bound, _)| is_from(bound, key)).last()?.1);
    Some(Value::optional(dict.values().scalar(), last))
}

/// The rounds of a loop: its state, and the nodes that each round evaluates.
struct Rounds {
    state: Option<Id>,
    made: Vec<Id>,
    left: u32,
}

/// The most rounds of one loop.
const MOST_ROUNDS: u32 = 100_000;

impl Rounds {
    fn of(graph: &TypedGraph, of: LoopId) -> Rounds {
        let state = graph.ids().find(|node| graph.kind(*node) == Kind::State(of));
        let mut depends = vec![false; graph.len()];
        for node in graph.ids() {
            let inherits = graph.operands(node).iter().any(|operand| depends[operand.index()]);
            depends[node.index()] = Some(node) == state || (inherits && graph.kind(node) != Kind::Loop(of));
        }
        let made = graph.ids().filter(|node| depends[node.index()]).collect();
        Rounds { state, made, left: MOST_ROUNDS }
    }
}
