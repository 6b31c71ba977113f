//! Inputs on demand: an operator asks the caller for the value when the evaluation needs it. An input that every evaluation needs becomes a leaf,
//! which is always read. Any other input is asked for in each region (branch, loop or top) that uses it. A value that a few cheap operators compute
//! from such inputs is also computed in each region, with copies of the nodes. The caller caches the inputs, so asking twice costs less than a guard
//! (a conditional around shared nodes), and no input is asked for in a branch that is not taken, however many branches share it.

use super::Analysis;
use crate::{Id, Kind, RegionId, TypedGraph, TypedModel};
use cembra_ops::{Effects, Registry, Structure, id};
use cembra_value::Value;
use smallvec::SmallVec;

/// The most operators, inputs included, that a node may be computed with so that each region gets its own copy.
const MOST_OPERATORS: u32 = 16;

/// The most regions of a node with which its other regions are compared, to find regions inside of them. The outermost regions are used, which are
/// the most likely to contain others.
const MOST_COMPARED: usize = 64;

/// Returns true if the node asks for an input.
pub(super) fn is_asked(graph: &TypedGraph, node: Id) -> bool {
    graph.op(node) == Some(id::COLUMN_ASK)
}

/// Returns true if some node asks for an input.
pub(super) fn is_any_asked(graph: &TypedGraph) -> bool {
    graph.ids().any(|node| is_asked(graph, node))
}

/// Returns one flag per node, by index: true if each region that uses the node gets its own copy. These nodes are inputs on demand, and values that
/// at most [`MOST_OPERATORS`] operators compute from such inputs, without calls or possible failures.
pub(super) fn repeated(graph: &TypedGraph, registry: &Registry) -> Vec<bool> {
    // The number of operators that a node is computed with, some of which may count twice. 0 if it needs no input on demand, the maximum if it is not
    // cheap.
    let mut sizes = vec![0_u32; graph.len()];
    for node in graph.ids() {
        let made_of =
            graph.operands(node).iter().fold(0, |sum: u32, operand| sum.saturating_add(sizes[operand.index()]));
        sizes[node.index()] = match made_of {
            0 => u32::from(is_asked(graph, node)),
            _ if is_cheap(graph, registry, node) => made_of.saturating_add(1),
            _ => u32::MAX,
        };
    }
    sizes.into_iter().map(|size| (1..=MOST_OPERATORS).contains(&size)).collect()
}

/// Returns true if the node is an operator that cannot fail, calls nothing and has no branches.
fn is_cheap(graph: &TypedGraph, registry: &Registry, node: Id) -> bool {
    let Kind::Operator { op, .. } = graph.kind(node) else { return false };
    match graph.effects(registry, node) {
        Some(effects) => !Effects::is_worth_skipping(effects),
        None => matches!(registry.structure(op), Some(Structure::MakeTuple | Structure::MakeNamed | Structure::GetNth)),
    }
}

/// Replaces inputs on demand that every evaluation needs by leaves (inputs that are always read). Returns false if no input was replaced.
pub(super) fn keep_needed(model: &mut TypedModel, analysis: &Analysis) -> bool {
    let graph = &model.graph;
    let mut is_needed = vec![false; graph.len()];
    for (_, output) in &model.outputs {
        is_needed[output.index()] = true;
    }
    let mut finds_some = false;
    for node in graph.ids().rev().filter(|node| analysis.regions[node.index()].is_some()) {
        if !is_needed[node.index()] {
            continue;
        }
        finds_some |= is_asked(graph, node);
        let used_in = analysis.used_in(graph, node, RegionId::TOP);
        for (at, operand) in graph.operands(node).iter().enumerate() {
            let used = *used_in.get(at).unwrap_or(&RegionId::TOP);
            is_needed[operand.index()] |= analysis.home_of_use(*operand, used) == RegionId::TOP;
        }
    }
    if !finds_some {
        return false;
    }
    let old = std::mem::take(&mut model.graph);
    let mut new = old.empty_like();
    let mut copies: Vec<Id> = vec![Id::from_index(0); old.len()];
    for node in old.ids().filter(|node| analysis.regions[node.index()].is_some()) {
        copies[node.index()] = if is_needed[node.index()] && is_asked(&old, node) {
            ask_at(&mut new, &old, node, None)
        } else {
            let operands: SmallVec<[Id; 4]> =
                old.operands(node).iter().map(|operand| copies[operand.index()]).collect();
            new.copy_node(&old, node, &operands)
        };
    }
    for (_, output) in &mut model.outputs {
        *output = copies[output.index()];
    }
    model.graph = new;
    true
}

