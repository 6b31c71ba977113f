//! Plans bound to the types and layouts of their inputs: for each step, the operands and their strides, the kernel compiled for them, and the memory
//! of the step's value. A bound plan can run repeatedly on such inputs. A run makes no decisions, and allocates little besides its outputs.

mod ahead;
mod binding;
mod blocks;
mod cut;
mod held;
mod in_place;
mod kept;
mod map;
mod memory;
mod one;
mod product;
mod reduce;
mod shared_reductions;
mod verify;

use crate::rows::threads::on_threads;
use crate::tensors::evaluator::TensorHost;
use crate::tensors::product::ProductCounters;
use binding::{Binding, no_pieces};
use cembra_runtime::Scalar;
use cembra_tensor::reference::node_value;
use cembra_tensor::{DataMut, Elements, Layout, Node, Tensor, TensorBytes, TensorNodeId};
use cembra_value::Error;
use cut::PiecePartition;
use in_place::InPlace;
pub(crate) use kept::ReusablePlan;
use map::MapPiece;
use memory::{Locals, Memory, Operand, Slot, Sources, StridedView, own};
use product::ProductPiece;
use reduce::ReducePiece;
use rustc_hash::FxHashMap;
use shared_reductions::{SharedReductions, Targets};
use smallvec::SmallVec;
use std::ops::Range;

/// A plan bound to the types and layouts of its inputs, with the memory that its runs need. Only one thread at a time can run it.
#[derive(Debug)]
pub struct BoundPlan {
    /// The types and layouts of the inputs; the offsets may differ.
    inputs: Vec<(Scalar, Layout)>,
    steps: Vec<BoundStep>,
    slots: Vec<Slot>,
    outputs: Vec<StridedView>,
    /// True if large memory is also kept between runs.
    keeps: bool,
    /// True if large memory may be kept, because all slots together stay within the limit of an evaluation.
    may_keep: bool,
    /// The last step, if it overwrites a given tensor.
    over: Option<InPlace>,
    /// The most bytes of values that exist at the same time during a run.
    peak: u64,
}

/// A bound plan, and the facts about it that its verification needs.
struct BindingResult {
    plan: BoundPlan,
    /// The location and the layout of each node's value in memory.
    values: FxHashMap<TensorNodeId, StridedView>,
    /// For each bound step, the index of the plan's step that it belongs to.
    step_of: Vec<usize>,
}

/// The conditions of a step: where truth values are in memory, and the value that each must have for the step to run.
type BoundGuard = Box<[(StridedView, bool)]>;

/// A bound step, the slot (memory of the plan) of its value, and the slots that no later step reads.
#[derive(Debug)]
struct BoundStep {
    work: BoundWork,
    target: u32,
    len: usize,
    guard: BoundGuard,
    /// The slots that this step reads for the last time and that are not reused.
    shrunk: SmallVec<[u32; 2]>,
}

#[derive(Debug)]
enum BoundWork {
    /// The step computes its value piece by piece, where a piece is a range of the value's leading axes. The fields are
    /// the workers that compute pieces, and the number of elements per index of the leading axes.
    Pieces(Vec<Worker>, usize),
    /// The step is several reductions that share one loop: a worker for each thread that takes part in it, and the slots of the results.
    SharedReductions(Vec<SharedReductions>, Targets),
    /// The step is one node that is evaluated as a whole, by the reference implementation: the node, and the views of its operands.
    Node(Box<Node>, Vec<StridedView>),
}

/// A worker computes pieces (parts of the value) of a step on one thread, with memory of its own.
#[derive(Debug)]
struct Worker {
    cut: PiecePartition<Vec<PieceStep>>,
    locals: Locals,
}

/// An operation (a map, a reduction or a product) of a step on one piece. Its result is in local memory, or is a piece
/// of the step's value.
#[derive(Debug)]
struct PieceStep {
    work: PartWork,
    /// The number of elements of the result.
    len: usize,
    left: Option<u32>,
    /// The local memory to which the elements that the operation overwrites are copied first; `None` if no copy is
    /// needed.
    over: Option<u32>,
}

#[derive(Debug)]
enum PartWork {
    Map(Box<MapPiece>),
    Reduce(Box<ReducePiece>),
    Product(Box<ProductPiece>),
}

