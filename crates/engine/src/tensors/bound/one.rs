//! Plans that are a single map or sum over one line (an array of elements that lie at equal distances in memory) of
//! each input, with one output. Such a plan runs without steps, slots or lists of lines: a run checks the layouts of
//! the inputs and makes one call.

use super::reduce::put_total;
use super::{BoundPlan, BoundWork, PartWork};
use crate::tensors::kernels::BodyLine;
use crate::tensors::lines::OneTarget;
use cembra_runtime::Chains;
use cembra_tensor::{DataMut, Tensor};

/// A bound plan that is a single call of a kernel on one line (elements in memory at equal distances) of each input.
#[derive(Debug)]
pub(super) struct OneCall {
    line: Box<BodyLine>,
    inputs: usize,
    /// Partial sums, which are zeros between runs; `None` if the plan is a map.
    chains: Option<Box<Chains>>,
}

impl OneCall {
    /// Makes the call for a plan; `None` if the plan is not a single map or sum over one line (array of elements) of
    /// each input.
    pub(super) fn of(plan: &BoundPlan) -> Option<OneCall> {
        let [step] = &plan.steps[..] else { return None };
        let BoundWork::Pieces(workers, _) = &step.work else { return None };
        let [worker] = &workers[..] else { return None };
        let [part] = &worker.cut.only()?[..] else { return None };
        if part.left.is_some() || part.over.is_some() {
            return None;
        }
        let (line, chains) = match &part.work {
            PartWork::Map(map) => (map.one_line(&plan.inputs)?, None),
            PartWork::Reduce(reduce) => (reduce.one_line(&plan.inputs)?, Some(Box::default())),
            PartWork::Product(_) => return None,
        };
        Some(OneCall { line, inputs: plan.inputs.len(), chains })
    }

    /// Runs the call, and writes the output to `to`, which must have the size of the whole output. Returns false if inputs have other layouts than
    /// the plan's inputs, or an element fails or may fail; then the contents of `to` are unspecified.
    #[inline(never)]
    pub(super) fn run(&mut self, inputs: &[Tensor], mut to: DataMut<'_>) -> bool {
        if inputs.len() != self.inputs {
            return false;
        }
        let Some(chains) = self.chains.as_deref_mut() else {
            return self.line.run(inputs, OneTarget::Elements(to));
        };
        let is_summed = self.line.run(inputs, OneTarget::Sums(chains));
        let total = chains.take();
        is_summed && put_total(total, &mut to)
    }
}
