//! Recomputation: if a node is cheaper to compute again in a later pass over the elements than to store as an array
//! until then, the later pass gets a copy of the node. A copy has the same operands, so no value changes. Expensive
//! nodes and outputs of the model are stored.

use crate::passes::{Passes, Role};
use cembra_prepare::{Id, RegionModel, TypedGraph};
use cembra_runtime::QType;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

/// The highest cost per element at which a node is computed again instead of being stored, in the unit of
/// `Effects::cost`, in which a float division costs 4. For arrays that are larger than the caches, writing and
/// rereading an element takes about as long.
const MOST: u32 = 8;

/// The cost per element of giving each element the value of its group, in the unit of `Effects::cost`.
const EXPAND: u32 = 2;

/// Returns the model with copies of nodes that are cheaper to compute again than to store; `None` if there are no such nodes.
pub(crate) fn recomputed(placed: &RegionModel, passes: &Passes, needed: &[bool]) -> Option<RegionModel> {
    let graph = &placed.model.graph;
    let costs = costs(placed, passes, needed);
    let is_near = |a: Id, b: Id| placed.region(a) == placed.region(b);
    // Pairs of a node and a later pass in which it is computed again.
    let mut wanted: FxHashSet<(Id, u32)> = FxHashSet::default();
    let mut of_nodes: FxHashMap<Id, SmallVec<[u32; 2]>> = FxHashMap::default();
    for user in graph.ids().rev().filter(|user| needed[user.index()]) {
        let pass = passes.of_nodes[user.index()];
        let own = passes.roles[user.index()].is_swept().then_some(pass.number);
        let copies = of_nodes.get(&user).cloned().unwrap_or_default();
        for number in own.into_iter().chain(copies) {
            for operand in graph.operands(user) {
                let of = passes.of_nodes[operand.index()];
                let again = costs[operand.index()].is_some_and(|cost| cost > 0)
                    && of.number < number
                    && of.domain == pass.domain
                    && is_near(user, *operand);
                if again && wanted.insert((*operand, number)) {
                    of_nodes.entry(*operand).or_default().push(number);
                }
            }
        }
    }
    if wanted.is_empty() {
        return None;
    }
    let mut made = graph.empty_like();
    let mut regions = placed.regions.clone();
    regions.of_nodes.clear();
    let mut copies: FxHashMap<(Id, Option<u32>), Id> = FxHashMap::default();
    for node in graph.ids() {
        let later = of_nodes.get(&node).into_iter().flatten().map(|number| Some(*number));
        for copy in std::iter::once(None).chain(later) {
            let number = copy.unwrap_or(passes.of_nodes[node.index()].number);
            let is_swept = passes.roles[node.index()].is_swept();
            let operand = |operand: &Id| {
                let again = Some(number).filter(|number| is_swept && wanted.contains(&(*operand, *number)));
                copies[&(*operand, again)]
            };
            let operands: SmallVec<[Id; 4]> = graph.operands(node).iter().map(operand).collect();
            let id = made.copy_apart(graph, node, &operands);
            regions.of_nodes.resize(made.len(), placed.region(node));
            copies.insert((node, copy), id);
        }
    }
    let moved = |node: &Id| copies[&(*node, None)];
    regions.branches = placed.regions.branches.iter().map(|(node, regions)| (moved(node), *regions)).collect();
    regions.loops = placed.regions.loops.iter().map(|(node, region)| (moved(node), *region)).collect();
    let mut model = placed.model.clone();
    model.outputs = placed.model.outputs.iter().map(|(name, node)| (name.clone(), moved(node))).collect();
    model.graph = made;
    Some(RegionModel { model, regions })
}

/// Returns the cost per element of computing each node again in a later pass, including its operands. The cost is 0 for
/// nodes whose value is available in every later pass, and `None` for nodes that must be stored.
fn costs(placed: &RegionModel, passes: &Passes, needed: &[bool]) -> Vec<Option<u32>> {
    let graph = &placed.model.graph;
    let mut costs: Vec<Option<u32>> = vec![Some(0); graph.len()];
    for node in graph.ids().filter(|node| needed[node.index()]) {
        let own = match passes.roles[node.index()] {
            Role::Stream => element_cost(placed, node),
            Role::Expand => Some(EXPAND),
            // A scan adds in order, so it cannot be repeated for parts.
            Role::Scan => None,
            Role::Source | Role::Scalar | Role::Fold | Role::Whole => continue,
        };
        let mut all = graph.operands(node).iter().map(|operand| costs[operand.index()]).chain([own]);
        let sum = all.try_fold(0_u32, |sum, cost| sum.checked_add(cost?));
        costs[node.index()] = sum.map(|sum| sum.max(1)).filter(|sum| *sum <= MOST);
    }
    placed.model.outputs.iter().for_each(|(_, node)| costs[node.index()] = Some(0));
    costs
}

/// The cost per element of an elementwise operator. `None` if the cost is not known, because the operator may fail or
/// calls a function.
fn element_cost(placed: &RegionModel, node: Id) -> Option<u32> {
    let (graph, registry) = (&placed.model.graph, placed.model.registry);
    let op = graph.op(node)?;
    let mut of_one = TypedGraph::new([].into(), 4);
    let mut operands: SmallVec<[Id; 4]> = SmallVec::new();
    for (at, operand) in graph.operands(node).iter().enumerate() {
        let qtype: QType = graph.qtype(*operand).of_each();
        operands.push(match graph.value(*operand) {
            Some(value) if graph.qtype(*operand).is_framed() => of_one.literal(value.clone(), graph.origin(node)),
            _ => of_one.add(cembra_prepare::Kind::Leaf(at as u32), &[], &qtype, graph.origin(node)),
        });
    }
    of_one.apply(registry, op, &operands, graph.origin(node)).ok()?;
    let added = of_one.ids().filter(|id| of_one.op(*id).is_some());
    added.map(|id| of_one.effects(registry, id)?.cost).try_fold(0_u32, |sum, cost| sum.checked_add(cost?))
}
