//! Bound plans that keep everything from one run to the next, the outputs included: for who makes many runs, and looks at the outputs of
//! each before the next one.

use super::memory::ValueOrigin;
use super::one::OneCall;
use super::{BoundPlan, StridedView};
use crate::tensors::evaluator::TensorHost;
use crate::tensors::product::ProductCounters;
use cembra_tensor::{Elements, Tensor};
use cembra_value::Error;
use smallvec::SmallVec;

/// A bound plan, and the outputs of its last run, the memory of which the next run writes to if no other tensor has it.
#[derive(Debug)]
pub(crate) struct KeptPlan {
    bound: BoundPlan,
    /// The same at once, if it is no more than that.
    one: Option<OneCall>,
    outputs: Vec<Tensor>,
    /// The slots that the outputs are, if each is one of its own.
    slots: SmallVec<[u32; 4]>,
    /// True if outputs have two memories that take turns: a run then writes no layouts. All of them are small.
    takes_turns: bool,
}

/// The most bytes of an output that has two memories.
const TWICE: usize = 1 << 10;

impl BoundPlan {
    /// The same, which keeps its memory; but not what is large, if it would have more then than an evaluation may.
    #[must_use]
    pub(crate) fn kept(self) -> KeptPlan {
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
        KeptPlan { bound, one, outputs: Vec::new(), slots, takes_turns }
    }
}

impl KeptPlan {
    /// The outputs of the last run; none before the first, and after one that failed.
    #[must_use]
    pub(crate) fn outputs(&self) -> &[Tensor] {
        &self.outputs
    }

    /// The outputs of the last run, which leave their memory with the caller: the next run makes new memory.
    pub(crate) fn take_outputs(&mut self) -> Vec<Tensor> {
        std::mem::take(&mut self.outputs)
    }

    /// About how many bytes it has from run to run: of intermediate values, and of the outputs.
    #[must_use]
    pub(crate) fn held_bytes(&self) -> u64 {
        self.bound.held_bytes() + self.outputs.iter().map(|output| output.data().bytes()).sum::<u64>()
    }

    /// Runs it on inputs, if it is no more than one line of them, which nothing ends before it is done. False if it is more, is bound to other
    /// inputs, or fails: [`run`](KeptPlan::run) says which, or does it.
    #[inline]
    pub(crate) fn run_line(&mut self, inputs: &[Tensor]) -> bool {
        match (&mut self.one, &mut self.outputs[..]) {
            (Some(one), [output]) => output.own_data().is_some_and(|own| one.run(inputs, own)),
            _ => false,
        }
    }

    /// Runs the steps on inputs. False, and nothing is done, if it is bound to other inputs, or for more bytes than this run may have.
    ///
    /// # Errors
    /// As for [`BoundPlan::run`].
    pub(crate) fn run(&mut self, inputs: &[Tensor], host: &TensorHost<'_>) -> Result<bool, Error> {
        let KeptPlan { bound, outputs, slots, takes_turns, .. } = self;
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
        // The memory of the outputs is the plan's again. What they share is so when they are dropped.
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
