//! Binding a plan: finds, for each step, its operands and their strides in pieces of the index space, the slots of values and their last readers, and
//! the workers (one per thread, each with its own memory). Other files run bound plans.

use super::ahead::{self, RowRead};
use super::cut::PiecePartition;
use super::map::MapPiece;
use super::memory::{Operand, Slot, Slots, StridedView, ValueOrigin, not_computed};
use super::product::{FullProduct, ProductPiece};
use super::reduce::ReducePiece;
use super::verify::verify;
use super::{BindingResult, BoundGuard, BoundPlan, BoundStep, BoundWork, PartWork, PieceStep, Worker};
use crate::tensors::evaluator::TensorHost;
use cembra_runtime::Scalar;
use cembra_tensor::plan::{Condition, Region, Step, View, Work, cost_of_body, is_view, rows_at_a_time};
use cembra_tensor::reference::{check_inputs, check_size};
use cembra_tensor::{
    Axis, Elements, Extents, Labels, Layout, Node, Operation, Plan, ProductPlan, Tensor, TensorBytes, TensorErrorKind,
    TensorGraph, TensorNodeId,
};
use cembra_value::Error;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::sync::Arc;

/// The most results of a reduction that are computed at a time if maps follow it.
const STRIP: usize = 1 << 15;

/// The most elements per panel (a range of the first axis) of a product that maps follow. A panel of `LEAST_ROWS` rows
/// may have more.
const PANEL: usize = 1 << 17;
/// The fewest rows per panel (a range of the first axis) of a product that is followed by maps.
const LEAST_ROWS: usize = 64;

/// An operand with its element type and its layout.
type TypedOperand = (Operand, (Scalar, Layout));

/// The state of binding a plan: where the values of nodes are, which slots are in use, and how many bytes they take.
pub(super) struct Binding<'b> {
    pub(super) graph: &'b TensorGraph,
    pub(super) host: &'b TensorHost<'b>,
    /// The location and layout of each node's value in memory.
    values: FxHashMap<TensorNodeId, StridedView>,
    pub(super) slots: Slots,
    held: TensorBytes,
}

impl BoundPlan {
    /// Binds a plan to the types, extents and strides of `inputs`. `graph` must be the graph that was planned.
    ///
    /// # Errors
    /// If the inputs do not fit, a value exceeds the limit of bytes, or an expression cannot be compiled.
    pub fn of(plan: &Plan, graph: &TensorGraph, inputs: &[Tensor], host: &TensorHost<'_>) -> Result<BoundPlan, Error> {
        BoundPlan::of_steps(plan, graph, inputs, None, host)
    }

    /// Binds a plan. If `over` is given, the last step overwrites the input with this index. If `over` is the number of inputs, the step overwrites
    /// the tensor after the inputs.
    pub(super) fn of_steps(
        plan: &Plan,
        graph: &TensorGraph,
        inputs: &[Tensor],
        over: Option<usize>,
        host: &TensorHost<'_>,
    ) -> Result<BoundPlan, Error> {
        let bound = BindingResult::of(plan, graph, inputs, over, host)?;
        debug_assert_eq!(verify(plan, graph, &bound), Ok(()), "{}", plan.listing(graph));
        Ok(bound.plan)
    }

    /// Binds a plan as [`of`](BoundPlan::of) does, and checks it with the verifiers of plans and bound plans. Debug builds
    /// always check.
    ///
    /// # Errors
    /// The errors of `of`, or a flaw that a verifier finds.
    pub(crate) fn verified(
        plan: &Plan,
        graph: &TensorGraph,
        inputs: &[Tensor],
        host: &TensorHost<'_>,
    ) -> Result<BoundPlan, Error> {
        let wrong = |flaw: &dyn std::fmt::Display| {
            Error::tensors(TensorErrorKind::Evaluation, format!("a plan is wrong: {flaw}"))
        };
        plan.verify(graph).map_err(|flaw| wrong(&flaw))?;
        let bound = BindingResult::of(plan, graph, inputs, None, host)?;
        verify(plan, graph, &bound).map_err(|flaw| wrong(&flaw))?;
        Ok(bound.plan)
    }
}

