//! How much memory a bound plan has from one run to the next, for a caller that keeps many of them. Code, and what says how steps are done, is
//! not counted.

use super::memory::Slot;
use super::shared_reductions::SharedReductions;
use super::{BoundPlan, BoundWork, PartWork, PieceStep, Worker};
use cembra_tensor::Data;
use std::cell::Cell;

impl BoundPlan {
    /// The bytes of the values that it keeps, and of the memory of those who compute pieces of them.
    #[must_use]
    pub(crate) fn held_bytes(&self) -> u64 {
        let values = self.slots.iter().filter_map(Slot::held).map(Data::bytes);
        let steps = self.steps.iter().map(|step| match &step.work {
            BoundWork::Pieces(workers, _) => workers.iter().map(of_worker).sum(),
            BoundWork::SharedReductions(workers, _) => workers.iter().map(of_members).sum(),
            BoundWork::Node(..) => 0,
        });
        values.chain(steps).sum()
    }
}

fn of_members(together: &SharedReductions) -> u64 {
    together.members.iter().map(|member| member.block.bytes()).sum()
}

fn of_worker(worker: &Worker) -> u64 {
    let blocks = Cell::new(0);
    let block = |part: &PieceStep| match &part.work {
        PartWork::Reduce(reduce) => reduce.block.bytes(),
        PartWork::Map(_) | PartWork::Product(_) => 0,
    };
    // What belongs to whole pieces, and to the last.
    worker.cut.any(|parts| {
        blocks.set(blocks.get() + parts.iter().map(block).sum::<u64>());
        false
    });
    blocks.get() + worker.locals.memory.iter().map(Data::bytes).sum::<u64>()
}
