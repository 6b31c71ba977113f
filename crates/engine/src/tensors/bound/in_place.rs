//! The last step of a plan whose value is written over a tensor that the plan may read. Compiled code never writes where it reads: a few pieces
//! at a time are computed into memory that stays in a cache, and copied from there. Where threads share a map, elements of the tensor are
//! copied into such memory before, and read there, so that each thread writes to the tensor itself.

use super::cut::Cut;
use super::memory::{Slot, Slots, Sources, StridedView, ValueOrigin};
use super::{Binding, BoundPlan, BoundWork, PartWork, PieceStep, Worker, map, no_pieces, run_pieces};
use crate::tensors::evaluator::TensorHost;
use crate::tensors::product::ProductCounters;
use cembra_runtime::Scalar;
use cembra_tensor::plan::{Region, Step, Work};
use cembra_tensor::{Data, Elements, Extents, Layout, Node, Plan, Tensor, TensorGraph, TensorNodeId};
use cembra_value::Error;

/// The elements of a map that are computed between copies.
const BLOCK: usize = 1 << 12;

/// What is written over a tensor.
#[derive(Debug)]
pub(super) struct InPlace {
    workers: Vec<Worker>,
    /// The number of elements for each index of pieces.
    within: usize,
    /// Which of the inputs is the target.
    target: usize,
    scalar: Scalar,
    extents: Extents,
    way: CopyOrder,
}

#[derive(Debug)]
enum CopyOrder {
    /// What the pieces read of the target is copied before. While they are computed, this is in its place.
    Before(Tensor),
    /// What the pieces make is copied from here.
    After(Data),
}

impl BoundPlan {
    /// A plan, bound to inputs that lie as these do, so that its only output is written over the memory of one of them; or over that of a
    /// tensor that the plan does not read and that stands behind them. None if that changed what is read before it is read, if what was
    /// written could stay after an error, or if another tensor shares the memory.
    ///
    /// # Errors
    /// As for [`of`](BoundPlan::of).
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

/// True for a tensor of this type and these extents whose memory no other tensor has, and whose elements lie in the order of their indices.
fn is_own(tensor: &mut Tensor, scalar: Scalar, extents: &[usize]) -> bool {
    let is_alike = tensor.scalar_type() == scalar && tensor.extents() == extents;
    is_alike && tensor.layout().is_row_major() && tensor.own_data().is_some()
}

impl BoundPlan {
    /// Runs the steps on inputs, and the last one over the tensor that the plan is bound to, which is the value then. Nothing is done if it is
    /// bound to other inputs, or another tensor shares the memory.
    ///
    /// # Errors
    /// An index is outside of its axis, an element fails, or the run was cancelled; then the tensor is what it was.
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
    /// The last step, whose value is written over a tensor.
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
        self.hold(&mut workers)?;
        Ok(InPlace { workers, within, target, scalar: node.scalar, extents: node.extents.clone(), way })
    }

    /// Maps for a few elements at a time, which read what is in their place as it was copied before, for each thread.
    fn map_over(&self, node: &Node, region: &Region, target: Option<TensorNodeId>) -> Result<Vec<Worker>, Error> {
        let worker = || -> Result<Worker, Error> {
            let mut locals = Slots::default();
            let cut = Cut::of(&node.extents, BLOCK, |rows| {
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
    /// No element fails in here, and nothing ends it: what was begun is finished.
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
