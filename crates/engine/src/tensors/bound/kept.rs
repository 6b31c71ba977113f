//! Bound plans that keep all memory between runs, including the memory of the outputs, for callers that run a plan many times and read the outputs
//! before the next run.

use super::memory::ValueOrigin;
use super::one::OneCall;
use super::{BoundPlan, StridedView};
use crate::tensors::evaluator::TensorHost;
use crate::tensors::product::ProductCounters;
use cembra_tensor::{Elements, Tensor};
use cembra_value::Error;
use smallvec::SmallVec;

/// A bound plan with the outputs of its last run. The next run writes to the memory of an output, unless another tensor shares that memory.
#[derive(Debug)]
pub(crate) struct ReusablePlan {
    bound: BoundPlan,
    /// The plan as a single call, if it maps or sums one line (elements at equal distances) of each input; else `None`.
    one: Option<OneCall>,
    outputs: Vec<Tensor>,
    /// The slots (memory of the plan) of the outputs, if each output has a slot of its own; else empty.
    slots: SmallVec<[u32; 4]>,
    /// True if each output has two blocks of memory that alternate between runs, so that a run writes no layouts. Only
    /// small outputs have two blocks.
    takes_turns: bool,
}

/// The most bytes of an output with two blocks of memory.
const TWICE: usize = 1 << 10;

impl BoundPlan {
    /// Converts the plan to one that keeps its memory between runs. Large memory is not kept if the total would exceed the memory limit of an
    /// evaluation.
    #[must_use]
    pub(crate) fn kept(self) -> ReusablePlan {
        let place = |seen: &StridedView| match seen.place {
            ValueOrigin::Slot(slot) => Some(slot),
            _ => None,
        };
        let mut slots: SmallVec<[u32; 4]> = self.outputs.iter().filter_map(place).collect();
        let mut known = slots.clone();
        known.sort_unstable();
        known.dedup();
        if known.len() != self.outputs.len() {
            slots.clear();
        }
        let one = if slots.len() == 1 { OneCall::of(&self) } else { None };
        let takes_turns = slots.iter().all(|slot| self.slots[*slot as usize].bytes() <= TWICE);
        let bound = BoundPlan { keeps: self.may_keep, ..self };
        ReusablePlan { bound, one, outputs: Vec::new(), slots, takes_turns }
    }
}

impl ReusablePlan {
    /// The outputs of the last run; empty before the first run and after a failed one.
    #[must_use]
    pub(crate) fn outputs(&self) -> &[Tensor] {
        &self.outputs
    }

    /// Removes the outputs of the last run, with their memory, and returns them. The next run then allocates new
    /// memory.
    pub(crate) fn take_outputs(&mut self) -> Vec<Tensor> {
        std::mem::take(&mut self.outputs)
    }

    /// The approximate bytes of memory that are held between runs: intermediate values and outputs.
    #[must_use]
    pub(crate) fn held_bytes(&self) -> u64 {
        self.bound.held_bytes() + self.outputs.iter().map(|output| output.data().bytes()).sum::<u64>()
    }

    /// Runs the plan, without checks for cancellation, if it is a single map or sum over one line (elements in memory at equal distances) of each
    /// input. Returns false if the plan is not of this kind, is bound to other inputs, or fails; then [`run`](ReusablePlan::run) must be called.
    #[inline]
    pub(crate) fn run_line(&mut self, inputs: &[Tensor]) -> bool {
        match (&mut self.one, &mut self.outputs[..]) {
            (Some(one), [output]) => output.own_data().is_some_and(|own| one.run(inputs, own)),
            _ => false,
        }
    }

    /// Runs the steps on `inputs`. Returns false, and does nothing, if the plan is bound to other inputs, or needs more bytes than this run may have.
    ///
    /// # Errors
    /// The errors of [`BoundPlan::run`].
    pub(crate) fn run(&mut self, inputs: &[Tensor], host: &TensorHost<'_>) -> Result<bool, Error> {
        let ReusablePlan { bound, outputs, slots, takes_turns, .. } = self;
        if bound.over.is_some() || !bound.fits(inputs) || bound.peak > host.most_bytes() {
            return Ok(false);
        }
        if *takes_turns && !slots.is_empty() && outputs.len() == slots.len() {
            let ran = bound.run_steps(inputs, host, &mut ProductCounters::default()).and_then(|()| {
                let mut each = outputs.iter_mut().zip(&*slots);
                each.try_for_each(|(output, slot)| bound.slots[*slot as usize].exchange(output))
            });
            if let Err(error) = ran {
                outputs.clear();
                return Err(error);
            }
            return Ok(true);
        }
        // The plan takes the memory of the outputs back. Shared memory is dropped instead.
        for (tensor, slot) in outputs.drain(..).zip(&*slots) {
            bound.slots[*slot as usize].put(tensor.into_parts().0);
        }
        bound.run_steps(inputs, host, &mut ProductCounters::default())?;
        if slots.is_empty() {
            *outputs = bound.outputs(inputs, host)?;
        }
        for (slot, seen) in slots.iter().zip(&bound.outputs) {
            outputs.push(bound.slots[*slot as usize].leave(&seen.layout)?);
        }
        Ok(true)
    }
}
