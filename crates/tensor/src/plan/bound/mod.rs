//! Plans bound to how their inputs lie: for each step where its operands are and how they are walked over, which expression is compiled for
//! that, and the memory of what it makes. A bound plan is run again and again on inputs that lie so; a run decides nothing and makes
//! little but its results.

mod cut;
mod map;
mod memory;
mod product;
mod reduce;

use super::rows::rows_at_a_time;
use super::{Plan, Region, Step, View, Work, is_view};
use crate::body::Elements;
use crate::node::Operation;
use crate::reference::{check_inputs, check_size, node_value};
use crate::{Axis, Counters, Data, Error, ErrorKind, Extents, Graph, Layout, Node, NodeId, Tensor};
use cembra_runtime::Scalar;
use cut::Cut;
use map::MapPiece;
use memory::{Memory, Operand, Place, Seen, Slot, Slots, own};
use product::ProductStep;
use reduce::ReducePiece;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// The results of a reduction that are made at a time where maps of them follow.
const STRIP: usize = 1 << 15;

/// A plan, bound to how its inputs lie, with the memory that it needs. One thread runs it.
#[derive(Debug)]
pub struct BoundPlan {
    /// The inputs that it is bound to, wherever they begin.
    inputs: Vec<(Scalar, Layout)>,
    steps: Vec<BoundStep>,
    slots: Vec<Slot>,
    outputs: Vec<Seen>,
}

/// A step, where its value goes, and what nobody needs after it.
#[derive(Debug)]
struct BoundStep {
    work: BoundWork,
    target: u32,
    len: usize,
    /// Slots that nothing is put into after the last step that reads them.
    shrunk: SmallVec<[u32; 2]>,
}

#[derive(Debug)]
enum BoundWork {
    /// Parts that are run for each piece of the leading axes of the value, and how many elements it has for each index of these.
    Parts(Cut<Vec<Part>>, usize),
    /// A product by labels.
    Product(Box<ProductStep>),
    /// A node as the reference evaluates it.
    Node(Box<Node>, SmallVec<[Seen; 2]>),
}

/// A map or a reduction over a piece, and where it leaves what it makes, if that is not a piece of the step's value.
#[derive(Debug)]
struct Part {
    work: PartWork,
    left: Option<(u32, usize)>,
}

#[derive(Debug)]
enum PartWork {
    Map(Box<MapPiece>),
    /// A reduction.
    Reduce(Box<ReducePiece>),
    /// A reduction, where its results go, how many there are, and maps of them.
    ReduceThen(Box<ReducePiece>, (u32, usize), Box<MapPiece>),
}

impl Part {
    fn run(
        &mut self,
        memory: &mut Memory<'_>,
        elements: &dyn Elements,
        starts: &[usize],
        to: (&mut Data, usize),
    ) -> Result<(), Error> {
        match &mut self.work {
            PartWork::Map(map) => map.run(memory, elements, starts, to),
            PartWork::Reduce(reduce) => reduce.run(memory, elements, starts, to),
            PartWork::ReduceThen(reduce, (slot, len), then) => {
                let mut made = memory.take(*slot, *len)?;
                reduce.run(memory, elements, starts, (own(&mut made)?, 0))?;
                memory.put(*slot, made);
                then.run(memory, elements, starts, to)
            }
        }
    }
}

/// What is known while a plan is bound.
struct Binding<'b> {
    graph: &'b Graph,
    elements: &'b dyn Elements,
    /// Where nodes have their values.
    values: FxHashMap<NodeId, Seen>,
    slots: Slots,
}

