//! Checks plans against their graph, independently of the code that makes plans. For each step, indices of its index
//! space are followed down to the nodes that the step reads, one operation of the graph at a time, and compared with
//! the step's description. The view (map of indices) through which an index space reads an operand is linear in each
//! axis. So views are compared at a few points: the first index, the last one, and for each axis the second one along
//! it.

use super::{Condition, Plan, Region, Step, View, ViewedNode, Work, branches};
use crate::body::{BodyStep, Operand};
use crate::node::Operation;
use crate::{Extents, Node, TensorGraph, TensorNodeId};
use cembra_runtime::Scalar;
use rustc_hash::FxHashMap;

/// An error in a plan, such as a read of a missing value, with the number of the affected node in the graph.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PlanFlaw {
    /// A step reads a node that has no value yet, or an output has no value at the end.
    #[error("%{0} is read before it has a value")]
    Unmade(usize),
    /// Two steps compute the value of this node.
    #[error("%{0} is computed twice")]
    MadeTwice(usize),
    /// The value of this node is dropped before its last use, or twice.
    #[error("%{0} is dropped too early")]
    Dropped(usize),
    /// A step reads this node at indices outside of its extents, or with a wrong number of axes.
    #[error("a step reads %{0} outside of its extents")]
    Outside(usize),
    /// A step computes something other than the value of its node.
    #[error("the step for %{0} computes another value")]
    Computed(usize),
    /// An input of an elementwise expression has another type than this node, from which the input is read.
    #[error("a step reads %{0} as another type")]
    Type(usize),
    /// Steps are run for some rows at a time, but a step reads a row of another step's value that is not computed at
    /// that time.
    #[error("a row of %{0} is computed from rows that are not available then")]
    Rows(usize),
    /// Reductions that share a loop differ in their axes or index spaces.
    #[error("%{0} shares a loop with reductions over other axes")]
    Loop(usize),
    /// A step is skipped although an output may depend on its node, or its guard is tested before the conditions are computed.
    #[error("the step for %{0} is skipped although an output may need it")]
    Skipped(usize),
}

type Index = Extents;

/// The points of an index space at which views are compared; empty if the space has no indices.
#[must_use]
pub fn points(extents: &[usize]) -> Vec<Index> {
    if extents.contains(&0) {
        return Vec::new();
    }
    let first: Index = extents.iter().map(|_| 0).collect();
    let last = extents.iter().map(|extent| extent - 1).collect();
    let second = |axis: usize| {
        let mut index = first.clone();
        index[axis] = 1;
        index
    };
    let seconds: Vec<Index> = (0..extents.len()).filter(|axis| extents[*axis] > 1).map(second).collect();
    [first, last].into_iter().chain(seconds).collect()
}

/// Returns true if a node only gives each element of its operand another index, or leaves it out.
fn is_seen_through(graph: &TensorGraph, node: &Node) -> bool {
    let long = |extents: &[usize]| extents.iter().copied().filter(|extent| *extent != 1).collect::<Extents>();
    match node.operation {
        Operation::Axes(_) | Operation::Slice(_) | Operation::Broadcast => true,
        Operation::CustomVjp(_) | Operation::Barrier(_) => true,
        Operation::Reshape => long(&node.extents) == long(graph.extents(node.operands[0])),
        _ => false,
    }
}

/// The index of `operand` that the element of `node` at `index` reads.
fn operand_index(node: &Node, operand: &Node, index: &[usize]) -> Index {
    match &node.operation {
        Operation::Axes(to) => to.iter().map(|axis| index[usize::from(*axis)]).collect(),
        Operation::Slice(slices) => {
            let along = |(slice, at): (&crate::Slice, &usize)| {
                slice.start.wrapping_add_signed(slice.step.wrapping_mul(at.cast_signed()))
            };
            slices.iter().zip(index).map(along).collect()
        }
        Operation::Reshape => {
            let mut position = node.extents.iter().zip(index).fold(0, |position, (extent, at)| position * extent + at);
            let mut found: Index = operand.extents.iter().map(|_| 0).collect();
            for (axis, extent) in operand.extents.iter().enumerate().rev() {
                (found[axis], position) = (position % extent, position / extent);
            }
            found
        }
        // Operands of maps and of broadcasts have the last axes, and one index along axes on which they are repeated.
        _ => {
            let own = &index[index.len() - operand.extents.len()..];
            own.iter().zip(&operand.extents).map(|(at, extent)| if *extent == 1 { 0 } else { *at }).collect()
        }
    }
}

