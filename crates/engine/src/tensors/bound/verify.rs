//! The verifier of bound plans. The verifier checks that each step finds the right value in each slot that it reads, that values fit their memory,
//! and that the pieces of a step read the elements that the graph prescribes. It follows the steps in order and tracks the value in each slot,
//! independently of the code that assigned the slots.

use super::memory::{Operand, StridedView, ValueOrigin};
use super::{BindingResult, BoundPlan, BoundStep, BoundWork, PartWork, PieceStep, Worker};
use cembra_tensor::plan::{Region, Step, ViewedNode, Work, points};
use cembra_tensor::{Extents, Operation, Plan, TensorGraph, TensorNodeId};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// A flaw of a bound plan, with the index of the node in the graph that it concerns.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub(super) enum BoundFlaw {
    /// The memory of this node's value has another value, or none yet, when a step reads it.
    #[error("a step reads %{0} from memory that does not have its value")]
    Overwritten(usize),
    /// A step that computes this node writes to memory that it reads.
    #[error("the step that computes %{0} overwrites its own operands")]
    Aliased(usize),
    /// The value of this node is larger than its memory, or has another type.
    #[error("%{0} does not match the size or the type of its memory")]
    Size(usize),
    /// A step computes this node piece by piece, and a piece reads other elements than the graph prescribes.
    #[error("a block of elements of %{0} reads the wrong elements")]
    Operand(usize),
    /// The work bound for a piece (a part of the node's elements) does not match the step that computes this node.
    #[error("the blocks of elements of %{0} belong to another step")]
    Pieces(usize),
    /// The step that computes this node runs under other conditions than in the plan.
    #[error("the step that computes %{0} runs under other conditions than in the plan")]
    Guard(usize),
}

/// The state of verification: a bound plan, its graph, and the contents of slots so far.
struct Verifier<'v> {
    graph: &'v TensorGraph,
    /// The location and layout of each node's value in memory.
    values: &'v FxHashMap<TensorNodeId, StridedView>,
    bound: &'v BoundPlan,
    /// For each node, the node whose memory it is a view of; else the node itself.
    origins: Vec<TensorNodeId>,
    /// The node whose value each slot holds.
    held: Vec<Option<TensorNodeId>>,
}

/// Checks that `bound` computes what `plan` and `graph` prescribe, in memory of the right size.
///
/// # Errors
/// The first flaw that is found.
pub(super) fn verify(plan: &Plan, graph: &TensorGraph, bound: &BindingResult) -> Result<(), BoundFlaw> {
    let BindingResult { plan: bound, values, step_of } = bound;
    let origins = origins(graph, values);
    Verifier { graph, values, bound, origins, held: vec![None; bound.slots.len()] }.run(plan, step_of)
}

/// For each node, the node whose memory it is a view of.
fn origins(graph: &TensorGraph, values: &FxHashMap<TensorNodeId, StridedView>) -> Vec<TensorNodeId> {
    let place = |node: TensorNodeId| values.get(&node).map(|seen| seen.place);
    let mut origins: Vec<TensorNodeId> = Vec::with_capacity(graph.len());
    for (id, node) in graph.nodes() {
        // The list is repeated here, so that a mistake in the planner's list is found.
        let is_view = matches!(
            node.operation,
            Operation::Axes(_)
                | Operation::Slice(_)
                | Operation::Broadcast
                | Operation::Reshape
                | Operation::CustomVjp(_)
                | Operation::Barrier(_)
        );
        let of = node.operands.first().filter(|of| is_view && place(**of) == place(id));
        origins.push(of.map_or(id, |of| origins[of.index()]));
    }
    origins
}

/// The expected work of an operation on a piece: the node that it computes, and the operands that it reads.
struct Expected<'p> {
    node: TensorNodeId,
    reads: Reads<'p>,
}

