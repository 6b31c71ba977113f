//! Adds guards to the graph. A guard is a conditional that evaluates a node only if a branch that uses the node is chosen. Without a guard, a node
//! that several branches use, and nothing else, would be evaluated before all of them, whether it is needed or not. A node gets a guard if it can
//! fail or is expensive. The condition of the guard is the disjunction of the conditions under which the node is needed, so the node is still
//! evaluated at most once.
//!
//! The guard is an ordinary conditional, whose other branch is a constant that is not used. Its condition is computed from the conditions on the
//! paths to the uses. If a path cannot be followed exactly, or if an exact condition would need the guarded node, the condition holds a little more
//! often than necessary. Nodes with too many uses, or with uses nested too deep, are evaluated eagerly, as in Arolla. If a rewrite made a conditional
//! from an operator that evaluates all of its operands, only nodes that a single branch needs are skipped; other nodes in its branches are evaluated
//! eagerly too.

mod path;

use super::Analysis;
use super::asked::{is_asked, repeated};
use crate::{Id, Kind, RegionId, TypedGraph, TypedModel};
use cembra_expr::{Node, NodeId, Program};
use cembra_ops::{Effects, Registry, id};
use cembra_runtime::{QType, Scalar};
use cembra_value::{ScalarValue, Value};
use path::{Path, Paths, bound, reduce};
use rustc_hash::FxHashMap;

/// The most paths to the uses of a guarded node.
const MOST_PATHS: usize = 16;

/// The nodes to guard, each with the paths to its uses.
type Guards = FxHashMap<Id, Vec<Path>>;

/// The reason why nodes get guards (conditionals that evaluate a shared node only if a branch needs it).
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum GuardReason {
    /// The guarded nodes may stop the evaluation, or are expensive.
    Effects,
    /// The guarded nodes need inputs on demand, or may stop the evaluation.
    Inputs,
}

/// Adds guards (conditionals around shared nodes) to the graph of `model`, for nodes that `reason` selects. Returns false if no node needs a guard.
pub(super) fn add(model: &mut TypedModel, program: &Program, reason: GuardReason, analysis: &Analysis) -> bool {
    if analysis.branches.len() < 2 {
        return false;
    }
    let is_repeated = match reason {
        GuardReason::Effects => Vec::new(),
        GuardReason::Inputs => repeated(&model.graph, model.registry),
    };
    let registry = model.registry;
    let mut guards = candidates(model, program, analysis, &is_repeated);
    // The guards on a cycle are made wider; those that are still on a cycle are dropped.
    let circles = on_circles(&model.graph, &guards);
    for (_, paths) in guards.iter_mut().filter(|(node, paths)| needs_any(**node, paths, &circles)) {
        paths.iter_mut().for_each(Path::widen);
        reduce(paths);
    }
    let circles = on_circles(&model.graph, &guards);
    guards.retain(|node, paths| !needs_any(*node, paths, &circles));
    guards.retain(|_, paths| paths.iter().all(|path| !path.is_empty()));
    if guards.is_empty() {
        return false;
    }
    move_conditions(&mut guards);
    rebuild(model, registry, &guards)
}

/// Adds guards for conditions that must be moved to the region where a guard first needs them.
fn move_conditions(guards: &mut Guards) {
    let moved: Vec<(Id, Path)> = guards.values().flatten().flat_map(Path::moved).collect();
    for (condition, path) in moved {
        let known = guards.entry(condition).or_default();
        // One condition may be moved to several places; a guard at the outermost place is enough for all.
        if known.first().is_none_or(|known| known.conditions().count() < path.conditions().count()) {
            *known = vec![path];
        }
    }
}

/// Returns true if the node may stop the evaluation, or if its evaluation is a call. False for an input on demand, because it is asked for at
/// its uses.
fn is_worth_guarding(graph: &TypedGraph, registry: &Registry, node: Id) -> bool {
    graph.effects(registry, node).is_some_and(Effects::is_worth_skipping) && !is_asked(graph, node)
}