/// A node, and its index at each point at which views are compared.
#[derive(Clone, PartialEq, Debug)]
struct NodePoints {
    node: TensorNodeId,
    indices: Vec<Index>,
}

impl NodePoints {
    /// Operand `at` of the node, with its indices at the points.
    fn operand(&self, graph: &TensorGraph, at: usize) -> NodePoints {
        let node = graph.node(self.node);
        let operand = node.operands[at];
        let index = |index: &Index| operand_index(node, graph.node(operand), index);
        NodePoints { node: operand, indices: self.indices.iter().map(index).collect() }
    }

    /// Follows views to the node that computes or stores the elements.
    fn base(mut self, graph: &TensorGraph) -> NodePoints {
        while is_seen_through(graph, graph.node(self.node)) {
            self = self.operand(graph, 0);
        }
        self
    }
}

/// The state of a check: the nodes that have a value so far, and those that were dropped.
struct Verifier<'p> {
    graph: &'p TensorGraph,
    has_value: Vec<bool>,
    /// For each node, the number of the step after which the node, or a node that it may be a view of, is dropped.
    dropped_behind: Vec<usize>,
    /// The number of the step that is checked.
    at: usize,
}

/// Checks that `plan` computes outputs of `graph` correctly.
///
/// # Errors
/// The first flaw that is found in the plan.
pub(super) fn verify(graph: &TensorGraph, plan: &Plan) -> Result<(), PlanFlaw> {
    let dropped_behind = dropped_behind(graph, plan)?;
    let mut verifier = Verifier { graph, has_value: vec![false; graph.len()], dropped_behind, at: 0 };
    graph.leaves().iter().for_each(|leaf| verifier.has_value[leaf.node.index()] = true);
    for step in &plan.steps {
        verifier.step(step)?;
        verifier.at += 1;
    }
    plan.outputs.iter().try_for_each(|output| verifier.read(*output))?;
    skipped(graph, plan)
}

/// Checks that steps are skipped only where no output depends on their nodes. Each condition of a guard is tested
/// alone: the conditions before it hold as required, and this condition does not. Then no chosen branch may lead from
/// the outputs to a node of the step.
fn skipped(graph: &TensorGraph, plan: &Plan) -> Result<(), PlanFlaw> {
    let makers: FxHashMap<TensorNodeId, &Step> =
        plan.steps.iter().flat_map(|step| step.made().map(move |node| (node, step))).collect();
    let mut reached: FxHashMap<Vec<(TensorNodeId, bool)>, Vec<bool>> = FxHashMap::default();
    for step in plan.steps.iter().filter(|step| !step.guard.is_empty()) {
        let wrong = || PlanFlaw::Skipped(step.node.index());
        let mut known: Vec<(TensorNodeId, bool)> = Vec::new();
        for (at, Condition { node, holds }) in step.guard.iter().enumerate() {
            let origin = NodePoints { node: *node, indices: Vec::new() }.base(graph).node;
            let is_known = |maker: &&Step| step.guard[..at].starts_with(&maker.guard);
            if !makers.get(&origin).is_none_or(is_known) {
                return Err(wrong());
            }
            known.push((*node, !holds));
            let reached = reached.entry(known.clone()).or_insert_with_key(|known| reached_with(graph, plan, known));
            if step.made().any(|node| reached[node.index()]) {
                return Err(wrong());
            }
            known[at].1 = *holds;
        }
    }
    Ok(())
}

