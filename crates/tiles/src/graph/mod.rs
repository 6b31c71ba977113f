//! Graphs of operators on tiled tensors. The nodes that outputs need are evaluated in their order, and a value is dropped after its last
//! use. The tiling of each axis follows from the operands: axes with a common index must be cut at the same boundaries. The reference
//! evaluator of `cembra-tensor` defines the meaning of nodes. Each kind of node is evaluated in a file of its own.

pub(crate) mod contraction;
pub(crate) mod cuts;
pub(crate) mod elementwise;
pub(crate) mod grouping;
pub(crate) mod plan;
pub(crate) mod zeros;

use crate::distribution::agree;
use crate::elements::reduction::reduce;
use crate::elements::views::{placed, reshaped, sliced, turned_lazily, with_axes};
use crate::error::not_for_tiles;
use crate::graph::cuts::around_slices;
use crate::graph::elementwise::{broadcast_product, evaluate};
use crate::graph::grouping::{Grouping, Region, is_broadcast_product, is_elementwise};
use crate::tiled::tile::check_float;
use crate::{Evaluator, Journal, StepKind, Tiled};
use cembra_tensor::plan::last_uses;
use cembra_tensor::reference::{check_count, check_input};
use cembra_tensor::{Elements, Operation, TensorGraph, TensorNodeId};
use cembra_value::Error;
use cembra_value::tensor::TensorErrorKind as Kind;

impl Evaluator {
    /// Evaluates the nodes `outputs` of a graph, given a tiled tensor for each leaf. `elements` evaluates elementwise expressions, once for
    /// each tile.
    ///
    /// A result has a tile where its estimated norm is not below the threshold. A result without axes is one tile of one element, which is
    /// never left out.
    ///
    /// # Errors
    /// If there are not as many inputs as leaves, or an input does not have the type and extents of its leaf; axes with a common index have different
    /// tilings; an operation is not for tiled tensors; there are too many tiles; the memory limit does not suffice; an operator fails on an element;
    /// or a lazy tile cannot be computed. The error has the location of the node in the source text.
    pub fn evaluate(
        &self,
        graph: &TensorGraph,
        outputs: &[TensorNodeId],
        inputs: &[&Tiled],
        elements: &dyn Elements,
    ) -> Result<Vec<Tiled>, Error> {
        self.evaluate_from(graph, outputs, inputs, elements, ResumeState { known: &[], after: &mut |_, _| Ok(()) })
    }

    /// Evaluates a graph as [`evaluate`](Evaluator::evaluate) does, but continues an evaluation that ended early: outputs that are already known are
    /// not computed again, and the function [`ResumeState::after`] is called with each other output as soon as it is computed.
    ///
    /// # Errors
    /// The errors of [`evaluate`](Evaluator::evaluate), and those of the function [`ResumeState::after`]. Or if a known output is of another type or
    /// other extents than its node.
    pub fn evaluate_from(
        &self,
        graph: &TensorGraph,
        outputs: &[TensorNodeId],
        inputs: &[&Tiled],
        elements: &dyn Elements,
        state: ResumeState<'_>,
    ) -> Result<Vec<Tiled>, Error> {
        if let Some(ranks) = self.workers.several() {
            agree(ranks, &self.facts, self.options(), self.workers.map.as_ref(), graph, outputs, inputs)?;
        }
        self.settled(|| self.evaluated(graph, outputs, inputs, elements, state))
    }