impl Plan {
    /// The plan, bound to inputs that lie as these do. The graph is the one that was planned.
    ///
    /// # Errors
    /// The inputs do not fit, a value would be larger than it may, or an expression cannot be compiled.
    pub fn bind(&self, graph: &Graph, inputs: &[Tensor], elements: &dyn Elements) -> Result<BoundPlan, Error> {
        check_inputs(graph, inputs)?;
        let mut values = FxHashMap::default();
        for (at, (leaf, input)) in graph.leaves().iter().zip(inputs).enumerate() {
            let layout = input.layout();
            let layout = Layout::within(layout.extents(), layout.strides().into(), 0);
            values.insert(leaf.node, Seen { place: Place::Input(at as u32), layout });
        }
        let mut binding = Binding { graph, elements, values, slots: Slots::default() };
        let last_reads = self.last_reads(graph);
        let mut steps: Vec<BoundStep> = Vec::with_capacity(self.steps.len());
        // The slots that are read for the last time by each step.
        let mut released: Vec<SmallVec<[u32; 2]>> = Vec::with_capacity(self.steps.len());
        let mut step_of: Vec<usize> = Vec::new();
        // The slots of nodes that have one of their own.
        let mut own: FxHashMap<NodeId, u32> = FxHashMap::default();
        for (at, step) in self.steps.iter().enumerate() {
            released.push(SmallVec::new());
            if binding.sees(step)? {
                continue;
            }
            let node = graph.node(step.node);
            check_size(node, elements.most_bytes())?;
            let len = node.extents.iter().product();
            let target = binding.slots.take(node.scalar, len);
            let work = binding.work(step)?;
            let layout = Layout::row_major(&node.extents)?;
            binding.values.insert(step.node, Seen { place: Place::Slot(target), layout });
            own.insert(step.node, target);
            steps.push(BoundStep { work, target, len, shrunk: SmallVec::new() });
            step_of.push(at);
            for node in last_reads.get(&at).into_iter().flatten() {
                if let Some(slot) = own.get(node) {
                    binding.slots.release(*slot);
                    released[at].push(*slot);
                }
            }
        }
        // Of slots that are used again only the last use counts.
        let mut is_known = vec![false; binding.slots.all.len()];
        for (step, at) in steps.iter_mut().zip(&step_of).rev() {
            for slot in &released[*at] {
                if !std::mem::replace(&mut is_known[*slot as usize], true) {
                    step.shrunk.push(*slot);
                }
            }
        }
        let seen = |node: &NodeId| binding.seen(*node).cloned();
        let outputs = self.outputs.iter().map(seen).collect::<Result<Vec<Seen>, Error>>()?;
        let inputs = inputs.iter().map(|input| (input.scalar_type(), input.layout().clone())).collect();
        Ok(BoundPlan { inputs, steps, slots: binding.slots.all, outputs })
    }

    /// By the numbers of steps, the nodes that have memory which no later step reads, and no output sees.
    fn last_reads(&self, graph: &Graph) -> FxHashMap<usize, Vec<NodeId>> {
        // A node and what it may be a view of.
        let seen = |node: NodeId| {
            let next =
                |node: &NodeId| Some(graph.node(*node)).filter(|node| is_shared(node)).map(|node| node.operands[0]);
            std::iter::successors(Some(node), next)
        };
        let mut last: FxHashMap<NodeId, usize> = FxHashMap::default();
        for (at, step) in self.steps.iter().enumerate() {
            last.insert(step.node, at);
            for node in step.reads(graph) {
                seen(node).for_each(|node| _ = last.insert(node, at));
            }
        }
        for output in &self.outputs {
            seen(*output).for_each(|node| _ = last.remove(&node));
        }
        let mut by_step: FxHashMap<usize, Vec<NodeId>> = FxHashMap::default();
        for (node, at) in last {
            by_step.entry(at).or_default().push(node);
        }
        by_step.values_mut().for_each(|nodes| nodes.sort());
        by_step
    }

    /// Runs the steps on tensors for the leaves of the graph, which is the one that was planned.
    ///
    /// # Errors
    /// As for [`evaluate`](crate::evaluate).
    pub fn run(
        &self,
        graph: &Graph,
        inputs: &[Tensor],
        elements: &dyn Elements,
    ) -> Result<(Vec<Tensor>, Counters), Error> {
        let mut bound = self.bind(graph, inputs, elements)?;
        let mut made = Vec::new();
        let counters = bound.run(inputs, elements, &mut made)?.unwrap_or_default();
        Ok((made, counters))
    }
}

/// True for what may share the memory of its operand.
fn is_shared(node: &Node) -> bool {
    matches!(
        node.operation,
        Operation::Axes(_)
            | Operation::Slice(_)
            | Operation::Broadcast
            | Operation::Reshape
            | Operation::CustomVjp(_)
            | Operation::Barrier(_)
    )
}

