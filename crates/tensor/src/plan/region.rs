//! Groups elementwise maps into steps. A map is either fused into the steps that read it, or computed once into memory.
//! All readers of a map are known before this is decided, because nodes are visited once, from the outputs to the
//! leaves. So planning takes linear time.

use super::guards::{Guards, branches};
use super::view::View;
use super::{Region, Step, ViewedNode, Work, is_view};
use crate::body::{Body, BodyStep, Operand};
use crate::maps::{ElementOperator, OperandType, resolve};
use crate::node::{Node, Operation};
use crate::{TensorGraph, TensorNodeId};
use cembra_ops::Registry;
use cembra_runtime::Scalar;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// The most steps of a body (an elementwise expression). Longer bodies are cut, so that no expression is too long to be
/// compiled.
const MOST_STEPS: usize = 256;

/// The most readers of a map that is computed again in each of its readers. A map with more readers is computed once,
/// into memory.
const MOST_READERS: usize = 8;

/// The cost of writing an element to memory and reading it again, in simple operations.
const MEMORY: u64 = 8;

/// The cost of an operator that takes many instructions, or a call, in simple operations.
const LONG: u64 = 20;

/// The operands from which a node is computed within a step, each with the view through which the step reads it.
type Parts = SmallVec<[ViewedNode; 2]>;

/// An operator, by its number, and the types of its operands.
type OperatorOn = (u16, SmallVec<[Scalar; 4]>);

/// The readers of each node, by position.
struct Readers {
    /// For each node, the steps that read it. A step is named by the node that it computes, and has the view through
    /// which it reads the node.
    all: Vec<Vec<ViewedNode>>,
    /// Marks the nodes that must have a value in memory.
    is_forced: Vec<bool>,
}

impl Readers {
    fn add(&mut self, graph: &TensorGraph, node: TensorNodeId, root: TensorNodeId, view: View) {
        let at = node.index();
        // The readers of leaves, of constants and of nodes with a value are not needed.
        if self.is_forced[at] || matches!(graph.node(node).operation, Operation::Leaf(_) | Operation::Constant(_)) {
            return;
        }
        let known = &mut self.all[at];
        if known.iter().any(|(other, seen)| (*other, seen) == (root, &view)) {
            return;
        }
        if known.len() == MOST_READERS {
            self.is_forced[at] = true;
            known.clear();
        } else {
            known.push((root, view));
        }
    }
}

/// The cost of a node's operator per element, in simple operations, and whether it may stop the evaluation.
fn cost(registry: &Registry, graph: &TensorGraph, node: &Node) -> (u64, bool) {
    let Operation::Map(op) = &node.operation else { return (0, false) };
    let (cost, may_stop, _) = cost_on(registry, op, &graph.operand_types(op.id(), &node.operands));
    (cost, may_stop)
}

/// Returns the cost per element of an operator on operands of these types, in simple operations; whether the operator
/// may stop the evaluation; and the type of its result, `None` if it is not known.
fn cost_on(registry: &Registry, op: &ElementOperator, operands: &[OperandType]) -> (u64, bool, Option<Scalar>) {
    let Ok(resolved) = resolve(registry, op, operands) else { return (LONG, true, None) };
    let ret = resolved.signature.ret.scalar();
    let Some(overload) = resolved.overload else { return (LONG, !registry.get(op.id()).is_total(), ret) };
    let effects = registry.effects(op.id(), overload);
    let cost = match effects.cost {
        _ if effects.is_call => LONG,
        Some(cost) => u64::from(cost).clamp(1, LONG),
        None => LONG,
    };
    (cost, effects.may_stop(), ret)
}

/// The cost of an elementwise body per element, counted in simple operations.
#[must_use]
pub fn cost_of_body(registry: &Registry, body: &Body) -> u64 {
    let mut types: Vec<Option<OperandType>> = body.inputs.iter().map(|scalar| Some((*scalar, None))).collect();
    let mut all = 0_u64;
    for step in &body.steps {
        let made = match step {
            BodyStep::Constant(scalar, bits) => Some((*scalar, Some(*bits))),
            BodyStep::Apply(op, operands) => {
                let operand = |operand: &u32| types.get(*operand as usize).copied().flatten();
                let (cost, ret) = match operands.iter().map(operand).collect::<Option<SmallVec<[OperandType; 4]>>>() {
                    Some(types) => {
                        let (cost, _, ret) = cost_on(registry, op, &types);
                        (cost, ret.map(|scalar| (scalar, None)))
                    }
                    None => (LONG, None),
                };
                all = all.saturating_add(cost);
                ret
            }
        };
        types.push(made);
    }
    all
}