impl BindingResult {
    /// Binds a plan. The result also has the facts that verifying it needs.
    pub(super) fn of(
        plan: &Plan,
        graph: &TensorGraph,
        inputs: &[Tensor],
        over: Option<usize>,
        host: &TensorHost<'_>,
    ) -> Result<BindingResult, Error> {
        check_inputs(graph, inputs)?;
        let mut values = FxHashMap::default();
        for (at, (leaf, input)) in graph.leaves().iter().zip(inputs).enumerate() {
            let layout = input.layout();
            let layout = Layout::within(layout.extents(), layout.strides().into(), 0);
            values.insert(leaf.node, StridedView { place: ValueOrigin::Input(at as u32), layout });
        }
        let held = TensorBytes::with_limit(host.most_bytes());
        let mut binding = Binding { graph, host, values, slots: Slots::default(), held };
        let mut steps: Vec<BoundStep> = Vec::with_capacity(plan.steps().len());
        // For each step, the slots that it reads for the last time.
        let mut released: Vec<SmallVec<[u32; 2]>> = Vec::with_capacity(plan.steps().len());
        let mut step_of: Vec<usize> = Vec::new();
        // The slots of nodes with a slot of their own.
        let mut own: FxHashMap<TensorNodeId, u32> = FxHashMap::default();
        let mut written = None;
        for (at, step) in plan.steps().iter().enumerate() {
            released.push(SmallVec::new());
            if let Some(target) = over.filter(|_| at + 1 == plan.steps().len()) {
                check_size(graph.node(step.node), host.most_bytes())?;
                written = Some(binding.in_place(step, target)?);
                break;
            }
            if binding.sees(step)? {
                continue;
            }
            let guard = binding.guard(step)?;
            let (mut bound, between) = match &step.work {
                Work::SharedReductions(members) => binding.together(members, &mut own)?,
                Work::Reduce { .. } if host.threads() > 1 => binding.together(std::slice::from_ref(step), &mut own)?,
                _ => (vec![binding.step(step, &mut own)?], SmallVec::new()),
            };
            bound.iter_mut().for_each(|bound| bound.guard.clone_from(&guard));
            step_of.extend(bound.iter().map(|_| at));
            steps.extend(bound);
            for slot in between {
                binding.release(slot);
                released[at].push(slot);
            }
            for slot in step.last_uses.iter().filter_map(|node| own.get(node)) {
                binding.release(*slot);
                released[at].push(*slot);
            }
        }
        // If a slot is reused, only its last use counts.
        let mut is_known = vec![false; binding.slots.all.len()];
        for (step, at) in steps.iter_mut().zip(&step_of).rev() {
            for slot in &released[*at] {
                if !std::mem::replace(&mut is_known[*slot as usize], true) {
                    step.shrunk.push(*slot);
                }
            }
        }
        let seen = |node: &TensorNodeId| binding.seen(*node).cloned();
        let outputs = if over.is_some() { Ok(Vec::new()) } else { plan.outputs().iter().map(seen).collect() };
        let inputs = inputs.iter().map(|input| (input.scalar_type(), input.layout().clone())).collect();
        let (slots, peak) = (binding.slots.all, binding.held.peak());
        let mut all = TensorBytes::with_limit(host.most_bytes());
        let locals =
            |step: &mut BoundStep| step.workers().iter().try_for_each(|worker| worker.locals.count_bytes(&mut all));
        let may_keep = steps.iter_mut().try_for_each(locals).is_ok()
            && slots.iter().all(|slot| all.take(slot.scalar, &[slot.len]).is_ok());
        let plan = BoundPlan { inputs, steps, slots, outputs: outputs?, keeps: false, may_keep, over: written, peak };
        Ok(BindingResult { plan, values: binding.values, step_of })
    }
}

/// The error for a step that cannot be computed piece by piece.
#[cold]
pub(super) fn no_pieces() -> Error {
    Error::tensors(TensorErrorKind::Evaluation, "a step cannot be divided into blocks of elements")
}