impl Binding<'_> {
    fn seen(&self, node: NodeId) -> Result<&Seen, Error> {
        self.values.get(&node).ok_or_else(|| Error::new(ErrorKind::Evaluation, "a value that was not computed"))
    }

    /// True for a step that makes nothing but another layout of memory that is there.
    fn sees(&mut self, step: &Step) -> Result<bool, Error> {
        let node = self.graph.node(step.node);
        if !matches!(step.work, Work::Node) {
            return Ok(false);
        }
        let seen = match node.operation {
            Operation::Leaf(_) => return Ok(true),
            Operation::Reshape => {
                let of = self.seen(node.operands[0])?;
                match of.layout.reshaped(&node.extents)? {
                    Some(layout) => Seen { place: of.place, layout },
                    None => return Ok(false),
                }
            }
            _ if is_view(self.graph, node) => {
                let of = self.seen(node.operands[0])?;
                let view = View::of_operand(node, self.graph.node(node.operands[0]));
                let Some(view) = view else { return Ok(false) };
                Seen { place: of.place, layout: view.layout(&of.layout, &node.extents) }
            }
            _ => return Ok(false),
        };
        self.values.insert(step.node, seen);
        Ok(true)
    }

    fn work(&mut self, step: &Step) -> Result<BoundWork, Error> {
        let node = self.graph.node(step.node);
        match &step.work {
            Work::Node => {
                let operands: Result<_, Error> = node.read().iter().map(|node| self.seen(*node).cloned()).collect();
                Ok(BoundWork::Node(Box::new(node.clone()), operands?))
            }
            Work::Product { product, then } => {
                Ok(BoundWork::Product(Box::new(ProductStep::of(self, *product, then.as_ref())?)))
            }
            Work::Rows { depth, steps } => self.parts(steps, *depth, rows_at_a_time(steps, *depth)),
            Work::Reduce { then: Some(_), .. } => self.parts(std::slice::from_ref(step), node.extents.len(), STRIP),
            Work::Map(_) | Work::Reduce { .. } => self.parts(std::slice::from_ref(step), 0, 1),
        }
    }

    /// Steps that are run for pieces of so many leading axes of what they make; the last one makes the value.
    fn parts(&mut self, steps: &[Step], depth: usize, most: usize) -> Result<BoundWork, Error> {
        let graph = self.graph;
        let extents = steps.last().map_or(&[][..], |step| &graph.node(step.node).extents);
        let (rows, within) = extents.split_at(depth);
        let mut slots: Vec<u32> = Vec::new();
        let cut = Cut::of(rows, most, |rows| {
            let mut left: FxHashMap<NodeId, Seen> = FxHashMap::default();
            let mut parts = Vec::with_capacity(steps.len());
            for (at, step) in steps.iter().enumerate() {
                let is_last = at + 1 == steps.len();
                let node = graph.node(step.node);
                let work = self.part(step, rows, &left, &mut slots)?;
                let piece: Extents = rows.iter().chain(&node.extents[depth..]).copied().collect();
                let len = piece.iter().product();
                let slot = if is_last { None } else { Some((self.slots.take(node.scalar, len), len)) };
                if let Some((slot, _)) = slot {
                    slots.push(slot);
                    left.insert(step.node, Seen { place: Place::Slot(slot), layout: Layout::row_major(&piece)? });
                }
                parts.push(Part { work, left: slot });
            }
            Ok(parts)
        })?;
        slots.into_iter().for_each(|slot| self.slots.release(slot));
        Ok(BoundWork::Parts(cut, within.iter().product()))
    }

    /// A step for a piece of so many indices of the leading axes of what it makes.
    fn part(
        &mut self,
        step: &Step,
        rows: &[usize],
        left: &FxHashMap<NodeId, Seen>,
        slots: &mut Vec<u32>,
    ) -> Result<PartWork, Error> {
        match &step.work {
            Work::Map(region) => Ok(PartWork::Map(Box::new(self.map(region, rows, left, None)?))),
            Work::Reduce { reduction, axes, of, then } => {
                let is_kept = |axis: &Axis| !axes.contains(axis);
                let kept: SmallVec<[Axis; 8]> =
                    (0..of.extents.len() as Axis).filter(is_kept).take(rows.len()).collect();
                let mut extents = of.extents.clone();
                kept.iter().zip(rows).for_each(|(axis, count)| extents[usize::from(*axis)] = *count);
                let operands = self.operands(of, &extents, &kept, left)?;
                let reduction = (*reduction, &axes[..]);
                let reduce = ReducePiece::of(reduction, of, operands.into_iter(), &extents, self.elements)?;
                let reduce = Box::new(reduce);
                let Some(then) = then else { return Ok(PartWork::Reduce(reduce)) };
                let made: Extents = rows.iter().chain(&then.extents[rows.len()..]).copied().collect();
                let len = made.iter().product();
                let scalar = then.body.inputs.first().copied().unwrap_or(Scalar::Float64);
                let slot = self.slots.take(scalar, len);
                slots.push(slot);
                let seen = Seen { place: Place::Slot(slot), layout: Layout::row_major(&made)? };
                let then = self.map(then, rows, left, Some(seen))?;
                Ok(PartWork::ReduceThen(reduce, (slot, len), Box::new(then)))
            }
            _ => Err(Error::new(ErrorKind::Evaluation, "a step that has no pieces")),
        }
    }

    /// Maps for a piece of so many indices of the leading axes. The first input may be what was made for the piece.
    fn map(
        &self,
        region: &Region,
        rows: &[usize],
        left: &FxHashMap<NodeId, Seen>,
        first: Option<Seen>,
    ) -> Result<MapPiece, Error> {
        let extents: Extents = rows.iter().chain(&region.extents[rows.len()..]).copied().collect();
        let axes: SmallVec<[Axis; 8]> = (0..rows.len() as Axis).collect();
        let mut operands = self.operands(region, &extents, &axes, left)?;
        if let (Some(seen), Some(operand)) = (first, operands.first_mut()) {
            *operand = Operand::of_piece(&seen, axes.len());
        }
        MapPiece::of(&region.body, operands.into_iter(), &extents, self.elements)
    }

    /// What a region reads, seen from a piece of its index space that begins at indices of these axes.
    fn operands(
        &self,
        region: &Region,
        piece: &[usize],
        axes: &[Axis],
        left: &FxHashMap<NodeId, Seen>,
    ) -> Result<SmallVec<[Operand; 4]>, Error> {
        let operand = |(node, view): &(NodeId, View)| -> Result<Operand, Error> {
            if let Some(seen) = left.get(node) {
                let layout = view.layout(&seen.layout, piece);
                return Ok(Operand::of_piece(&Seen { place: seen.place, layout }, axes.len()));
            }
            // What was made before in the same step is put into its place by whoever asks.
            let Some(seen) = self.values.get(node) else {
                let none = Layout::within(piece, SmallVec::from_elem(0, piece.len()), 0);
                return Ok(Operand::of_piece(&Seen { place: Place::Slot(0), layout: none }, axes.len()));
            };
            let layout = view.layout(&seen.layout, &region.extents);
            Ok(Operand::of(&Seen { place: seen.place, layout }, axes))
        };
        region.inputs.iter().map(operand).collect()
    }
}