/// The nodes worth a guard, each with the paths to its uses. Nodes that are marked in `is_repeated` are not guarded themselves, but a node that
/// needs one can be worth a guard.
fn candidates(model: &TypedModel, program: &Program, analysis: &Analysis, is_repeated: &[bool]) -> Guards {
    let is_repeated = |node: Id| is_repeated.get(node.index()).is_some_and(|is_repeated| *is_repeated);
    let (graph, registry) = (&model.graph, model.registry);
    let mut worth = vec![false; graph.len()];
    let mut wanted = vec![false; graph.len()];
    for node in graph.ids() {
        let Some(home) = analysis.regions[node.index()] else { continue };
        // Operands that only this node needs move with it, and so do the nodes in its branches.
        let branches = analysis.branches.get(&node).copied().unwrap_or([home; 2]);
        let within = |region: RegionId| region == home || branches.contains(&region);
        let is_apart = |o: Id| is_repeated(o) && !analysis.used_at_home[o.index()];
        let brings = |o: &Id| worth[o.index()] && (analysis.regions[o.index()].is_some_and(within) || is_apart(*o));
        worth[node.index()] = match graph.kind(node) {
            Kind::Loop(_) => true,
            Kind::Operator { .. } if is_repeated(node) || is_worth_guarding(graph, registry, node) => true,
            Kind::Operator { .. } | Kind::Where { .. } => graph.operands(node).iter().any(brings),
            _ => continue,
        };
        wanted[node.index()] = worth[node.index()]
            && !is_repeated(node)
            && !analysis.used_at_home[node.index()]
            && placeholder_value(graph.qtype(node)).is_some();
    }
    let mut found = Guards::default();
    if !wanted.contains(&true) {
        return found;
    }
    let is_written = |origin| is_written(program, registry, origin);
    let mut paths = Paths { graph, analysis, registry, wanted: &wanted, is_written: &is_written, uses: Vec::new() };
    for user in from_outputs(model) {
        let Some(region) = analysis.regions[user.index()] else { continue };
        let branches = analysis.branches.get(&user);
        for (at, operand) in graph.operands(user).iter().enumerate() {
            if !wanted[operand.index()] {
                continue;
            }
            let used = match (branches, at) {
                (Some(branches), 1 | 2) => branches[at - 1],
                _ => region,
            };
            let home = analysis.regions[operand.index()].unwrap_or(RegionId::TOP);
            found.entry(*operand).or_default().push(paths.find(*operand, used, home));
        }
    }
    found.retain(|_, paths| {
        reduce(paths);
        paths.len() <= MOST_PATHS && paths.iter().all(|path| !path.is_empty())
    });
    found
}

/// The nodes that outputs need, in the order of a search from the outputs. This order does not depend on the order in which the program's nodes were
/// made, so the guards do not depend on it either.
fn from_outputs(model: &TypedModel) -> Vec<Id> {
    let mut seen = vec![false; model.graph.len()];
    let mut order = Vec::new();
    let mut stack: Vec<Id> = model.outputs.iter().rev().map(|(_, output)| *output).collect();
    while let Some(node) = stack.pop() {
        if !std::mem::replace(&mut seen[node.index()], true) {
            order.push(node);
            stack.extend(model.graph.operands(node).iter().rev());
        }
    }
    order
}

