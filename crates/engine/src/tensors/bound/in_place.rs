//! The last step of a plan whose output overwrites a tensor that the plan may also read. Compiled code never writes to memory that it reads.
//! Therefore a few pieces of the output at a time are computed in separate memory that stays in a cache, and then copied to the tensor. If threads
//! share a map, the tensor's elements are instead first copied to separate memory and read there, and each thread writes to the tensor itself.

use super::cut::PiecePartition;
use super::memory::{Slot, Slots, Sources, StridedView, ValueOrigin};
use super::{Binding, BoundPlan, BoundWork, PartWork, PieceStep, Worker, map, no_pieces, run_pieces};
use crate::tensors::evaluator::TensorHost;
use crate::tensors::product::ProductCounters;
use cembra_runtime::Scalar;
use cembra_tensor::plan::{Region, Step, Work};
use cembra_tensor::{Data, Elements, Extents, Layout, Node, Plan, Tensor, TensorGraph, TensorNodeId};
use cembra_value::Error;

/// The most elements per piece (the elements that are computed between two copies) of a map whose output overwrites a
/// tensor.
const BLOCK: usize = 1 << 12;

/// The last step of a plan, bound to memory such that the step's value overwrites an existing tensor.
#[derive(Debug)]
pub(super) struct InPlace {
    workers: Vec<Worker>,
    /// The number of elements of the output per index of the axes that are cut into pieces.
    within: usize,
    /// The index of the tensor that is overwritten.
    target: usize,
    scalar: Scalar,
    extents: Extents,
    way: CopyOrder,
}

#[derive(Debug)]
enum CopyOrder {
    /// The elements of the overwritten tensor that pieces read are copied before a piece is computed. During the run, this tensor replaces the
    /// overwritten one among the inputs.
    Before(Tensor),
    /// The results of pieces are computed in this memory, and then copied to the overwritten tensor.
    After(Data),
}

impl BoundPlan {
    /// Binds a plan to the types, extents and strides of `inputs`, such that its only output overwrites the input with index `target`, or a tensor
    /// after the inputs that the plan does not read. `None` if elements would be overwritten before they are read, if an error could leave the tensor
    /// partly overwritten, or if another tensor shares its memory.
    ///
    /// # Errors
    /// The errors of [`of`](BoundPlan::of).
    pub(crate) fn bind_over(
        plan: &Plan,
        graph: &TensorGraph,
        inputs: &mut [Tensor],
        target: usize,
        host: &TensorHost<'_>,
    ) -> Result<Option<BoundPlan>, Error> {
        let leaves = graph.leaves().len();
        let leaf = graph.leaves().get(target).map(|leaf| leaf.node);
        let Some(step) = plan.step_over(graph, leaf) else { return Ok(None) };
        let node = graph.node(step.node);
        if !inputs.get_mut(target).is_some_and(|own| is_own(own, node.scalar, &node.extents)) {
            return Ok(None);
        }
        let inputs = if target == leaves { &inputs[..leaves] } else { &*inputs };
        Ok(Some(BoundPlan::of_steps(plan, graph, inputs, Some(target), host)?))
    }
}

/// Returns true if a tensor has this type and these extents, is row-major, and shares its memory with no other tensor.
fn is_own(tensor: &mut Tensor, scalar: Scalar, extents: &[usize]) -> bool {
    let is_alike = tensor.scalar_type() == scalar && tensor.extents() == extents;
    is_alike && tensor.layout().is_row_major() && tensor.own_data().is_some()
}

impl BoundPlan {
    /// Runs the steps on inputs. The last step overwrites the target tensor, which then is the output. Returns `None`, and does nothing, if the plan
    /// is bound to other inputs, or if another tensor shares the target's memory.
    ///
    /// # Errors
    /// If an index is outside of its axis, an element fails, or the run was cancelled. Then the target is unchanged.
    pub(crate) fn run_over(
        &mut self,
        inputs: &mut [Tensor],
        target: usize,
        host: &TensorHost<'_>,
    ) -> Result<Option<ProductCounters>, Error> {
        let is_own = |over: &InPlace, own: &mut Tensor| is_own(own, over.scalar, &over.extents);
        let fits =
            |over: &InPlace| over.target == target && inputs.get_mut(target).is_some_and(|own| is_own(over, own));
        let len = self.inputs.len();
        if !self.over.as_ref().is_some_and(fits) || inputs.len() < len || !self.fits(&inputs[..len]) {
            return Ok(None);
        }
        let mut counters = ProductCounters::default();
        self.run_steps(&inputs[..len], host, &mut counters)?;
        host.go_on()?;
        if let Some(over) = &mut self.over {
            over.run(inputs, &self.slots, &host.uninterrupted(), &mut counters)?;
        }
        self.slots.iter_mut().for_each(Slot::shrink);
        self.over.iter_mut().flat_map(|over| &mut over.workers).for_each(|worker| worker.locals.shrink());
        Ok(Some(counters))
    }
}

