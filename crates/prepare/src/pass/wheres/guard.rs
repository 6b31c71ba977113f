//! Guards: a node that only branches use, but more than one of them, would be evaluated before all of them, needed or not.
//! If it can fail or costs much, it is evaluated under the disjunction of the conditions under which it is needed: still
//! at most once, and never when no branch that uses it is chosen.
//!
//! The guard is an ordinary conditional whose other branch is a constant that nobody looks at. Conditions of outer
//! conditionals are at hand where the guard stands; those of inner ones are taken into the guard only if computing them
//! there cannot fail, else the guard is a little wider than need be. Nodes with too many uses, or too deep ones, keep
//! Arolla's eager place.

use super::Analysis;
use crate::pass::Prepared;
use crate::{Id, Kind, RegionId, TypedGraph};
use cembra_expr::{NodeId, ScalarValue, Value};
use cembra_ops::{Lower, OpId, Registry, id};
use cembra_runtime::{QType, Scalar};
use rustc_hash::FxHashMap;

/// The most uses of a guarded node.
const MOST_USES: usize = 16;
/// The most conditions that one use adds to a guard.
const MOST_CONDITIONS: usize = 8;
/// The most operators that an inner condition may take to compute.
const MOST_OPERATORS: usize = 16;

/// A condition under which a use happens: all of these masks, each present or missing as said.
type Path = Vec<(Id, bool)>;

/// Puts guards into the graph; false if there is nothing to guard.
pub(super) fn add(prepared: &mut Prepared, registry: &Registry, analysis: &Analysis) -> bool {
    if analysis.branches.len() < 2 {
        return false;
    }
    let mut candidates = candidates(prepared, registry, analysis);
    drop_circular(&prepared.graph, &mut candidates);
    if candidates.is_empty() {
        return false;
    }
    rebuild(prepared, registry, &candidates);
    true
}

/// The nodes to guard, each with the paths to its uses.
fn candidates(prepared: &Prepared, registry: &Registry, analysis: &Analysis) -> FxHashMap<Id, Vec<Path>> {
    let graph = &prepared.graph;
    let mut worth = vec![false; graph.len()];
    let mut found: FxHashMap<Id, Vec<Path>> = FxHashMap::default();
    for node in graph.ids() {
        let Some(home) = analysis.regions[node.index()] else { continue };
        // What only this node needs moves with it.
        let brings = |o: &Id| worth[o.index()] && analysis.regions[o.index()] == Some(home);
        worth[node.index()] = match graph.kind(node) {
            Kind::Loop(_) => true,
            Kind::Operator { op, .. } if is_worth_guarding(graph, registry, node, op) => true,
            Kind::Operator { .. } | Kind::Where => graph.operands(node).iter().any(brings),
            _ => false,
        };
        // No constant stands for a tuple that nobody looks at; what is taken from it is guarded.
        let guarded_already = matches!(graph.qtype(node), QType::Tuple(_));
        if worth[node.index()] && !analysis.used_at_home[node.index()] && !guarded_already {
            found.insert(node, Vec::new());
        }
    }
    if found.is_empty() {
        return found;
    }
    for user in from_outputs(prepared) {
        let Some(region) = analysis.regions[user.index()] else { continue };
        let branches = analysis.branches.get(&user);
        for (at, operand) in graph.operands(user).iter().enumerate() {
            let Some(paths) = found.get_mut(operand) else { continue };
            let used = match (branches, at) {
                (Some(branches), 1 | 2) => branches[at - 1],
                _ => region,
            };
            let home = analysis.regions[operand.index()].unwrap_or(RegionId::TOP);
            paths.push(path(graph, registry, analysis, used, home));
        }
    }
    found.retain(|_, paths| {
        paths.len() <= MOST_USES && paths.iter().all(|path| !path.is_empty()) && !always_holds(paths)
    });
    found
}

/// The nodes that outputs need, from the outputs down: an order that does not depend on how the program was put together,
/// so that a guard does not either.
fn from_outputs(prepared: &Prepared) -> Vec<Id> {
    let mut seen = vec![false; prepared.graph.len()];
    let mut order = Vec::new();
    let mut stack: Vec<Id> = prepared.outputs.iter().rev().map(|(_, output)| *output).collect();
    while let Some(node) = stack.pop() {
        if !std::mem::replace(&mut seen[node.index()], true) {
            order.push(node);
            stack.extend(prepared.graph.operands(node).iter().rev());
        }
    }
    order
}