/// Returns true if the node is an operator whose evaluation may fail.
pub(super) fn may_stop(graph: &TensorGraph, node: TensorNodeId) -> bool {
    cost(graph.registry(), graph, graph.node(node)).1
}

/// Returns the steps that compute `outputs`, each after the steps whose values it reads, and the guards of the nodes.
pub(super) fn steps(graph: &TensorGraph, outputs: &[TensorNodeId]) -> (Vec<Step>, Guards) {
    let needed = graph.needed(outputs);
    let costs = costs(graph, &needed);
    let mut guards = Guards::of(graph, outputs, &needed);
    // Maps are mostly computed where they are read, so they alone are no reason to compute a condition first.
    let is_worth = |id: TensorNodeId| match graph.node(id).operation {
        Operation::Leaf(_) | Operation::Constant(_) | Operation::Tensor(_) => false,
        Operation::Map(_) => costs[id.index()].1,
        _ => !is_view(graph, graph.node(id)),
    };
    let has_own = [outputs, &guards.conditions(graph, is_worth)].concat();
    let is_made = made(graph, &has_own, &needed, &costs);
    guards.keep(|id| is_made[id.index()] || matches!(graph.node(id).operation, Operation::Leaf(_)));
    let mut steps: Vec<Step> = Vec::new();
    for (id, node) in graph.nodes().filter(|(id, _)| is_made[id.index()]) {
        let work = match &node.operation {
            Operation::Map(_) if !node.operands.is_empty() => Work::Map(region(graph, &is_made, id, true)),
            Operation::Reduce(reduction, axes) => {
                let of = region(graph, &is_made, node.operands[0], false);
                Work::Reduce { reduction: *reduction, axes: axes.clone(), of, then: None }
            }
            Operation::Contract(labels) if labels.operands.len() == 2 => Work::Product { product: id, then: None },
            _ => Work::Node,
        };
        steps.push(Step::new(id, work));
    }
    // A condition that has a value must remain a step of its own.
    let has_own = [outputs, &guards.conditions(graph, |id| is_made[id.index()])].concat();
    (with_epilogues(graph, &has_own, steps, &guards), guards)
}

/// Marks the nodes whose values are stored when elements of `output` are computed one at a time. In this case storing a
/// value never saves time. So the value of a map is stored only where its expression would otherwise become too long,
/// or be repeated too often.
#[must_use]
pub fn computed_alone(graph: &TensorGraph, output: TensorNodeId) -> Vec<bool> {
    let needed = graph.needed(&[output]);
    let mut costs = costs(graph, &needed);
    costs.iter_mut().for_each(|(cost, _)| *cost = 0);
    // A conditional asks for its condition first, and then for one branch, so these have values.
    let mut has_own = vec![output];
    for (id, node) in graph.nodes().filter(|(id, node)| needed[id.index()] && branches(graph, node).is_some()) {
        has_own.push(id);
        has_own.extend(&node.operands);
    }
    made(graph, &has_own, &needed, &costs)
}

/// Returns the cost per element of each node, in simple operations, including all operands that are not stored in
/// memory; and whether the node itself may stop the evaluation.
fn costs(graph: &TensorGraph, needed: &[bool]) -> Vec<(u64, bool)> {
    let mut costs = vec![(0_u64, false); graph.len()];
    // Most nodes share their operator and types with other nodes.
    let mut known: FxHashMap<OperatorOn, (u64, bool)> = FxHashMap::default();
    for (id, node) in graph.nodes().filter(|(id, _)| needed[id.index()]) {
        costs[id.index()] = match &node.operation {
            Operation::Map(op) => {
                let types = node.operands.iter().map(|operand| graph.node(*operand).scalar).collect();
                let own = || cost(graph.registry(), graph, node);
                let (own, may_stop) = match op.has_texts() {
                    // The texts are part of the function, so types alone do not identify it.
                    true => own(),
                    false => *known.entry((op.id().index() as u16, types)).or_insert_with(own),
                };
                let operands = node.operands.iter().map(|operand| costs[operand.index()].0);
                (operands.fold(own, u64::saturating_add).min(1 << 32), may_stop)
            }
            _ if is_view(graph, node) => (costs[node.operands[0].index()].0, false),
            _ => (0, false),
        };
    }
    costs
}