/// Marks the nodes that outputs depend on if conditions have the truth values `known`.
fn reached_with(graph: &TensorGraph, plan: &Plan, known: &[(TensorNodeId, bool)]) -> Vec<bool> {
    let mut reached = vec![false; graph.len()];
    let mut open = plan.outputs.clone();
    while let Some(id) = open.pop() {
        if std::mem::replace(&mut reached[id.index()], true) {
            continue;
        }
        let node = graph.node(id);
        match branches(graph, node) {
            Some(branches) => {
                open.push(node.operands[0]);
                let is_chosen = |condition: Condition| !known.contains(&(condition.node, !condition.holds));
                open.extend(branches.iter().filter(|(_, condition)| is_chosen(*condition)).map(|(branch, _)| *branch));
            }
            None => open.extend(node.read()),
        }
    }
    reached
}

/// Returns, for each node, the number of the first step after which the node, or a node that it may be a view of, is
/// dropped; `usize::MAX` if there is none.
fn dropped_behind(graph: &TensorGraph, plan: &Plan) -> Result<Vec<usize>, PlanFlaw> {
    let mut behind = vec![usize::MAX; graph.len()];
    for (at, step) in plan.steps.iter().enumerate() {
        for node in &step.last_uses {
            if std::mem::replace(&mut behind[node.index()], at) != usize::MAX {
                return Err(PlanFlaw::Dropped(node.index()));
            }
        }
    }
    for (id, node) in graph.nodes() {
        // A reshaped value may share its operand's memory, even where it is not a view.
        if is_seen_through(graph, node) || node.operation == Operation::Reshape {
            behind[id.index()] = behind[id.index()].min(behind[node.operands[0].index()]);
        }
    }
    Ok(behind)
}