enum Reads<'p> {
    Map(&'p Region),
    Reduce(&'p Region),
    Product(&'p [TensorNodeId]),
}

impl Verifier<'_> {
    fn run(mut self, plan: &Plan, step_of: &[usize]) -> Result<(), BoundFlaw> {
        let bound = self.bound;
        let mut steps: &[BoundStep] = &bound.steps;
        for (at, step) in plan.steps().iter().enumerate() {
            let count = step_of.iter().filter(|of| **of == at).count();
            let [own, rest] = [&steps[..count], &steps[count..]];
            steps = rest;
            own.iter().try_for_each(|bound| self.guard(step, bound))?;
            self.step(step, own)?;
        }
        if bound.over.is_some() {
            return Ok(());
        }
        plan.outputs().iter().try_for_each(|output| self.read(*output))
    }

    /// Checks that a step runs under the conditions that the plan states, and that these conditions are computed before.
    fn guard(&self, step: &Step, bound: &BoundStep) -> Result<(), BoundFlaw> {
        let wrong = BoundFlaw::Guard(step.node.index());
        if step.guard.len() != bound.guard.len() {
            return Err(wrong);
        }
        for (condition, (seen, holds)) in step.guard.iter().zip(&bound.guard) {
            self.read(condition.node)?;
            let own = self.values.get(&condition.node);
            let is_alike = |own: &StridedView| (own.place, own.layout.offset()) == (seen.place, seen.layout.offset());
            if condition.holds != *holds || !own.is_some_and(is_alike) {
                return Err(wrong);
            }
        }
        Ok(())
    }

    /// Checks that the value of `node` is in its memory when a step reads it, and that the memory has the right size
    /// and type.
    fn read(&self, node: TensorNodeId) -> Result<(), BoundFlaw> {
        let wrong = BoundFlaw::Overwritten(node.index());
        let seen = self.values.get(&node).ok_or(wrong)?;
        let origin = self.origins[node.index()];
        let is_there = match seen.place {
            ValueOrigin::Input(at) => self.graph.leaves().get(at as usize).is_some_and(|leaf| leaf.node == origin),
            ValueOrigin::Slot(at) => self.held.get(at as usize) == Some(&Some(origin)),
            ValueOrigin::Local(_) => false,
        };
        if !is_there {
            return Err(wrong);
        }
        if let ValueOrigin::Slot(at) = seen.place {
            let (slot, node_of) = (&self.bound.slots[at as usize], self.graph.node(node));
            let is_within = |(first, last): (i128, i128)| first >= 0 && last < slot.len as i128;
            if slot.scalar != node_of.scalar || !seen.layout.range().is_none_or(is_within) {
                return Err(BoundFlaw::Size(node.index()));
            }
        }
        Ok(())
    }

    /// Checks that a step with the operands `reads` may write the value of `node` to the slot `target`, and records it.
    fn write(&mut self, node: TensorNodeId, target: u32, len: usize, reads: &[TensorNodeId]) -> Result<(), BoundFlaw> {
        let (slot, made) = (&self.bound.slots[target as usize], self.graph.node(node));
        if slot.len != len || len != made.extents.iter().product::<usize>() || slot.scalar != made.scalar {
            return Err(BoundFlaw::Size(node.index()));
        }
        let is_target =
            |read: &TensorNodeId| self.values.get(read).is_some_and(|seen| seen.place == ValueOrigin::Slot(target));
        if reads.iter().any(is_target) {
            return Err(BoundFlaw::Aliased(node.index()));
        }
        if self.values.get(&node).map(|seen| seen.place) != Some(ValueOrigin::Slot(target)) {
            return Err(BoundFlaw::Overwritten(node.index()));
        }
        self.held[target as usize] = Some(node);
        Ok(())
    }

    fn step(&mut self, step: &Step, bound: &[BoundStep]) -> Result<(), BoundFlaw> {
        let wrong = BoundFlaw::Pieces(step.node.index());
        let members =
            if let Work::SharedReductions(members) = &step.work { &members[..] } else { std::slice::from_ref(step) };
        let [BoundStep { work: BoundWork::SharedReductions(_, targets), .. }, maps @ ..] = bound else {
            // A view, or a step that overwrites an input, has no bound step of its own.
            return members.iter().zip(bound).try_for_each(|(member, bound)| self.own_step(member, bound));
        };
        // The reductions, and then the maps of some of their results.
        let mut maps = maps.iter();
        for (member, (target, len)) in members.iter().zip(targets) {
            let Work::Reduce { of, then, .. } = &member.work else { return Err(wrong) };
            let reads: Vec<TensorNodeId> = of.inputs.iter().map(|(node, _)| *node).collect();
            reads.iter().try_for_each(|node| self.read(*node))?;
            self.write(then.as_ref().map_or(member.node, |then| then.inputs[0].0), *target, *len, &reads)?;
        }
        for member in members {
            let Work::Reduce { then: Some(then), .. } = &member.work else { continue };
            let map = Step::new(member.node, Work::Map(then.clone()));
            self.own_step(&map, maps.next().ok_or(wrong)?)?;
        }
        if maps.next().is_some() { Err(wrong) } else { Ok(()) }
    }

    fn own_step(&mut self, step: &Step, bound: &BoundStep) -> Result<(), BoundFlaw> {
        let reads = step.reads(self.graph);
        reads.iter().try_for_each(|node| self.read(*node))?;
        match &bound.work {
            BoundWork::Node(..) | BoundWork::SharedReductions(..) => {}
            BoundWork::Pieces(workers, within) => {
                let inner =
                    if let Work::Rows { steps, .. } = &step.work { &steps[..] } else { std::slice::from_ref(step) };
                let expected: Vec<Expected<'_>> = inner.iter().flat_map(|step| expected(self.graph, step)).collect();
                let extents = self.graph.extents(step.node);
                for worker in workers {
                    let depth = worker.cut.extents.len();
                    if extents[..depth] != worker.cut.extents[..]
                        || extents[depth..].iter().product::<usize>() != *within
                    {
                        return Err(BoundFlaw::Pieces(step.node.index()));
                    }
                    for (parts, starts, rows) in worker.cut.shapes() {
                        self.piece(step.node, &expected, worker, parts, &starts, &rows)?;
                    }
                }
            }
        }
        self.write(step.node, bound.target, bound.len, &reads)
    }

    /// Checks the work for a piece that begins at `starts`, with `rows` as the extents of the leading axes of a step.
    fn piece(
        &self,
        made: TensorNodeId,
        expected: &[Expected<'_>],
        worker: &Worker,
        parts: &[PieceStep],
        starts: &[usize],
        rows: &[usize],
    ) -> Result<(), BoundFlaw> {
        let other = BoundFlaw::Pieces(made.index());
        if parts.len() != expected.len() {
            return Err(other);
        }
        // The node and the extents in each local memory of the worker.
        let mut left: Vec<Option<(TensorNodeId, Extents)>> = vec![None; worker.locals.memory.len()];
        for (number, (part, Expected { node, reads })) in parts.iter().zip(expected).enumerate() {
            let wrong = BoundFlaw::Operand(node.index());
            let of =
                |node: TensorNodeId| left.iter().position(|held| held.as_ref().is_some_and(|(held, _)| *held == node));
            let place = |node: TensorNodeId| match of(node) {
                Some(local) => Some(ValueOrigin::Local(local as u32)),
                None => self.values.get(&node).map(|seen| seen.place),
            };
            let (operands, nodes): (&[Operand], SmallVec<[TensorNodeId; 4]>) = match (&part.work, reads) {
                (PartWork::Map(map), Reads::Map(region)) => {
                    for (operand, seen) in map.operands.iter().zip(&region.inputs) {
                        let local = of(seen.0).and_then(|local| left[local].as_ref()).map(|(_, extents)| &extents[..]);
                        if !self.sees(operand, seen, local, region, starts, rows) {
                            return Err(wrong);
                        }
                    }
                    (&map.operands, region.inputs.iter().map(|(node, _)| *node).collect())
                }
                (PartWork::Reduce(reduce), Reads::Reduce(region)) => {
                    (&reduce.operands, region.inputs.iter().map(|(node, _)| *node).collect())
                }
                (PartWork::Product(product), Reads::Product(nodes)) => (&product.operands, (*nodes).into()),
                _ => return Err(other),
            };
            let are_there = operands.iter().zip(&nodes).all(|(operand, node)| place(*node) == Some(operand.place));
            if operands.len() != nodes.len() || !are_there {
                return Err(wrong);
            }
            let is_last = number + 1 == parts.len();
            if is_last != part.left.is_none() {
                return Err(other);
            }
            let made = self.graph.node(*node);
            let extents: Extents = rows.iter().chain(&made.extents[rows.len()..]).copied().collect();
            if part.len != extents.iter().product::<usize>() {
                return Err(BoundFlaw::Size(node.index()));
            }
            if let Some(local) = part.left {
                if operands.iter().any(|operand| operand.place == ValueOrigin::Local(local)) {
                    return Err(BoundFlaw::Aliased(node.index()));
                }
                let at = local as usize;
                if worker.locals.memory[at].scalar() != made.scalar {
                    return Err(BoundFlaw::Size(node.index()));
                }
                left[at] = Some((*node, extents));
            }
        }
        Ok(())
    }

    /// Returns true if an operand of a map, for a piece of its index space, has the elements that a view prescribes.
    fn sees(
        &self,
        operand: &Operand,
        (node, view): &ViewedNode,
        local: Option<&[usize]>,
        region: &Region,
        starts: &[usize],
        rows: &[usize],
    ) -> bool {
        let piece: Extents = rows.iter().chain(&region.extents[rows.len()..]).copied().collect();
        points(&piece).iter().all(|index| {
            let position = |strides: &mut dyn Iterator<Item = isize>, index: &mut dyn Iterator<Item = usize>| {
                strides
                    .zip(index)
                    .map(|(stride, at)| stride.wrapping_mul(at.cast_signed()))
                    .fold(0, isize::wrapping_add)
            };
            let wanted = if let Some(extents) = local {
                let at = |position: usize, (extent, at): (&usize, usize)| position * extent + at;
                extents.iter().zip(view.index(index)).fold(0, at).cast_signed()
            } else {
                let Some(StridedView { layout, .. }) = self.values.get(node) else { return false };
                let mut whole = index.clone();
                whole.iter_mut().zip(starts).for_each(|(at, start)| *at += start);
                let seen = position(&mut layout.strides().iter().copied(), &mut view.index(&whole));
                layout.offset().cast_signed().wrapping_add(seen)
            };
            operand.position(starts, index) == wanted
        })
    }
}

/// The expected operations on a piece (a part of the value) of a step, in order.
fn expected<'p>(graph: &'p TensorGraph, step: &'p Step) -> SmallVec<[Expected<'p>; 2]> {
    let led = |reads: Reads<'p>, then: &'p Option<Region>| -> SmallVec<[Expected<'p>; 2]> {
        match then {
            None => SmallVec::from_iter([Expected { node: step.node, reads }]),
            Some(then) => SmallVec::from_iter([
                Expected { node: then.inputs[0].0, reads },
                Expected { node: step.node, reads: Reads::Map(then) },
            ]),
        }
    };
    match &step.work {
        Work::Map(region) => SmallVec::from_iter([Expected { node: step.node, reads: Reads::Map(region) }]),
        Work::Reduce { of, then, .. } => led(Reads::Reduce(of), then),
        Work::Product { product, then } => led(Reads::Product(&graph.node(*product).operands), then),
        Work::Rows { .. } | Work::SharedReductions(_) | Work::Node => SmallVec::new(),
    }
}

#[cfg(test)]
mod tests;