impl PieceStep {
    #[inline]
    fn run(&mut self, memory: &mut Memory<'_>, starts: &[usize], to: &mut DataMut<'_>) -> Result<(), Error> {
        match &mut self.work {
            PartWork::Map(map) => map.run(memory, starts, to),
            PartWork::Reduce(reduce) => reduce.run(memory, starts, to),
            PartWork::Product(product) => product.run(memory, starts, to),
        }
    }
}

impl Worker {
    /// Returns true if the run's environment (host) runs one of the worker's maps on several threads.
    fn is_large(&self) -> bool {
        let is_large = |part: &PieceStep| matches!(&part.work, PartWork::Map(map) if map.is_large());
        self.cut.each_shape().flatten().any(is_large)
    }

    /// Counts the memory that the worker needs besides the value of the step.
    fn count_bytes(&self, held: &mut TensorBytes) -> Result<(), Error> {
        self.locals.count_bytes(held)?;
        // Pieces run one after the other, and the last is not larger.
        self.cut.full.iter().try_for_each(|part| match &part.work {
            PartWork::Product(product) => product.count_bytes(held),
            PartWork::Map(_) | PartWork::Reduce(_) => Ok(()),
        })
    }

    /// Computes the pieces `which`, and overwrites `to`. A piece has `within` elements per index of the axes that are
    /// cut.
    #[inline]
    fn run(
        &mut self,
        which: Range<usize>,
        sources: &Sources<'_>,
        within: usize,
        mut to: DataMut<'_>,
        counters: &mut ProductCounters,
    ) -> Result<(), Error> {
        let mut memory = Memory { sources, locals: &mut self.locals.memory, counters };
        self.cut.run_some(which, |parts, starts, before| {
            sources.host.go_on()?;
            for part in parts {
                if let Some(local) = part.left {
                    memory.write(local, part.len, |memory, mut to| part.run(memory, starts, &mut to))?;
                    continue;
                }
                let mut to = to.part(before * within, part.len).ok_or_else(map::no_room)?;
                if let Some(local) = part.over {
                    to.copy_to(&mut memory.locals[local as usize])?;
                }
                part.run(&mut memory, starts, &mut to)?;
            }
            Ok(())
        })
    }
}

impl BoundPlan {
    /// Returns true if the plan is bound to inputs with these types and layouts.
    fn fits(&self, inputs: &[Tensor]) -> bool {
        let fits = |(input, (scalar, layout)): (&Tensor, &(Scalar, Layout))| {
            input.scalar_type() == *scalar && input.layout().lies_as(layout)
        };
        self.inputs.len() == inputs.len() && inputs.iter().zip(&self.inputs).all(fits)
    }

    /// Runs the steps on `inputs`, and returns the outputs. Adds the work that products have done to `counters`. Returns `None`, and does nothing, if
    /// the plan is bound to other inputs.
    ///
    /// # Errors
    /// If an index is outside of its axis, an element fails, or the run was cancelled.
    pub fn run(
        &mut self,
        inputs: &[Tensor],
        host: &TensorHost<'_>,
        counters: &mut ProductCounters,
    ) -> Result<Option<Vec<Tensor>>, Error> {
        if self.over.is_some() || !self.fits(inputs) || self.peak > host.most_bytes() {
            return Ok(None);
        }
        self.run_steps(inputs, host, counters)?;
        let outputs = self.outputs(inputs, host)?;
        if !self.keeps {
            self.slots.iter_mut().for_each(Slot::shrink);
        }
        Ok(Some(outputs))
    }

    /// The outputs of a run, which share the plan's memory.
    fn outputs(&self, inputs: &[Tensor], host: &TensorHost<'_>) -> Result<Vec<Tensor>, Error> {
        let sources = Sources { inputs, slots: &self.slots, host };
        self.outputs.iter().map(|seen| sources.tensor(seen)).collect()
    }

    /// Runs all steps except one that overwrites a tensor.
    fn run_steps(
        &mut self,
        inputs: &[Tensor],
        host: &TensorHost<'_>,
        counters: &mut ProductCounters,
    ) -> Result<(), Error> {
        for step in &mut self.steps {
            host.go_on()?;
            if step.guard.is_empty() || step.is_wanted(&Sources { inputs, slots: &self.slots, host })? {
                step.run(inputs, &mut self.slots, host, counters)?;
            } else {
                step.skip(&mut self.slots)?;
            }
            if !self.keeps {
                step.workers().iter_mut().for_each(|worker| worker.locals.shrink());
                step.shrunk.iter().for_each(|slot| self.slots[*slot as usize].shrink());
            }
        }
        Ok(())
    }
}