impl Binding<'_> {
    /// Returns where the value of `node` is in memory, and its layout there.
    pub(super) fn seen(&self, node: TensorNodeId) -> Result<&StridedView, Error> {
        self.values.get(&node).ok_or_else(not_computed)
    }

    /// Returns the location of each condition of a step, and the value that the condition must have for the step to
    /// run.
    fn guard(&self, step: &Step) -> Result<BoundGuard, Error> {
        let seen = |condition: &Condition| Ok((self.seen(condition.node)?.clone(), condition.holds));
        step.guard.iter().map(seen).collect()
    }

    /// Returns true if a step only makes another layout of existing memory. The new layout is then recorded as the
    /// step's value.
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
                    Some(layout) => StridedView { place: of.place, layout },
                    None => return Ok(false),
                }
            }
            _ if is_view(self.graph, node) => {
                let of = self.seen(node.operands[0])?;
                let view = View::of_operand(node, self.graph.node(node.operands[0]));
                let Some(view) = view else { return Ok(false) };
                StridedView { place: of.place, layout: view.layout(&of.layout, &node.extents) }
            }
            _ => return Ok(false),
        };
        self.values.insert(step.node, seen);
        Ok(true)
    }

    /// Reserves a slot for the value of `node`. Returns the slot and its number of elements.
    pub(super) fn made(&mut self, node: TensorNodeId) -> Result<(u32, usize), Error> {
        let made = self.graph.node(node);
        self.held.take(made.scalar, &made.extents)?;
        let layout = Layout::row_major(&made.extents)?;
        let slot = self.slots.take(made.scalar, layout.len());
        let len = layout.len();
        self.values.insert(node, StridedView { place: ValueOrigin::Slot(slot), layout });
        Ok((slot, len))
    }

    /// Frees a slot whose value no later step reads.
    fn release(&mut self, slot: u32) {
        let Slot { scalar, len, .. } = self.slots.all[slot as usize];
        self.held.give(scalar, &[len]);
        self.slots.release(slot);
    }

    /// Binds a step that computes a value, and records the value's slot in `own`.
    pub(super) fn step(&mut self, step: &Step, own: &mut FxHashMap<TensorNodeId, u32>) -> Result<BoundStep, Error> {
        let mut work = self.work(step)?;
        let (target, len) = self.made(step.node)?;
        own.insert(step.node, target);
        if let BoundWork::Pieces(workers, _) = &mut work {
            self.limit_workers(workers)?;
        }
        Ok(BoundStep { work, target, len, guard: BoundGuard::default(), shrunk: SmallVec::new() })
    }

    /// Counts the memory that `workers`, which compute pieces (parts of the value) of a step, need besides the step's
    /// value. Workers with which the memory limit would be exceeded are dropped.
    pub(super) fn limit_workers(&mut self, workers: &mut Vec<Worker>) -> Result<(), Error> {
        let (mut all, mut count) = (self.held.clone(), 0);
        for worker in &*workers {
            let mut held = all.clone();
            match worker.count_bytes(&mut held) {
                Ok(()) => all = held,
                Err(error) if count == 0 => return Err(error),
                Err(_) => break,
            }
            worker.locals.count_kept_bytes(&mut self.held)?;
            count += 1;
        }
        self.held.reach(&all);
        workers.truncate(count);
        Ok(())
    }

    /// Binds the work of a step, without reserving a slot for its value.
    pub(super) fn work(&self, step: &Step) -> Result<BoundWork, Error> {
        let node = self.graph.node(step.node);
        let one = std::slice::from_ref(step);
        let rank = node.extents.len();
        match &step.work {
            Work::Node => {
                let operands: Result<_, Error> = node.read().iter().map(|node| self.seen(*node).cloned()).collect();
                Ok(BoundWork::Node(Box::new(node.clone()), operands?))
            }
            Work::Product { product, then } => {
                let (depth, most) = self.panels(*product, then.is_some())?;
                self.pieces(one, depth, most)
            }
            Work::Rows { depth, steps } => self.pieces(steps, *depth, rows_at_a_time(steps, *depth)),
            Work::SharedReductions(_) => Err(no_pieces()),
            Work::Reduce { of, then, .. } => {
                let each = of.extents.iter().product::<usize>() / node.extents.iter().product::<usize>().max(1);
                // Work that one thread does in one go is done in pieces by several.
                match then {
                    _ if self.is_shared_out(step) => self.pieces(one, rank, (self.host.share() / each.max(1)).max(1)),
                    Some(_) => self.pieces(one, rank, STRIP),
                    None => self.pieces(one, 0, 1),
                }
            }
            Work::Map(_) => {
                let work = self.pieces(one, 0, 1)?;
                // The host itself uses several threads for a large map along one line.
                let is_large = matches!(&work, BoundWork::Pieces(workers, _) if workers.iter().any(Worker::is_large));
                if is_large || !self.is_shared_out(step) { Ok(work) } else { self.pieces(one, rank, self.host.share()) }
            }
        }
    }

    /// Returns true if the run has several threads and the step is large enough to divide it among them.
    pub(super) fn is_shared_out(&self, step: &Step) -> bool {
        let size = step.space().map_or(0, |(extents, _)| extents.iter().product());
        self.host.threads() > 1 && size >= self.host.share().saturating_mul(2)
    }

    /// Binds steps that run together on pieces of the index space. A piece is cut from the `depth` leading axes of the steps' values, and has at most
    /// `most` indices of these axes. The last step computes the value that all pieces together form.
    pub(super) fn pieces(&self, steps: &[Step], depth: usize, most: usize) -> Result<BoundWork, Error> {
        let extents = steps.last().map_or(&[][..], |step| &self.graph.node(step.node).extents);
        let (rows, within) = extents.split_at(depth);
        let worker = || -> Result<Worker, Error> {
            let mut locals = Slots::default();
            let cut = PiecePartition::of(rows, most, |rows| self.parts(steps, rows, &mut locals))?;
            Ok(Worker { cut, locals: locals.locals()? })
        };
        let mut workers = vec![worker()?];
        let is_worth = |step: &Step| step.space().is_none() || self.is_shared_out(step);
        if steps.iter().any(is_worth) {
            for _ in 1..self.host.threads().min(workers[0].cut.count) {
                workers.push(worker()?);
            }
        }
        Ok(BoundWork::Pieces(workers, within.iter().product()))
    }

    /// Binds steps for a piece of their index space, with `rows` as the extents of its leading axes.
    fn parts(&self, steps: &[Step], rows: &[usize], locals: &mut Slots) -> Result<Vec<PieceStep>, Error> {
        let mut left: FxHashMap<TensorNodeId, StridedView> = FxHashMap::default();
        let reads = |(at, step): (usize, &Step)| step.reads(self.graph).into_iter().map(move |node| (node, at));
        // For each value, the last of the steps that read it.
        let last_reads: FxHashMap<TensorNodeId, usize> = steps.iter().enumerate().flat_map(reads).collect();
        let mut unread: Vec<(usize, u32)> = Vec::new();
        let mut parts = Vec::with_capacity(steps.len());
        let (mut costs, mut reads) = (Vec::new(), Vec::new());
        for (at, step) in steps.iter().enumerate() {
            let node = self.graph.node(step.node);
            let piece = |extents: &[usize]| -> Extents { rows.iter().chain(&extents[rows.len()..]).copied().collect() };
            let mut local = |node: TensorNodeId, extents: &[usize]| -> Result<(u32, StridedView), Error> {
                let slot = locals.take(self.graph.node(node).scalar, extents.iter().product());
                unread.push((last_reads.get(&node).map_or(at, |last| *last.max(&at)), slot));
                Ok((slot, StridedView { place: ValueOrigin::Local(slot), layout: Layout::row_major(extents)? }))
            };
            let then = match &step.work {
                Work::Reduce { then, .. } | Work::Product { then, .. } => then.as_ref(),
                _ => None,
            };
            let own = piece(&node.extents);
            if let ([_], [_, _, ..]) = (rows, steps) {
                self.reads(step, rows, &left, parts.len(), (&mut costs, &mut reads))?;
            }
            let mut work = self.part(step, rows, &left)?;
            if let Some((then, (first, _))) = then.and_then(|then| then.inputs.first().map(|first| (then, first))) {
                let made = piece(&then.extents);
                let (slot, seen) = local(*first, &made)?;
                parts.push(PieceStep { work, len: made.iter().product(), left: Some(slot), over: None });
                left.insert(*first, seen);
                work = PartWork::Map(Box::new(self.map(then, rows, &left)?));
            }
            let mut slot = None;
            if at + 1 < steps.len() {
                let (made, seen) = local(step.node, &own)?;
                slot = Some(made);
                left.insert(step.node, seen);
            }
            parts.push(PieceStep { work, len: own.iter().product(), left: slot, over: None });
            // Memory that no later step reads is reused.
            unread.retain(|(last, slot)| {
                let is_read = *last > at;
                if !is_read {
                    locals.release(*slot);
                }
                is_read
            });
        }
        if let [rows] = rows {
            ahead::assign_prefetches(&mut parts, *rows, &costs, &reads);
        }
        Ok(parts)
    }

    /// Records the contiguous rows that the step reads and, if it is a reduction, the cost per element. `part` is the index
    /// of the step's first part.
    fn reads(
        &self,
        step: &Step,
        rows: &[usize],
        left: &FxHashMap<TensorNodeId, StridedView>,
        part: usize,
        (costs, reads): (&mut Vec<(usize, u64)>, &mut Vec<RowRead>),
    ) -> Result<(), Error> {
        let of = match &step.work {
            Work::Reduce { axes, of, .. } if !axes.contains(&0) => {
                costs.push((part, cost_of_body(self.graph.registry(), &of.body)));
                of
            }
            Work::Map(of) => of,
            _ => return Ok(()),
        };
        let extents: Extents = rows.iter().chain(&of.extents[rows.len()..]).copied().collect();
        let operands = self.operands(of, &extents, &[0], left)?;
        reads.extend(operands.iter().filter_map(|operand| RowRead::of(part, operand, &extents)));
        Ok(())
    }

    /// Binds a step, without the map that follows it, to a piece of its index space. The piece has the extents `rows` along the leading axes.
    pub(super) fn part(
        &self,
        step: &Step,
        rows: &[usize],
        left: &FxHashMap<TensorNodeId, StridedView>,
    ) -> Result<PartWork, Error> {
        match &step.work {
            Work::Map(region) => Ok(PartWork::Map(Box::new(self.map(region, rows, left)?))),
            Work::Reduce { reduction, axes, of, .. } => {
                let is_kept = |axis: &Axis| !axes.contains(axis);
                let kept: SmallVec<[Axis; 8]> =
                    (0..of.extents.len() as Axis).filter(is_kept).take(rows.len()).collect();
                let mut extents = of.extents.clone();
                kept.iter().zip(rows).for_each(|(axis, count)| extents[usize::from(*axis)] = *count);
                let operands = self.operands(of, &extents, &kept, left)?;
                let reduce = ReducePiece::of(*reduction, axes, of, operands, &extents, self.host, true)?;
                Ok(PartWork::Reduce(Box::new(reduce)))
            }
            Work::Product { product, .. } => Ok(PartWork::Product(Box::new(self.product(*product, rows)?))),
            Work::Rows { .. } | Work::SharedReductions(_) | Work::Node => Err(no_pieces()),
        }
    }

    /// Binds a map to a piece of its index space. The piece has the extents `rows` along the leading axes.
    pub(super) fn map(
        &self,
        region: &Region,
        rows: &[usize],
        left: &FxHashMap<TensorNodeId, StridedView>,
    ) -> Result<MapPiece, Error> {
        let extents: Extents = rows.iter().chain(&region.extents[rows.len()..]).copied().collect();
        let axes: SmallVec<[Axis; 8]> = (0..rows.len() as Axis).collect();
        let operands = self.operands(region, &extents, &axes, left)?;
        MapPiece::of(&region.body, operands, &extents, self.host)
    }

    /// Returns the operands of `region` for pieces of its index space. A piece has the extents `piece`, and may begin at any index along each of the
    /// axes `axes`.
    pub(super) fn operands(
        &self,
        region: &Region,
        piece: &[usize],
        axes: &[Axis],
        left: &FxHashMap<TensorNodeId, StridedView>,
    ) -> Result<SmallVec<[Operand; 4]>, Error> {
        let operand = |(node, view): &(TensorNodeId, View)| -> Result<Operand, Error> {
            if let Some(seen) = left.get(node) {
                let layout = view.layout(&seen.layout, piece);
                return Ok(Operand::of_piece(&StridedView { place: seen.place, layout }, axes.len()));
            }
            let seen = self.seen(*node)?;
            let layout = view.layout(&seen.layout, &region.extents);
            Ok(Operand::of(&StridedView { place: seen.place, layout }, axes))
        };
        region.inputs.iter().map(operand).collect()
    }

    /// Returns the number of leading axes of a product that are cut into panels (ranges of these axes), and the number
    /// of their indices per panel.
    fn panels(&self, product: TensorNodeId, is_followed: bool) -> Result<(usize, usize), Error> {
        // Without fast products there are no panels.
        let extents = self.graph.extents(product);
        let (Some(products), false) = (self.host.products(), extents.is_empty()) else { return Ok((0, 1)) };
        if is_followed {
            let row: usize = extents[1..].iter().product();
            return Ok((1, PANEL.checked_div(row).unwrap_or(0).max(LEAST_ROWS)));
        }
        let (node, labels) = self.contraction(product)?;
        let of: SmallVec<[&[usize]; 2]> = node.operands.iter().map(|operand| self.graph.extents(*operand)).collect();
        let size = labels.label_extents(&of)?.into_iter().fold(1, usize::saturating_mul);
        // Most products are smaller than this; they are not planned just to find that they have no panels.
        if size < 2 * ProductPlan::LEAST_LOOPS {
            return Ok((0, 1));
        }
        let [(_, a), (_, b)] = self.factors(product, None)?;
        let planned = products.planned_for(labels, [&a, &b].map(|(scalar, layout)| (*scalar, layout)))?;
        Ok(planned.panel().map_or((0, 1), |rows| (1, rows)))
    }

    /// Binds a product for a panel (a range of the result's first axis) whose leading axes have the extents `rows`.
    fn product(&self, product: TensorNodeId, rows: &[usize]) -> Result<ProductPiece, Error> {
        let (node, labels) = self.contraction(product)?;
        check_size(node, self.host.most_bytes())?;
        let [(a, a_like), (b, b_like)] = self.factors(product, rows.first().copied())?;
        let products = self.host.products();
        let like = [&a_like, &b_like].map(|(scalar, layout)| (*scalar, layout));
        let planned = products.map(|products| products.planned_for(labels, like)).transpose()?;
        let operands = [self.seen(node.operands[0])?.clone(), self.seen(node.operands[1])?.clone()];
        let whole = FullProduct { product: node.clone(), labels: labels.clone(), operands }.into();
        Ok(ProductPiece { planned, operands: [a, b], whole })
    }

    /// Returns the node of a product of two tensors, and its labels.
    fn contraction(&self, product: TensorNodeId) -> Result<(&Node, &Arc<Labels>), Error> {
        let node = self.graph.node(product);
        match (&node.operation, &node.operands[..]) {
            (Operation::Contract(labels), [_, _]) => Ok((node, labels)),
            _ => Err(Error::tensors(TensorErrorKind::OperandCount, "a product must have two operands")),
        }
    }

    /// Returns the operands of a product, each with its type and layout, for a panel, which is a range of `rows`
    /// indices of the first axis, or for the whole product if `None`.
    fn factors(&self, product: TensorNodeId, rows: Option<usize>) -> Result<[TypedOperand; 2], Error> {
        let (node, labels) = self.contraction(product)?;
        let first = labels.output.first().zip(rows);
        let factor = |at: usize| -> Result<TypedOperand, Error> {
            let (seen, own) = (self.seen(node.operands[at])?, &labels.operands[at]);
            let (mut extents, mut shift) = (Extents::from(seen.layout.extents()), None);
            for (axis, label) in own.iter().enumerate() {
                if let Some((_, rows)) = first.filter(|(first, _)| *first == label) {
                    extents[axis] = rows;
                    *shift.get_or_insert(0) += seen.layout.strides()[axis];
                }
            }
            let layout = Layout::within(&extents, seen.layout.strides().into(), 0);
            let scalar = self.graph.node(node.operands[at]).scalar;
            Ok((Operand::along(seen, shift.unwrap_or(0)), (scalar, layout)))
        };
        Ok([factor(0)?, factor(1)?])
    }
}