impl Binding<'_> {
    /// Binds the last step, whose value overwrites the tensor with index `target`.
    pub(super) fn in_place(&mut self, step: &Step, target: usize) -> Result<InPlace, Error> {
        let node = self.graph.node(step.node);
        let none = Data::zeros(node.scalar, 0)?;
        let (work, way) = match &step.work {
            Work::Map(region) if self.is_shared_out(step) => {
                let leaf = self.graph.leaves().get(target).map(|leaf| leaf.node);
                let workers = self.map_over(node, region, leaf)?;
                (
                    BoundWork::Pieces(workers, 1),
                    CopyOrder::Before(Tensor::from_shared(none.into(), Layout::row_major(&[0])?)?),
                )
            }
            Work::Map(_) => {
                (self.pieces(std::slice::from_ref(step), node.extents.len(), BLOCK)?, CopyOrder::After(none))
            }
            _ => (self.work(step)?, CopyOrder::After(none)),
        };
        let BoundWork::Pieces(mut workers, within) = work else { return Err(no_pieces()) };
        self.limit_workers(&mut workers)?;
        Ok(InPlace { workers, within, target, scalar: node.scalar, extents: node.extents.clone(), way })
    }

    /// Binds a map for each thread, in pieces of its index space that read the target's elements from a copy.
    fn map_over(&self, node: &Node, region: &Region, target: Option<TensorNodeId>) -> Result<Vec<Worker>, Error> {
        let worker = || -> Result<Worker, Error> {
            let mut locals = Slots::default();
            let cut = PiecePartition::of(&node.extents, BLOCK, |rows| {
                let len = rows.iter().product();
                let over = target.filter(|leaf| region.inputs.iter().any(|(node, _)| node == leaf));
                let over = over.map(|leaf| (leaf, locals.take(node.scalar, len)));
                let layout = Layout::row_major(rows)?;
                let seen = over.map(|(leaf, slot)| (leaf, StridedView { place: ValueOrigin::Local(slot), layout }));
                let work = PartWork::Map(Box::new(self.map(region, rows, &seen.into_iter().collect())?));
                Ok(vec![PieceStep { work, len, left: None, over: over.map(|(_, slot)| slot) }])
            })?;
            Ok(Worker { cut, locals: locals.locals()? })
        };
        let mut workers = vec![worker()?];
        for _ in 1..self.host.threads().min(workers[0].cut.count) {
            workers.push(worker()?);
        }
        Ok(workers)
    }
}

impl InPlace {
    /// Runs the step. No element can fail, and the run cannot be cancelled, so the target is never partly overwritten.
    fn run(
        &mut self,
        inputs: &mut [Tensor],
        slots: &[Slot],
        host: &TensorHost<'_>,
        counters: &mut ProductCounters,
    ) -> Result<(), Error> {
        let InPlace { workers, within, target, way, .. } = self;
        let mut at = inputs[*target].layout().offset();
        let count = workers[0].cut.count;
        let block = match way {
            CopyOrder::After(block) => block,
            CopyOrder::Before(other) => {
                let len = self.extents.iter().product();
                std::mem::swap(&mut inputs[*target], other);
                let ran = other.own_data().ok_or_else(map::no_room).and_then(|mut own| {
                    let to = own.part(at, len).ok_or_else(map::no_room)?;
                    run_pieces(workers, 0..usize::MAX, &Sources { inputs, slots, host }, *within, to, counters)
                });
                std::mem::swap(&mut inputs[*target], other);
                return ran;
            }
        };
        for first in (0..count).step_by(workers.len()) {
            let which = first..count.min(first + workers.len());
            block.resize(workers[0].cut.indices(which.clone()) * *within);
            run_pieces(workers, which, &Sources { inputs, slots, host }, *within, block.all_mut(), counters)?;
            let mut own = inputs[*target].own_data().ok_or_else(map::no_room)?;
            own.part(at, block.len()).ok_or_else(map::no_room)?.copy_from(block)?;
            at += block.len();
        }
        Ok(())
    }
}