impl BoundStep {
    /// The workers of the step.
    fn workers(&mut self) -> &mut [Worker] {
        if let BoundWork::Pieces(workers, _) = &mut self.work { workers } else { &mut [] }
    }

    /// Returns true if all conditions of the step hold.
    fn is_wanted(&self, sources: &Sources<'_>) -> Result<bool, Error> {
        for (seen, holds) in &self.guard {
            let (data, at) = Operand::of(seen, &[]).begin(sources, &[], &[])?;
            if data.bits(at) != u64::from(*holds) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Fills the slots of a step that does not run with unspecified elements. Later steps may read these elements, but
    /// do not use them.
    #[cold]
    fn skip(&self, slots: &mut [Slot]) -> Result<(), Error> {
        let own = [(self.target, self.len)];
        let targets = if let BoundWork::SharedReductions(_, targets) = &self.work { &targets[..] } else { &own };
        for (target, len) in targets {
            let slot = &mut slots[*target as usize];
            let room = slot.take(*len)?;
            slot.put(room);
        }
        Ok(())
    }

    #[inline]
    fn run(
        &mut self,
        inputs: &[Tensor],
        slots: &mut [Slot],
        host: &TensorHost<'_>,
        counters: &mut ProductCounters,
    ) -> Result<(), Error> {
        match &mut self.work {
            BoundWork::Pieces(workers, within) => {
                let mut made = slots[self.target as usize].take(self.len)?;
                let (to, within) = (own(&mut made)?.all_mut(), *within);
                let sources = Sources { inputs, slots, host };
                match &mut workers[..] {
                    [all] => all.run(0..usize::MAX, &sources, within, to, counters)?,
                    several => run_pieces(several, 0..usize::MAX, &sources, within, to, counters)?,
                }
                slots[self.target as usize].put(made);
                Ok(())
            }
            BoundWork::SharedReductions(workers, targets) => {
                shared_reductions::run(workers, targets, inputs, slots, host)
            }
            BoundWork::Node(node, operands) => {
                let sources = Sources { inputs, slots, host };
                let operands: Result<SmallVec<[Tensor; 2]>, Error> =
                    operands.iter().map(|seen| sources.tensor(seen)).collect();
                let operands = operands?;
                let read: SmallVec<[&Tensor; 4]> = operands.iter().collect();
                let value = node_value(node, &read, inputs, &|| host.go_on())?.row_major();
                let (data, layout) = value.into_parts();
                let is_all = layout.offset() == 0 && data.len() == self.len;
                let data = if is_all { data } else { Tensor::from_shared(data, layout)?.gathered().into() };
                slots[self.target as usize].put(data);
                Ok(())
            }
        }
    }
}

/// Runs the pieces `which` (parts of the value) of a step on several workers, in equal numbers. Returns the error of
/// the first piece that fails.
fn run_pieces(
    workers: &mut [Worker],
    which: Range<usize>,
    sources: &Sources<'_>,
    within: usize,
    to: DataMut<'_>,
    counters: &mut ProductCounters,
) -> Result<(), Error> {
    if let [all] = workers {
        return all.run(which, sources, within, to, counters);
    }
    let (first, end) = (which.start, which.end.min(workers[0].cut.count));
    let each = (end - first).div_ceil(workers.len());
    let (mut shares, mut rest) = (Vec::with_capacity(workers.len()), to);
    for (at, worker) in workers.iter_mut().enumerate() {
        let which = (first + at * each).min(end)..(first + (at + 1) * each).min(end);
        let len = worker.cut.indices(which.clone()) * within;
        let [own, others] = rest.split_at(len).ok_or_else(map::no_room)?;
        rest = others;
        shares.push((worker, which, own));
    }
    let done = on_threads(shares, |(worker, which, own)| {
        let mut took = ProductCounters::default();
        let result = worker.run(which, sources, within, own, &mut took);
        (took, result)
    });
    for (took, result) in done {
        *counters += took;
        result?;
    }
    Ok(())
}