    /// Evaluates nodes of a graph on this rank.
    fn evaluated(
        &self,
        graph: &TensorGraph,
        outputs: &[TensorNodeId],
        inputs: &[&Tiled],
        elements: &dyn Elements,
        state: ResumeState<'_>,
    ) -> Result<Vec<Tiled>, Error> {
        check_inputs(graph, inputs)?;
        let mut values = state.values(graph, outputs)?;
        self.check_tiles(inputs)?;
        let needed = graph.needed(outputs);
        let around = around_slices(graph, &needed, inputs)?;
        let grouping = Grouping::of(graph, outputs, &needed);
        let mut steps: Vec<GraphStep> = Vec::new();
        for (id, node) in graph.nodes().filter(|(id, _)| needed[id.index()] && grouping.is_made(*id)) {
            steps.push((id, is_elementwise(graph, node).then(|| grouping.region(graph, id))));
        }
        let (of_numbers, of_products) = (of_numbers(graph, outputs, &steps), of_products(graph, outputs, &steps));
        let steps = unknown(graph, outputs, steps, &values);
        check_operations(graph, &steps)?;
        let last_uses = last_uses(graph, outputs, steps.iter().map(|step| read(graph, step).iter().copied()), |_| None);
        let unscreened = self.clone().with(|workers| workers.options = workers.options.clone().screen(false));
        let mut held = MemoryTracker::new(graph.len());
        // The bytes that tiles take besides elements. Those of inputs count all the time.
        let mut own_bytes = inputs.iter().map(|input| input.own_bytes()).fold(0, usize::saturating_add);
        let is_leaf = |id: TensorNodeId| matches!(graph.node(id).operation, Operation::Leaf(_));
        let (mut begun, count) = (0, steps.iter().filter(|(id, _)| !is_leaf(*id)).count());
        for ((id, region), last_uses) in steps.into_iter().zip(last_uses) {
            elements.go_on()?;
            let node = graph.node(id);
            let run = if of_numbers[id.index()] && region.is_some() { &unscreened } else { self };
            let held_bytes = held.bytes;
            let run = &run.beside(held_bytes);
            let at_node = |error: Error| graph.span(id).map_or(error.clone(), |span| error.at(span));
            let run = &run.counting(own_bytes).map_err(at_node)?;
            let before = self.workers.journal.as_ref().map_or(0, Journal::len);
            let is_of_products = of_products[id.index()];
            if let (Some(journal), false) = (&self.workers.journal, is_leaf(id)) {
                begun += 1;
                journal.begin_step(begun, count);
            }
            let made = match &region {
                Some(region) => evaluate(run, region, &node.extents, &taken(&values, &region.leaves)?, elements),
                None => {
                    let operands = taken(&values, node.read())?;
                    match (&node.operation, &*operands) {
                        // Products ask for a few tiles at a time, so a lazy operand, which may not fit in memory, is not stored first.
                        (Operation::Axes(to), [of]) if is_of_products => {
                            turned_lazily(of, to).and_then(|turned| turned.map_or_else(|| with_axes(run, of, to), Ok))
                        }
                        (Operation::Slice(slices), [of]) => sliced(run, of, slices, is_of_products),
                        (Operation::PlaceSlice(slices), [of]) => {
                            let within =
                                node.tiling_operands().first().and_then(|within| around.get(within.index())?.as_ref());
                            let within = within.ok_or_else(|| not_for_tiles(&node.operation));
                            within.and_then(|within| placed(run, of, slices, within))
                        }
                        _ => run.node(graph, id, &operands, inputs),
                    }
                }
            };
            let made = made.map_err(at_node)?;
            if let Some(journal) = &self.workers.journal {
                match (&node.operation, &region) {
                    (Operation::Leaf(_), _) => {}
                    (_, Some(_)) => journal.note(StepKind::Elements, &made, held_bytes),
                    (Operation::Reduce(..), _) => journal.note(StepKind::Reduction, &made, held_bytes),
                    (Operation::Contract(_) | Operation::Map(_), _) if journal.len() > before => {}
                    (Operation::Slice(_) | Operation::PlaceSlice(_), _)
                        if MemoryTracker::source(&made, node.read(), &values).is_none() =>
                    {
                        journal.note(StepKind::Part, &made, held_bytes);
                    }
                    _ => journal.note(StepKind::View, &made, held_bytes),
                }
                journal.place(before, graph.span(id));
            }
            let operands = region.as_ref().map_or(node.read(), |region| &region.leaves);
            held.add(id, is_leaf(id), &made, operands, &values);
            for operand in last_uses {
                if let Some(value) = values[operand.index()].take() {
                    held.remove(operand, &value);
                    own_bytes -= if is_leaf(operand) { 0 } else { value.own_bytes().min(own_bytes) };
                }
            }
            for (at, _) in outputs.iter().enumerate().filter(|(_, output)| **output == id) {
                (state.after)(at, &made)?;
            }
            own_bytes = own_bytes.saturating_add(if is_leaf(id) { 0 } else { made.own_bytes() });
            values[id.index()] = Some(made);
        }
        let value = |output: &TensorNodeId| values[output.index()].clone().ok_or_else(not_computed);
        outputs.iter().map(value).collect()
    }

    /// Evaluates a node that is not an elementwise expression.
    fn node(
        &self,
        graph: &TensorGraph,
        id: TensorNodeId,
        operands: &[&Tiled],
        inputs: &[&Tiled],
    ) -> Result<Tiled, Error> {
        let node = graph.node(id);
        match (&node.operation, operands) {
            (Operation::Leaf(at), _) => inputs.get(*at as usize).copied().cloned().ok_or_else(not_computed),
            (Operation::Map(_), [a, b]) if is_broadcast_product(graph, node) => {
                broadcast_product(self, &node.extents, [a, b])
            }
            (Operation::Contract(labels), _) => {
                check_float(node.scalar)?;
                contraction::contract(self, labels, operands.iter().copied().cloned().collect())
            }
            (Operation::Reduce(reduction, axes), [of]) => reduce(self, *reduction, axes, of),
            (Operation::Axes(to), [of]) => with_axes(self, of, to),
            (Operation::Reshape, [of]) => reshaped(of, &node.extents),
            (operation, _) => Err(not_for_tiles(operation)),
        }
    }
}