/// Computes which nodes may be on a cycle, or need one, once there are guards, because the condition of a guard can contain a guarded node in a
/// branch. Nodes are settled from the leaves up: a node after its operands, and a guarded node also after the conditions of its guard. Nodes that are
/// never settled are on a cycle or need one. Empty if there is no cycle.
fn on_circles(graph: &TypedGraph, guards: &Guards) -> Vec<bool> {
    let mut needs: Vec<(Id, Id)> = Vec::new();
    for (node, paths) in guards {
        needs.extend(paths.iter().flat_map(Path::conditions).map(|condition| (*node, condition)));
        for (moved, around) in paths.iter().flat_map(Path::moved) {
            needs.extend(around.conditions().map(|condition| (moved, condition)));
        }
    }
    // Operands come before their users, so only a condition that comes later can close a cycle.
    if needs.iter().all(|(node, condition)| condition < node) {
        return Vec::new();
    }
    let mut unsettled = vec![0_u32; graph.len()];
    let mut users: Vec<Vec<Id>> = vec![Vec::new(); graph.len()];
    let operands = graph.ids().flat_map(|node| graph.operands(node).iter().map(move |operand| (node, *operand)));
    for (node, needed) in operands.chain(needs) {
        unsettled[node.index()] += 1;
        users[needed.index()].push(node);
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
    unsettled.into_iter().map(|left| left > 0).collect()
}

/// Returns true if the guarded node `node`, or a condition that is moved for its guard, is marked in `these`.
fn needs_any(node: Id, paths: &[Path], these: &[bool]) -> bool {
    let mut all = paths.iter().flat_map(Path::moved).map(|(moved, _)| moved).chain([node]);
    all.any(|node| these.get(node.index()).is_some_and(|one| *one))
}

/// Returns true if the program itself has a conditional at the node `origin`. False for conditionals that a rewrite made from another operator.
fn is_written(program: &Program, registry: &Registry, origin: NodeId) -> bool {
    match program.graph.node(origin) {
        Node::Operator(name, _) => {
            matches!(registry.find(program.graph.name(name)), Some(id::WHERE | id::SHORT_WHERE))
        }
        _ => false,
    }
}

/// Returns a constant of the type `qtype`, for a branch whose value is not used; `None` for tuples and other types without such a constant.
pub(in crate::pass) fn placeholder_value(qtype: &QType) -> Option<Value> {
    match *qtype {
        QType::Optional(scalar) => Some(Value::Missing(scalar)),
        QType::Scalar(Scalar::Text) => Some(Value::text("")),
        QType::Scalar(Scalar::Bytes) => Some(Value::Scalar(ScalarValue::Bytes([].into()))),
        QType::Scalar(scalar) => Some(Value::Scalar(ScalarValue::from_bits(scalar, 0)?)),
        _ => None,
    }
}

/// Rebuilds the graph with the guards. A guard depends on conditions that may come after the node's users, so nodes are visited from the
/// outputs down, not in the old order. Returns false, and changes nothing, if all guards existed before.
fn rebuild(model: &mut TypedModel, registry: &Registry, guards: &Guards) -> bool {
    let mut added = false;
    let old = std::mem::take(&mut model.graph);
    let mut new = old.empty_like();
    // The copy of each node, with its guard if it has one.
    let mut copies: Vec<Option<Id>> = vec![None; old.len()];
    enum Todo {
        Visit(Id),
        Copy(Id),
    }
    let mut stack: Vec<Todo> = model.outputs.iter().rev().map(|(_, output)| Todo::Visit(*output)).collect();
    while let Some(todo) = stack.pop() {
        match todo {
            Todo::Visit(node) => {
                if copies[node.index()].is_none() {
                    stack.push(Todo::Copy(node));
                    stack.extend(guards.get(&node).into_iter().flatten().flat_map(Path::conditions).map(Todo::Visit));
                    stack.extend(old.operands(node).iter().rev().map(|operand| Todo::Visit(*operand)));
                }
            }
            Todo::Copy(node) => {
                if copies[node.index()].is_none() {
                    let operands: smallvec::SmallVec<[Id; 4]> =
                        old.operands(node).iter().map(|o| copies[o.index()].unwrap_or(Id::from_index(0))).collect();
                    let copy = new.copy_node(&old, node, &operands);
                    let guard = guards.get(&node).and_then(|paths| guard(&mut new, registry, copy, paths, &copies));
                    added |= guard.is_some();
                    copies[node.index()] = Some(guard.unwrap_or(copy));
                }
            }
        }
    }
    if added {
        for (_, output) in &mut model.outputs {
            *output = copies[output.index()].unwrap_or(Id::from_index(0));
        }
    }
    model.graph = if added { new } else { old };
    added
}

/// Makes the guard of `node`: a conditional that evaluates `node` if one of its uses is evaluated. `None` if `node` is a guard with this condition
/// already. This occurs because an expensive node makes its guard expensive too, so the next round considers the guard.
fn guard(graph: &mut TypedGraph, registry: &Registry, node: Id, paths: &[Path], copies: &[Option<Id>]) -> Option<Id> {
    let origin = graph.origin(node);
    let mut any: Option<Id> = None;
    for path in paths {
        let mask = path.mask(graph, registry, copies, origin)?;
        any = Some(match any {
            Some(so_far) if so_far != mask => bound(graph, registry, id::PRESENCE_OR, &[so_far, mask], origin)?,
            _ => mask,
        });
    }
    let is_conditional = matches!(graph.kind(node), Kind::Where { .. });
    if let [condition, _, off] = *graph.operands(node)
        && is_conditional
        && Some(condition) == any
        && matches!(graph.kind(off), Kind::Literal(_))
    {
        return None;
    }
    let unseen = graph.literal(placeholder_value(graph.qtype(node))?, origin);
    // It is always lazy, so that a path may go through it whatever it guards.
    let qtype = graph.qtype(node).clone();
    Some(graph.add(Kind::LAZY, &[any?, node, unseen], &qtype, origin))
}