impl BoundPlan {
    /// True if these are inputs that it is bound to.
    fn fits(&self, inputs: &[Tensor]) -> bool {
        let fits = |(input, (scalar, layout)): (&Tensor, &(Scalar, Layout))| {
            let own = input.layout();
            input.scalar_type() == *scalar && own.strides() == layout.strides() && own.extents() == layout.extents()
        };
        self.inputs.len() == inputs.len() && inputs.iter().zip(&self.inputs).all(fits)
    }

    /// Runs the steps on inputs, and puts the outputs in the place of what was there. Nothing is done if it is bound to other inputs. Small
    /// outputs of a run before that nobody has any more give their memory.
    ///
    /// # Errors
    /// An index is outside of its axis, an element fails, or the run was cancelled.
    pub fn run(
        &mut self,
        inputs: &[Tensor],
        elements: &dyn Elements,
        outputs: &mut Vec<Tensor>,
    ) -> Result<Option<Counters>, Error> {
        outputs.clear();
        if !self.fits(inputs) {
            return Ok(None);
        }
        let mut memory = Memory { inputs, slots: &mut self.slots };
        let mut counters = Counters::default();
        for step in &mut self.steps {
            elements.go_on()?;
            step.run(&mut memory, elements, &mut counters)?;
            step.shrunk.iter().for_each(|slot| memory.slots[*slot as usize].shrink());
        }
        for seen in &self.outputs {
            outputs.push(memory.tensor(seen)?);
        }
        memory.slots.iter_mut().for_each(Slot::shrink);
        Ok(Some(counters))
    }
}

impl BoundStep {
    fn run(&mut self, memory: &mut Memory<'_>, elements: &dyn Elements, counters: &mut Counters) -> Result<(), Error> {
        match &mut self.work {
            BoundWork::Parts(cut, within) => {
                let mut made = memory.take(self.target, self.len)?;
                let to = own(&mut made)?;
                cut.run(|parts, starts, before| {
                    elements.go_on()?;
                    for part in parts {
                        let Some((slot, len)) = part.left else {
                            part.run(memory, elements, starts, (&mut *to, before * *within))?;
                            continue;
                        };
                        let mut made = memory.take(slot, len)?;
                        part.run(memory, elements, starts, (own(&mut made)?, 0))?;
                        memory.put(slot, made);
                    }
                    Ok(())
                })?;
                memory.put(self.target, made);
                Ok(())
            }
            BoundWork::Product(product) => {
                *counters += product.run(memory, elements, (self.target, self.len))?;
                Ok(())
            }
            BoundWork::Node(node, operands) => {
                let operands: Result<SmallVec<[Tensor; 2]>, Error> =
                    operands.iter().map(|seen| memory.tensor(seen)).collect();
                let operands = operands?;
                let read: SmallVec<[&Tensor; 4]> = operands.iter().collect();
                let value = node_value(node, &read, memory.inputs, elements)?.row_major();
                let (data, layout) = value.into_parts();
                let is_all = layout.offset() == 0 && data.len() == self.len;
                let data = if is_all { data } else { Tensor::of_parts(data, layout).gathered().into() };
                memory.put(self.target, data);
                Ok(())
            }
        }
    }
}