/// The state from which an evaluation resumes: the known outputs, and a function for new ones. The graph and the inputs must be the same as before.
pub struct ResumeState<'r> {
    /// The outputs that are already known, each with its position in the list of outputs. The other outputs are computed.
    pub known: &'r [(usize, Tiled)],
    /// A function that is called with each output that was computed, and its position in the list of outputs, before later steps run. If
    /// ranks share the evaluation, it is called on all ranks.
    pub after: &'r mut dyn FnMut(usize, &Tiled) -> Result<(), Error>,
}

impl ResumeState<'_> {
    /// The known values, by node.
    ///
    /// # Errors
    /// If one is of another type or other extents than its node.
    fn values(&self, graph: &TensorGraph, outputs: &[TensorNodeId]) -> Result<Vec<Option<Tiled>>, Error> {
        let mut values = vec![None; graph.len()];
        for (at, known) in self.known {
            let Some(id) = outputs.get(*at) else { continue };
            let node = graph.node(*id);
            if node.scalar != known.scalar_type() || node.extents != known.tiling().extents() {
                let message = format!(
                    "a known output is {known:?}, but the program computes the extents {:?}",
                    &node.extents[..]
                );
                return Err(
                    Error::tensors(Kind::SizeMismatch, message).hint("give the known outputs of the same program")
                );
            }
            values[id.index()] = Some(known.clone());
        }
        Ok(values)
    }
}

/// A step of an evaluation: a node, and its elementwise expression; `None` if the node is not elementwise.
type GraphStep = (TensorNodeId, Option<Region>);

/// Returns the nodes that a step reads.
fn read<'s>(graph: &'s TensorGraph, (id, region): &'s GraphStep) -> &'s [TensorNodeId] {
    region.as_ref().map_or(graph.node(*id).read(), |region| &region.leaves)
}

/// Selects the steps that must be computed, in their order: those that the outputs need and whose values are not known.
fn unknown(
    graph: &TensorGraph,
    outputs: &[TensorNodeId],
    steps: Vec<GraphStep>,
    values: &[Option<Tiled>],
) -> Vec<GraphStep> {
    let mut is_needed = vec![false; graph.len()];
    outputs.iter().for_each(|output| is_needed[output.index()] = true);
    let mut left = Vec::with_capacity(steps.len());
    for (id, region) in steps.into_iter().rev() {
        if !is_needed[id.index()] || values[id.index()].is_some() {
            continue;
        }
        let step = (id, region);
        read(graph, &step).iter().for_each(|operand| is_needed[operand.index()] = true);
        left.push(step);
    }
    left.reverse();
    left
}

/// The memory of values that steps made and that later steps still need. Inputs, and views that share the tiles of inputs, are the caller's memory.
/// A view of another node's tiles shares that node's memory: it takes none while that node's value is needed, and afterwards no more than the node
/// took.
struct MemoryTracker {
    bytes: usize,
    /// For each node with a value, the node that made its tiles; `None` if the tiles are the caller's.
    makers: Vec<Option<TensorNodeId>>,
    /// For each node that made tiles, the bytes of these tiles that are held.
    made: Vec<NodeMemory>,
}

/// The memory of the tiles that one node made, as long as its value, or a view of these tiles, is needed.
#[derive(Clone, Copy, Default)]
struct NodeMemory {
    /// The bytes of all tiles that the node made.
    all: usize,
    /// True if the value of the node itself is still needed, and not only views of its tiles.
    is_whole: bool,
    /// The bytes of the views of these tiles that are held, each view counted by itself.
    views: usize,
}

impl NodeMemory {
    fn bytes(self) -> usize {
        if self.is_whole { self.all } else { self.views.min(self.all) }
    }
}

impl MemoryTracker {
    fn new(nodes: usize) -> MemoryTracker {
        MemoryTracker { bytes: 0, makers: vec![None; nodes], made: vec![NodeMemory::default(); nodes] }
    }

    /// The operand that a value shares all its tiles with; `None` if there is none.
    fn source(made: &Tiled, operands: &[TensorNodeId], values: &[Option<Tiled>]) -> Option<TensorNodeId> {
        let shares = |of: &&TensorNodeId| values[of.index()].as_ref().is_some_and(|value| made.shares_tiles(value));
        operands.iter().find(shares).copied()
    }