/// Marks the nodes whose values steps compute into memory. Nodes in `has_own` that are not inputs are always among
/// them.
fn made(graph: &TensorGraph, has_own: &[TensorNodeId], needed: &[bool], costs: &[(u64, bool)]) -> Vec<bool> {
    let mut is_made = vec![false; graph.len()];
    let mut readers = Readers { all: vec![Vec::new(); graph.len()], is_forced: vec![false; graph.len()] };
    for node in has_own {
        readers.is_forced[node.index()] = true;
    }
    // The number of steps of the body that computes a node.
    let mut lengths: FxHashMap<TensorNodeId, usize> = FxHashMap::default();
    for at in (0..graph.len()).rev().filter(|at| needed[*at]) {
        let id = graph.id(at as u32);
        let node = graph.node(id);
        let by = std::mem::take(&mut readers.all[at]);
        let is_forced = readers.is_forced[at];
        match &node.operation {
            Operation::Leaf(_) => {}
            Operation::Constant(_) => is_made[at] = is_forced,
            Operation::Map(_) => {
                let size = |id: TensorNodeId| graph.extents(id).iter().product::<usize>() as u128;
                let space = |root: TensorNodeId| match graph.node(root).operation {
                    Operation::Reduce(..) => size(graph.node(root).operands[0]),
                    _ => size(root),
                };
                let (cost, may_stop) = costs[at];
                let computed: u128 = by.iter().map(|(root, _)| space(*root)).sum();
                let again = computed.saturating_sub(size(id)).saturating_mul(u128::from(cost));
                let is_short = by.iter().all(|(root, _)| lengths.get(root).is_none_or(|length| *length < MOST_STEPS));
                // A map that may stop the evaluation must be evaluated, so it is not left to expressions that may skip it.
                is_made[at] = is_forced
                    || may_stop
                    || node.operands.is_empty()
                    || !is_short
                    || again > u128::from(MEMORY) * size(id);
                let own = [(id, View::identity(&node.extents))];
                for (root, view) in if is_made[at] { &own[..] } else { &by[..] } {
                    let constants = node.operands.iter().filter(|operand| is_constant(graph, **operand)).count();
                    *lengths.entry(*root).or_insert(0) += 1 + constants;
                    for operand in &node.operands {
                        if let Some(seen) = View::of_operand(node, graph.node(*operand)) {
                            readers.add(graph, *operand, *root, view.then(&seen));
                        }
                    }
                }
            }
            Operation::Reduce(..) => {
                is_made[at] = true;
                let operand = node.operands[0];
                readers.add(graph, operand, id, View::identity(graph.extents(operand)));
            }
            _ if is_view(graph, node) => {
                is_made[at] = is_forced;
                let operand = node.operands[0];
                if is_forced {
                    // Readers of a view in memory read its operand, which must have a value too.
                    readers.is_forced[operand.index()] = true;
                } else if let Some(seen) = View::of_operand(node, graph.node(operand)) {
                    for (root, view) in &by {
                        readers.add(graph, operand, *root, view.then(&seen));
                    }
                }
            }
            _ => {
                is_made[at] = true;
                for operand in node.read() {
                    readers.is_forced[operand.index()] = true;
                }
            }
        }
    }
    is_made
}

fn is_constant(graph: &TensorGraph, node: TensorNodeId) -> bool {
    matches!(graph.node(node).operation, Operation::Constant(_))
}

/// Returns the region (fused elementwise maps) that computes the node `root` in one step: an elementwise expression
/// over nodes that have values, which `is_made` marks.
///
/// If `own` is true, `root` itself is computed here although it is marked, because this is the step that computes it.
#[must_use]
pub fn region(graph: &TensorGraph, is_made: &[bool], root: TensorNodeId, own: bool) -> Region {
    let node = graph.node(root);
    let has_value = |id: TensorNodeId| {
        let is_leaf = matches!(graph.node(id).operation, Operation::Leaf(_));
        is_leaf || is_made[id.index()]
    };
    // Follows views to their operands.
    let resolved = |mut id: TensorNodeId, mut view: View| -> ViewedNode {
        while !has_value(id) && is_view(graph, graph.node(id)) {
            let operand = graph.node(id).operands[0];
            let Some(seen) = View::of_operand(graph.node(id), graph.node(operand)) else { break };
            (id, view) = (operand, view.then(&seen));
        }
        if is_constant(graph, id) { (id, View::identity(&[])) } else { (id, view) }
    };
    let first = resolved(root, View::identity(&node.extents));
    let mut found: FxHashMap<ViewedNode, Parts> = FxHashMap::default();
    let mut open = vec![first.clone()];
    while let Some(pair) = open.pop() {
        if found.contains_key(&pair) {
            continue;
        }
        let inner = graph.node(pair.0);
        let mut operands: Parts = SmallVec::new();
        let is_computed =
            matches!(inner.operation, Operation::Map(_)) && (!has_value(pair.0) || (own && pair.0 == root));
        if is_computed {
            for operand in &inner.operands {
                if let Some(seen) = View::of_operand(inner, graph.node(*operand)) {
                    operands.push(resolved(*operand, pair.1.then(&seen)));
                }
            }
            open.extend(operands.iter().cloned());
        }
        found.insert(pair, operands);
    }
    Region::of(graph, &first, node, found)
}

