//! Counts the memory that a bound plan holds between runs, for a caller that keeps many plans. Code and the descriptions of steps are not counted.

use super::memory::Slot;
use super::{BoundPlan, BoundWork, PartWork, PieceStep, Worker};
use cembra_tensor::Data;

impl BoundPlan {
    /// The bytes of memory that the plan holds between runs: its values, and the memory of its workers.
    #[must_use]
    pub(crate) fn held_bytes(&self) -> u64 {
        let values = self.slots.iter().filter_map(Slot::held).map(Data::bytes);
        let steps = self.steps.iter().map(|step| match &step.work {
            BoundWork::Pieces(workers, _) => workers.iter().map(of_worker).sum(),
            BoundWork::SharedReductions(workers, _) => {
                workers.iter().flat_map(|worker| &worker.members).map(|member| member.block.bytes()).sum()
            }
            BoundWork::Node(..) => 0,
        });
        values.chain(steps).sum()
    }
}

fn of_worker(worker: &Worker) -> u64 {
    let block = |part: &PieceStep| match &part.work {
        PartWork::Reduce(reduce) => reduce.block.bytes(),
        PartWork::Map(_) | PartWork::Product(_) => 0,
    };
    // The steps for whole pieces, and those for the last piece.
    let blocks = worker.cut.each_shape().flatten().map(block);
    blocks.chain(worker.locals.memory.iter().map(Data::bytes)).sum()
}