    /// Adds a value that was made from `operands`.
    fn add(
        &mut self,
        id: TensorNodeId,
        is_leaf: bool,
        made: &Tiled,
        operands: &[TensorNodeId],
        values: &[Option<Tiled>],
    ) {
        let maker = match MemoryTracker::source(made, operands, values) {
            _ if is_leaf => None,
            Some(source) => self.makers[source.index()],
            None => Some(id),
        };
        self.makers[id.index()] = maker;
        self.change(maker, |held| match maker == Some(id) {
            true => (held.all, held.is_whole) = (made.present_bytes(), true),
            false => held.views = held.views.saturating_add(made.present_bytes()),
        });
    }

    /// Removes a value that is no longer needed.
    fn remove(&mut self, id: TensorNodeId, value: &Tiled) {
        let maker = self.makers[id.index()];
        self.change(maker, |held| match maker == Some(id) {
            true => held.is_whole = false,
            false => held.views = held.views.saturating_sub(value.present_bytes()),
        });
    }

    /// Changes the bytes that are held of the tiles that a node made.
    fn change(&mut self, maker: Option<TensorNodeId>, change: impl FnOnce(&mut NodeMemory)) {
        let Some(held) = maker.and_then(|maker| self.made.get_mut(maker.index())) else { return };
        let before = held.bytes();
        change(held);
        self.bytes = self.bytes.saturating_sub(before).saturating_add(held.bytes());
    }
}

/// Marks the expressions that are read only by steps that compute single numbers, or by other expressions of this kind.
/// None of their tiles is left out for being small: the tiles of `x * x` may all be below the threshold, although the
/// sum over them is wanted.
fn of_numbers(graph: &TensorGraph, outputs: &[TensorNodeId], steps: &[GraphStep]) -> Vec<bool> {
    read_by(graph, outputs, steps, |(id, region), is_own| {
        graph.node(*id).extents.is_empty() || (region.is_some() && is_own)
    })
}

/// Marks the values that only products of tensors read, directly or through a permutation of axes or a slice.
fn of_products(graph: &TensorGraph, outputs: &[TensorNodeId], steps: &[GraphStep]) -> Vec<bool> {
    read_by(graph, outputs, steps, |(id, region), is_own| match (region, &graph.node(*id).operation) {
        (None, Operation::Contract(_)) => true,
        (None, Operation::Axes(_) | Operation::Slice(_)) => is_own,
        _ => false,
    })
}

/// Marks the nodes whose values are read only by steps that `is_one` accepts. The arguments of `is_one` are a step, and
/// true if only accepted steps read the value of this step.
fn read_by(
    graph: &TensorGraph,
    outputs: &[TensorNodeId],
    steps: &[GraphStep],
    is_one: impl Fn(&GraphStep, bool) -> bool,
) -> Vec<bool> {
    let mut is_read_by = vec![true; graph.len()];
    outputs.iter().for_each(|output| is_read_by[output.index()] = false);
    for step in steps.iter().rev() {
        if !is_one(step, is_read_by[step.0.index()]) {
            read(graph, step).iter().for_each(|operand| is_read_by[operand.index()] = false);
        }
    }
    is_read_by
}

/// Checks that all operations are for tiled tensors, before any is evaluated. Otherwise the evaluation of an operand
/// might fail first, with an error that says less. The error has the location in the source text.
fn check_operations(graph: &TensorGraph, steps: &[GraphStep]) -> Result<(), Error> {
    for (id, _) in steps.iter().filter(|(_, region)| region.is_none()) {
        let operation = &graph.node(*id).operation;
        let is_known = matches!(
            operation,
            Operation::Leaf(_)
                | Operation::Map(_)
                | Operation::Contract(_)
                | Operation::Reduce(..)
                | Operation::Axes(_)
                | Operation::Reshape
                | Operation::Slice(_)
                | Operation::PlaceSlice(_)
        );
        if !is_known {
            let error = not_for_tiles(operation);
            return Err(graph.span(*id).map_or(error.clone(), |span| error.at(span)));
        }
    }
    Ok(())
}

/// The values of nodes, which must have been computed.
fn taken<'v>(values: &'v [Option<Tiled>], nodes: &[TensorNodeId]) -> Result<Vec<&'v Tiled>, Error> {
    nodes.iter().map(|node| values[node.index()].as_ref().ok_or_else(not_computed)).collect()
}

#[cold]
fn not_computed() -> Error {
    Error::tensors(Kind::Evaluation, "an operand was not computed")
}

/// Checks that tensors are inputs for the leaves of a graph.
fn check_inputs(graph: &TensorGraph, inputs: &[&Tiled]) -> Result<(), Error> {
    check_count(graph, inputs.len(), "tiled tensors")?;
    let mut leaves = graph.leaves().iter().zip(inputs);
    leaves.try_for_each(|(leaf, input)| check_input(graph, leaf, input.scalar_type(), &input.tiling().extents()))
}