impl Region {
    /// Builds a region from pairs of nodes and views, with the operands of each. A pair without operands is an input or a constant.
    fn of(graph: &TensorGraph, root: &ViewedNode, node: &Node, found: FxHashMap<ViewedNode, Parts>) -> Region {
        let mut body = Body::default();
        let mut inputs = Vec::new();
        let mut pairs: Vec<(ViewedNode, Parts)> = found.into_iter().collect();
        // Operands have lower numbers, so this is an order in which everything can be computed.
        pairs.sort_by(|a, b| a.0.cmp(&b.0));
        let mut places: FxHashMap<&ViewedNode, Operand> = FxHashMap::default();
        for (pair, _) in pairs.iter().filter(|(pair, operands)| operands.is_empty() && !is_constant(graph, pair.0)) {
            places.insert(pair, body.inputs.len() as Operand);
            body.inputs.push(graph.node(pair.0).scalar);
            inputs.push(pair.clone());
        }
        for (pair, operands) in
            pairs.iter().filter(|(pair, operands)| !operands.is_empty() || is_constant(graph, pair.0))
        {
            let inner = graph.node(pair.0);
            places.insert(pair, (body.inputs.len() + body.steps.len()) as Operand);
            body.steps.push(match &inner.operation {
                Operation::Map(op) => {
                    let place = |pair: &ViewedNode| places.get(pair).copied().unwrap_or(0);
                    BodyStep::Apply(op.clone(), operands.iter().map(place).collect())
                }
                Operation::Constant(bits) => BodyStep::Constant(inner.scalar, *bits),
                _ => continue,
            });
        }
        body.outputs = vec![(places.get(root).copied().unwrap_or(0), node.scalar)];
        Region { extents: node.extents.clone(), body, inputs }
    }
}

/// Moves elementwise maps into the step of the reduction or product whose result they read, if no other step reads that
/// result, and if both steps are run under the same conditions.
fn with_epilogues(graph: &TensorGraph, has_own: &[TensorNodeId], mut steps: Vec<Step>, guards: &Guards) -> Vec<Step> {
    let mut uses = vec![0_u32; graph.len()];
    for node in has_own.iter().copied().chain(steps.iter().flat_map(|step| step.reads(graph))) {
        uses[node.index()] += 1;
    }
    let mut led: FxHashMap<TensorNodeId, usize> = FxHashMap::default();
    for at in 0..steps.len() {
        if matches!(steps[at].work, Work::Reduce { .. } | Work::Product { .. }) {
            led.insert(steps[at].node, at);
            continue;
        }
        let Work::Map(map) = &steps[at].work else { continue };
        let fits = |(node, view): &ViewedNode| {
            let extents = graph.extents(*node);
            let is_alike = guards.get(*node) == guards.get(steps[at].node);
            is_alike && uses[node.index()] == 1 && *extents == map.extents[..] && *view == View::identity(extents)
        };
        let first = map.inputs.iter().position(|input| fits(input) && led.contains_key(&input.0));
        let Some((first, before)) = first.and_then(|first| Some((first, led.remove(&map.inputs[first].0)?))) else {
            continue;
        };
        let work = std::mem::replace(&mut steps[before].work, Work::Node);
        let map = std::mem::replace(&mut steps[at].work, work);
        if let (Work::Map(mut map), Work::Reduce { then, .. } | Work::Product { then, .. }) = (map, &mut steps[at].work)
        {
            map.bring_to_front(first);
            *then = Some(map);
        }
        steps[before].node = steps[at].node;
    }
    // If two steps make one node, the first is the place that a reduction was moved from.
    let last: FxHashMap<TensorNodeId, usize> = steps.iter().enumerate().map(|(at, step)| (step.node, at)).collect();
    let mut at = 0;
    steps.retain(|step| {
        at += 1;
        last.get(&step.node) == Some(&(at - 1))
    });
    steps
}

impl Region {
    /// Exchanges the input number `input` with the first input.
    fn bring_to_front(&mut self, input: usize) {
        self.inputs.swap(0, input);
        self.body.inputs.swap(0, input);
        let swapped = |operand: Operand| match operand as usize {
            0 => input as Operand,
            at if at == input => 0,
            _ => operand,
        };
        for step in &mut self.body.steps {
            if let BodyStep::Apply(_, operands) = step {
                operands.iter_mut().for_each(|operand| *operand = swapped(*operand));
            }
        }
        for (operand, _) in &mut self.body.outputs {
            *operand = swapped(*operand);
        }
    }
}