/// Drops the candidates whose guard may need a value that needs the guarded one: a condition can take a candidate in a
/// branch of its own. Nodes are settled from the leaves up, a candidate after the conditions of its guard; what is never
/// settled depends on a circle.
fn drop_circular(graph: &TypedGraph, candidates: &mut FxHashMap<Id, Vec<Path>>) {
    // Operands come before their users, so that only a condition that comes later can close a circle.
    if candidates.iter().all(|(node, paths)| paths.iter().flatten().all(|(condition, _)| condition < node)) {
        return;
    }
    let mut unsettled = vec![0_u32; graph.len()];
    let mut users: Vec<Vec<Id>> = vec![Vec::new(); graph.len()];
    for node in graph.ids() {
        let conditions = candidates.get(&node).into_iter().flatten().flatten().map(|(condition, _)| *condition);
        for needed in graph.operands(node).iter().copied().chain(conditions) {
            unsettled[node.index()] += 1;
            users[needed.index()].push(node);
        }
    }
    let mut settled: Vec<Id> = graph.ids().filter(|node| unsettled[node.index()] == 0).collect();
    while let Some(node) = settled.pop() {
        for user in &users[node.index()] {
            unsettled[user.index()] -= 1;
            if unsettled[user.index()] == 0 {
                settled.push(*user);
            }
        }
    }
    candidates.retain(|node, _| unsettled[node.index()] == 0);
}

/// True if one use happens just where another does not: such a guard would let everything through.
fn always_holds(paths: &[Path]) -> bool {
    paths.iter().any(|path| match path[..] {
        [(condition, on)] => paths.iter().any(|other| other[..] == [(condition, !on)]),
        _ => false,
    })
}

/// True for an operator that can fail, or whose evaluation is a call.
fn is_worth_guarding(graph: &TypedGraph, registry: &Registry, node: Id, op: OpId) -> bool {
    let def = registry.get(op);
    let Kind::Operator { overload: Some(at), .. } = graph.kind(node) else { return false };
    let kernel = matches!(def.overloads()[usize::from(at)].lower, Lower::Kernel);
    !def.is_total() || kernel || EXPENSIVE.contains(&op)
}

/// Operators that cost as much as a dozen others.
const EXPENSIVE: &[OpId] = &[
    id::EXP,
    id::EXPM1,
    id::LOG,
    id::LOG1P,
    id::LOG2,
    id::LOG10,
    id::POW,
    id::FMOD,
    id::SIGMOID,
    id::LOGIT,
    id::LOG_SIGMOID,
    id::SYMLOG1P,
    id::SIN,
    id::COS,
    id::SINH,
    id::ATAN,
];

/// The conditions from `home` down to `used`, outermost first; empty if there are too many levels to look at.
fn path(graph: &TypedGraph, registry: &Registry, analysis: &Analysis, used: RegionId, home: RegionId) -> Path {
    let mut conditions = Vec::new();
    let mut region = used;
    while region != home {
        let Some((conditional, on)) = analysis.opened_by[region.index()] else { return Vec::new() };
        if conditions.len() == 64 {
            return Vec::new();
        }
        conditions.push((graph.operands(conditional)[0], on));
        region = analysis.tree.parent(region);
    }
    conditions.reverse();
    conditions.truncate(MOST_CONDITIONS);
    // An inner conditional may ask again what the outermost one asked.
    let at_hand = conditions.first().map(|(condition, _)| *condition);
    conditions.retain(|(condition, _)| Some(*condition) == at_hand || is_safe_anywhere(graph, registry, *condition));
    conditions
}

/// True if a condition can be computed where it was not meant to be: no operator that it takes can fail.
fn is_safe_anywhere(graph: &TypedGraph, registry: &Registry, condition: Id) -> bool {
    let mut stack = vec![condition];
    let mut seen = 0;
    while let Some(node) = stack.pop() {
        let op = match graph.kind(node) {
            Kind::Operator { op, .. } => op,
            Kind::Where | Kind::Loop(_) => return false,
            _ => continue,
        };
        seen += 1;
        if seen > MOST_OPERATORS || op == id::WHERE || is_worth_guarding(graph, registry, node, op) {
            return false;
        }
        stack.extend_from_slice(graph.operands(node));
    }
    true
}