/// Gives each region (branch, loop or top) that uses a repeated node its own copy of the node. The top region reads leaves instead of asking for
/// inputs.
pub(super) fn repeat(model: &mut TypedModel, analysis: &Analysis) {
    let is_repeated = repeated(&model.graph, model.registry);
    let places = RegionCopies::of(model, analysis, &is_repeated);
    let old = std::mem::take(&mut model.graph);
    let mut new = old.empty_like();
    // The copies of each node: one per place of a repeated node, otherwise a single one.
    let mut copies: Vec<SmallVec<[Id; 1]>> = vec![SmallVec::new(); old.len()];
    for node in old.ids() {
        let Some(region) = analysis.regions[node.index()] else { continue };
        let mut made = SmallVec::new();
        for (at, place) in
            places.of_node(node).iter().copied().chain((!is_repeated[node.index()]).then_some(region)).enumerate()
        {
            if is_asked(&old, node) {
                made.push(ask_at(&mut new, &old, node, (place != RegionId::TOP).then_some(at)));
                continue;
            }
            let used_in = analysis.used_in(&old, node, place);
            let operands = old.operands(node).iter().enumerate().map(|(at, operand)| {
                let used = *used_in.get(at).unwrap_or(&place);
                let copy = places.position(analysis, *operand, analysis.home_of_use(*operand, used));
                copies[operand.index()].get(copy).copied().unwrap_or(Id::from_index(0))
            });
            let operands: SmallVec<[Id; 4]> = operands.collect();
            made.push(new.copy_node(&old, node, &operands));
        }
        copies[node.index()] = made;
    }
    for (_, output) in &mut model.outputs {
        *output = copies[output.index()].first().copied().unwrap_or(Id::from_index(0));
    }
    model.graph = new;
}

/// For each repeated node, the regions with their own copy of it.
struct RegionCopies {
    /// For each node, by index, the regions with a copy of it, outermost first. No region is inside of one of the first [`MOST_COMPARED`].
    of_nodes: Vec<Vec<RegionId>>,
}

impl RegionCopies {
    fn of(model: &TypedModel, analysis: &Analysis, is_repeated: &[bool]) -> RegionCopies {
        let graph = &model.graph;
        let mut of_nodes: Vec<Vec<RegionId>> = vec![Vec::new(); graph.len()];
        for (_, output) in model.outputs.iter().filter(|(_, output)| is_repeated[output.index()]) {
            of_nodes[output.index()].push(RegionId::TOP);
        }
        // Users come after operands, so in reverse order all uses of a node are known when it is visited.
        for node in graph.ids().rev() {
            let Some(region) = analysis.regions[node.index()] else { continue };
            let mut own = std::mem::take(&mut of_nodes[node.index()]);
            retain_outermost(analysis, &mut own);
            let regions = own.iter().copied().chain((!is_repeated[node.index()]).then_some(region));
            for region in regions {
                let used_in = analysis.used_in(graph, node, region);
                for (at, operand) in graph.operands(node).iter().enumerate().filter(|(_, o)| is_repeated[o.index()]) {
                    let used = *used_in.get(at).unwrap_or(&region);
                    of_nodes[operand.index()].push(analysis.home_of_use(*operand, used));
                }
            }
            of_nodes[node.index()] = own;
        }
        RegionCopies { of_nodes }
    }

    fn of_node(&self, node: Id) -> &[RegionId] {
        &self.of_nodes[node.index()]
    }

    /// The index of the copy of `node` for a use in the region `used`; 0 if the node has at most one copy.
    fn position(&self, analysis: &Analysis, node: Id, used: RegionId) -> usize {
        let places = self.of_node(node);
        if places.len() <= 1 {
            return 0;
        }
        let around = || places.iter().take(MOST_COMPARED).position(|place| analysis.is_inside(used, *place));
        places.binary_search(&used).ok().or_else(around).unwrap_or(0)
    }
}

/// Drops duplicates in `places`, and regions that are inside of another region in `places`.
fn retain_outermost(analysis: &Analysis, places: &mut Vec<RegionId>) {
    // A region comes after its enclosing regions.
    places.sort_unstable();
    places.dedup();
    if places.first() == Some(&RegionId::TOP) {
        places.truncate(1);
    }
    let mut outer: SmallVec<[RegionId; 4]> = SmallVec::new();
    places.retain(|place| {
        let is_outer = outer.iter().all(|other| !analysis.is_inside(*place, *other));
        outer.extend((is_outer && outer.len() < MOST_COMPARED).then_some(*place));
        is_outer
    });
}

/// Makes the node for an input on demand. If `place` is a number, the node asks the caller for the value; the number distinguishes the copies for
/// several regions. If `place` is `None`, the node is the input's leaf.
fn ask_at(new: &mut TypedGraph, old: &TypedGraph, node: Id, place: Option<usize>) -> Id {
    let (qtype, origin) = (old.qtype(node), old.origin(node));
    let [view, number] = *old.operands(node) else { return node };
    let number = old.value(number).and_then(Value::as_scalar).map_or(0, |number| number.bits() as u32);
    match place {
        None => new.add(Kind::Leaf(number), &[], qtype, origin),
        Some(place) => {
            let view = new.copy_node(old, view, &[]);
            let number = new.literal(Value::from(((place as u64) << 32 | u64::from(number)).cast_signed()), origin);
            new.add(old.kind(node), &[view, number], qtype, origin)
        }
    }
}
