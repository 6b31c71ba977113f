//! Plans that are one line of inputs, mapped or summed at once, with an output of their own: run again and again, they need no step, slot or
//! list of lines, but a look at how the inputs lie, and a call.

use super::reduce::put_total;
use super::{BoundPlan, BoundWork, PartWork};
use crate::tensors::kernels::BodyLine;
use crate::tensors::lines::OneTarget;
use cembra_runtime::Chains;
use cembra_tensor::{DataMut, Tensor};

/// A plan that is one line.
#[derive(Debug)]
pub(super) struct OneCall {
    line: Box<BodyLine>,
    inputs: usize,
    /// Zeros between runs; none where elements are written.
    chains: Option<Box<Chains>>,
}

impl OneCall {
    /// None if the plan is something else.
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

    /// Runs it on inputs, and writes the elements of the output, all of the memory of which is given. False if inputs lie otherwise, or an
    /// element fails or may: then what is in the memory is anything.
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