/// Rebuilds the graph with the guards in it. A guard depends on conditions that may come after the node's users, so nodes
/// are visited from the outputs down, and not in the old order.
fn rebuild(prepared: &mut Prepared, registry: &Registry, guarded: &FxHashMap<Id, Vec<Path>>) {
    let old = std::mem::take(&mut prepared.graph);
    let mut new = old.empty_like();
    let mut copies: Vec<Option<Id>> = vec![None; old.len()];
    let mut guards: FxHashMap<Id, Id> = FxHashMap::default();
    enum Todo {
        Visit(Id),
        Copy(Id),
        Guard(Id),
    }
    let mut stack: Vec<Todo> = prepared.outputs.iter().rev().map(|(_, output)| Todo::Visit(*output)).collect();
    while let Some(todo) = stack.pop() {
        match todo {
            Todo::Visit(node) => {
                if copies[node.index()].is_some() && (!guarded.contains_key(&node) || guards.contains_key(&node)) {
                    continue;
                }
                if let Some(paths) = guarded.get(&node) {
                    stack.push(Todo::Guard(node));
                    stack.extend(paths.iter().flatten().map(|(condition, _)| Todo::Visit(*condition)));
                }
                stack.push(Todo::Copy(node));
                stack.extend(old.operands(node).iter().rev().map(|operand| Todo::Visit(*operand)));
            }
            Todo::Copy(node) => {
                if copies[node.index()].is_none() {
                    let operands: smallvec::SmallVec<[Id; 4]> = old
                        .operands(node)
                        .iter()
                        .map(|o| guards.get(o).copied().or(copies[o.index()]).unwrap_or(Id::from_index(0)))
                        .collect();
                    copies[node.index()] = Some(new.copy_node(&old, node, &operands));
                }
            }
            Todo::Guard(node) => {
                if let (None, Some(copy)) = (guards.get(&node), copies[node.index()]) {
                    let guard = guard(&mut new, registry, old.origin(node), copy, &guarded[&node], &copies);
                    guards.insert(node, guard.unwrap_or(copy));
                }
            }
        }
    }
    for (_, output) in &mut prepared.outputs {
        *output = copies[output.index()].unwrap_or(Id::from_index(0));
    }
    prepared.graph = new;
}

/// The conditional that evaluates `node` where one of its uses happens.
fn guard(
    graph: &mut TypedGraph,
    registry: &Registry,
    origin: NodeId,
    node: Id,
    paths: &[Path],
    copies: &[Option<Id>],
) -> Option<Id> {
    let mut any: Option<Id> = None;
    for path in paths {
        let mut all: Option<Id> = None;
        for (condition, on) in path {
            let mut mask = copies[condition.index()]?;
            if !on {
                mask = bound(graph, registry, id::PRESENCE_NOT, &[mask], origin)?;
            }
            all = Some(match all {
                Some(so_far) if so_far != mask => bound(graph, registry, id::PRESENCE_AND, &[so_far, mask], origin)?,
                _ => mask,
            });
        }
        any = Some(match (any, all?) {
            (Some(so_far), path) if so_far != path => bound(graph, registry, id::PRESENCE_OR, &[so_far, path], origin)?,
            (_, path) => path,
        });
    }
    let qtype = graph.qtype(node).clone();
    let unseen = match qtype {
        QType::Optional(scalar) => Value::Missing(scalar),
        QType::Scalar(Scalar::Text) => Value::text(""),
        QType::Scalar(Scalar::Bytes) => Value::Scalar(ScalarValue::Bytes([].into())),
        QType::Scalar(scalar) => Value::Scalar(ScalarValue::from_bits(scalar, 0)?),
        _ => return None,
    };
    let unseen = graph.literal(unseen, origin);
    bound(graph, registry, id::WHERE, &[any?, node, unseen], origin)
}

/// An operator on operands of exactly its types.
fn bound(graph: &mut TypedGraph, registry: &Registry, op: OpId, operands: &[Id], origin: NodeId) -> Option<Id> {
    let resolved = graph.resolve(registry, op, operands).ok()?;
    let kind = Kind::Operator { op, overload: resolved.overload, lifted: resolved.lifted };
    Some(graph.add(kind, operands, resolved.signature.ret, origin))
}