impl Verifier<'_> {
    /// Checks that a value exists, and that neither the value nor memory that it may be a view of was dropped.
    fn read(&self, node: TensorNodeId) -> Result<(), PlanFlaw> {
        if !self.has_value[node.index()] {
            return Err(PlanFlaw::Unmade(node.index()));
        }
        if self.dropped_behind[node.index()] < self.at {
            return Err(PlanFlaw::Dropped(node.index()));
        }
        Ok(())
    }

    fn make(&mut self, node: TensorNodeId) -> Result<(), PlanFlaw> {
        if std::mem::replace(&mut self.has_value[node.index()], true) {
            return Err(PlanFlaw::MadeTwice(node.index()));
        }
        Ok(())
    }

    fn step(&mut self, step: &Step) -> Result<(), PlanFlaw> {
        for node in step.conditions() {
            self.read(node)?;
            let condition = self.graph.node(node);
            if condition.scalar != Scalar::Boolean || !condition.extents.is_empty() {
                return Err(PlanFlaw::Type(node.index()));
            }
        }
        match &step.work {
            Work::Rows { depth, steps } => {
                self.rows(step.node, *depth, steps)?;
                for inner in steps {
                    self.single(inner)?;
                }
                // No other step sees the values that these steps leave for each other.
                steps.iter().for_each(|inner| self.has_value[inner.node.index()] = inner.node == step.node);
                self.read(step.node)
            }
            Work::SharedReductions(steps) => {
                self.shared_loop(steps)?;
                steps.iter().try_for_each(|inner| self.single(inner))
            }
            _ => self.single(step),
        }
    }

    /// Checks a step that makes one node from nodes with values.
    fn single(&mut self, step: &Step) -> Result<(), PlanFlaw> {
        let wrong = || PlanFlaw::Computed(step.node.index());
        let led = match &step.work {
            Work::Map(region) => {
                region.inputs.iter().try_for_each(|(node, _)| self.read(*node))?;
                self.computes(region, step.node)?;
                None
            }
            Work::Reduce { reduction, axes, of, then } => {
                let reduced = then.as_ref().map_or(Some(step.node), first_input).ok_or_else(wrong)?;
                let node = self.graph.node(reduced);
                if node.operation != Operation::Reduce(*reduction, axes.clone()) {
                    return Err(wrong());
                }
                of.inputs.iter().try_for_each(|(node, _)| self.read(*node))?;
                self.computes(of, node.operands[0])?;
                then.as_ref().map(|then| (reduced, then))
            }
            Work::Product { product, then } => {
                let made = then.as_ref().map_or(Some(step.node), first_input).ok_or_else(wrong)?;
                let node = self.graph.node(*product);
                if made != *product || !matches!(node.operation, Operation::Contract(_)) || node.operands.len() != 2 {
                    return Err(wrong());
                }
                node.operands.iter().try_for_each(|node| self.read(*node))?;
                then.as_ref().map(|then| (made, then))
            }
            Work::Node => {
                self.graph.node(step.node).read().iter().try_for_each(|node| self.read(*node))?;
                None
            }
            Work::Rows { .. } | Work::SharedReductions(_) => return Err(wrong()),
        };
        if let Some((made, then)) = led {
            then.inputs[1..].iter().try_for_each(|(node, _)| self.read(*node))?;
            // The first input must be the whole result in its own order.
            let is_whole =
                points(&then.extents).iter().all(|index| then.inputs[0].1.index(index).eq(index.iter().copied()));
            if self.graph.extents(made) != &then.extents[..] || !is_whole {
                return Err(wrong());
            }
            self.computes(then, step.node)?;
        }
        self.make(step.node)
    }

    /// Checks that an expression computes the node `root` of the graph from its inputs.
    fn computes(&self, region: &Region, root: TensorNodeId) -> Result<(), PlanFlaw> {
        let (graph, body) = (self.graph, &region.body);
        let wrong = PlanFlaw::Computed(root.index());
        let points = points(&region.extents);
        let [(output, scalar)] = body.outputs[..] else { return Err(wrong) };
        let is_alike = graph.extents(root) == &region.extents[..] && graph.node(root).scalar == scalar;
        if !is_alike || body.inputs.len() != region.inputs.len() {
            return Err(wrong);
        }
        let inputs: Result<Vec<NodePoints>, PlanFlaw> =
            region.inputs.iter().map(|seen| self.seen(seen, region, &points)).collect();
        let inputs = inputs?;
        for ((node, _), scalar) in region.inputs.iter().zip(&body.inputs) {
            if graph.node(*node).scalar != *scalar {
                return Err(PlanFlaw::Type(node.index()));
            }
        }
        // The node that each step was found to compute; and the pairs to compare next, whose positions fall.
        let mut known: Vec<Option<NodePoints>> = vec![None; body.steps.len()];
        let mut open: Vec<(Operand, NodePoints)> = vec![(output, NodePoints { node: root, indices: points })];
        while let Some((operand, at)) = open.pop() {
            let at = at.base(graph);
            let place = operand as usize;
            if let Some(input) = inputs.get(place) {
                if *input != at {
                    return Err(wrong);
                }
                continue;
            }
            let place = place - inputs.len();
            let known = known.get_mut(place).ok_or(wrong)?;
            if let Some(known) = known {
                if *known != at {
                    return Err(wrong);
                }
                continue;
            }
            let node = graph.node(at.node);
            match (&body.steps[place], &node.operation) {
                (BodyStep::Constant(scalar, bits), Operation::Constant(of_node))
                    if scalar == &node.scalar && bits == of_node => {}
                (BodyStep::Apply(op, operands), Operation::Map(of_node))
                    if op == of_node && operands.len() == node.operands.len() =>
                {
                    for (number, operand) in operands.iter().enumerate() {
                        if *operand as usize >= inputs.len() + place {
                            return Err(wrong);
                        }
                        open.push((*operand, at.operand(graph, number)));
                    }
                }
                _ => return Err(wrong),
            }
            *known = Some(at);
        }
        Ok(())
    }

    /// The node that an input of an expression reads, and its indices at the points, which must be within its extents.
    fn seen(&self, (node, view): &ViewedNode, region: &Region, points: &[Index]) -> Result<NodePoints, PlanFlaw> {
        let extents = self.graph.extents(*node);
        if !view.is_between(region.extents.len(), extents.len()) {
            return Err(PlanFlaw::Outside(node.index()));
        }
        let indices: Vec<Index> = points.iter().map(|index| view.index(index).collect()).collect();
        let is_within = |index: &Index| index.iter().zip(extents).all(|(at, extent)| at < extent);
        if !indices.iter().all(is_within) {
            return Err(PlanFlaw::Outside(node.index()));
        }
        Ok(NodePoints { node: *node, indices }.base(self.graph))
    }

    /// Checks steps that are run together for some rows at a time. Each step must have these rows, and must read the
    /// values of the other steps in the row that it computes.
    fn rows(&self, node: TensorNodeId, depth: usize, steps: &[Step]) -> Result<(), PlanFlaw> {
        let wrong = PlanFlaw::Rows(node.index());
        let rows = self.graph.extents(node).get(..depth).filter(|rows| !rows.is_empty()).ok_or(wrong)?;
        let has_rows = |extents: &[usize]| extents.get(..depth) == Some(rows);
        let is_left = |node: TensorNodeId| steps.iter().any(|step| step.node == node);
        let sees_rows = |region: &Region| {
            let points = points(&region.extents);
            region.inputs.iter().filter(|(node, _)| is_left(*node)).all(|(node, view)| {
                let is_of_spaces = view.is_between(region.extents.len(), self.graph.extents(*node).len());
                let is_same_row = |index: &Index| {
                    let seen: Index = view.index(index).collect();
                    // Other indices must not change along an axis of rows.
                    let others_stay =
                        !is_along(index, depth) || seen[depth..].iter().eq(first_of(view, index).iter().skip(depth));
                    seen.get(..depth) == Some(&index[..depth]) && others_stay
                };
                is_of_spaces && has_rows(self.graph.extents(*node)) && points.iter().all(is_same_row)
            })
        };
        for step in steps {
            let fits = match &step.work {
                Work::Map(region) => has_rows(&region.extents) && sees_rows(region),
                Work::Reduce { axes, of, then, .. } => {
                    let are_kept = axes.iter().all(|axis| usize::from(*axis) >= depth);
                    let follows = then.as_ref().is_none_or(|then| has_rows(&then.extents) && sees_rows(then));
                    are_kept && has_rows(&of.extents) && sees_rows(of) && follows
                }
                _ => false,
            };
            if !fits {
                return Err(wrong);
            }
        }
        if steps.last().map(|step| step.node) == Some(node) { Ok(()) } else { Err(wrong) }
    }

    /// Checks that reductions have the same axes and index space, and that none reads the result of another.
    fn shared_loop(&self, steps: &[Step]) -> Result<(), PlanFlaw> {
        let mut shared = None;
        for step in steps {
            let Work::Reduce { axes, of, .. } = &step.work else { return Err(PlanFlaw::Loop(step.node.index())) };
            if *shared.get_or_insert((axes, &of.extents)) != (axes, &of.extents) {
                return Err(PlanFlaw::Loop(step.node.index()));
            }
            of.inputs.iter().try_for_each(|(node, _)| self.read(*node))?;
        }
        Ok(())
    }
}

fn first_input(region: &Region) -> Option<TensorNodeId> {
    region.inputs.first().map(|(node, _)| *node)
}

/// Returns true for the second index along one of the leading `depth` axes.
fn is_along(index: &[usize], depth: usize) -> bool {
    index.iter().sum::<usize>() == 1 && index[..depth].contains(&1)
}

/// The index in a node that a view reads for the index 0 along all axes of the index space.
fn first_of(view: &View, index: &[usize]) -> Index {
    let first: Index = index.iter().map(|_| 0).collect();
    view.index(&first).collect()
}

#[cfg(test)]
mod tests;
