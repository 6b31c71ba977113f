//! The state that the runs of one session share: a plan that is bound to the extents and strides of the last inputs, with the memory of the last
//! outputs. The compiled model decides which plan that is.

use crate::tensors::bound::{BoundPlan, ReusablePlan};
use crate::tensors::evaluator::TensorHost;
use crate::tensors::plan::TensorPlan;
use cembra_tensor::{Tensor, TensorErrorKind};
use cembra_value::Error;
use cembra_value::RunTerms;
use std::sync::Arc;

/// The memory that holds the output of a run: new memory, the memory of an overwritten tensor, or the memory of an input.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OutputMemory {
    /// The output overwrote the memory of the tensor that it replaces.
    InPlace,
    /// The output has new memory of its own.
    Made,
    /// The output is a view of an input and shares its memory.
    Shared,
}

/// The plans that are bound to the inputs of one session's runs, with the outputs of the last run.
#[derive(Debug, Default)]
pub(crate) struct TensorRuns {
    bound: Option<ReusablePlan>,
    /// The plan bound to overwrite a tensor.
    over: Option<BoundPlan>,
    /// The number of threads and the limit of bytes that the plans are bound for.
    bound_for: (usize, Option<u64>),
}

impl TensorRuns {
    /// Drops the bound plans if the run has another number of threads or another limit on bytes than they are bound for.
    pub(crate) fn bind_for(&mut self, terms: &RunTerms<'_>) {
        let now = (terms.threads, terms.limits.map(|limits| limits.array_bytes));
        if self.bound_for != now {
            *self = TensorRuns { bound_for: now, ..TensorRuns::default() };
        }
    }

    /// The outputs of the last run; empty before the first run and after a failed one.
    pub(crate) fn outputs(&self) -> &[Tensor] {
        self.bound.as_ref().map_or(&[], ReusablePlan::outputs)
    }

    /// Drops the outputs if one of them shares memory that an input borrows from the caller. The caller's memory is then free once the caller has
    /// dropped the results.
    pub(crate) fn give_back(&mut self, inputs: &[Tensor]) {
        let mut lent = inputs.iter().filter(|input| input.data().is_lent());
        if lent.any(|input| self.outputs().iter().any(|output| output.shares_memory(input)))
            && let Some(bound) = &mut self.bound
        {
            bound.take_outputs();
        }
    }

    /// The approximate bytes of memory that the bound plans hold between runs.
    pub(crate) fn held_bytes(&self) -> u64 {
        let over = self.over.as_ref().map_or(0, BoundPlan::held_bytes);
        over + self.bound.as_ref().map_or(0, ReusablePlan::held_bytes)
    }

    /// Runs the bound plan if it is a single map or sum over one line (elements in memory at equal distances) of each input. Returns false if the
    /// plan is not of this kind, is bound to other inputs, or fails.
    #[inline]
    pub(crate) fn run_line(&mut self, inputs: &[Tensor]) -> bool {
        self.bound.as_mut().is_some_and(|bound| bound.run_line(inputs))
    }

    /// Runs the bound plan. Before the first run, and if inputs have other extents or strides than in the previous run, first gets a plan from `plan`
    /// and binds it.
    pub(crate) fn run(
        &mut self,
        inputs: &[Tensor],
        host: &TensorHost<'_>,
        plan: impl FnOnce() -> Result<Arc<TensorPlan>, Error>,
    ) -> Result<(), Error> {
        if let Some(bound) = &mut self.bound
            && bound.run(inputs, host)?
        {
            return Ok(());
        }
        self.bound.insert(plan()?.bind(inputs, host)?).run(inputs, host).map(drop)
    }

    /// Runs a plan with one output. The output replaces one of the inputs, or the tensor after the inputs.
    pub(crate) fn run_over(
        &mut self,
        inputs: &mut Vec<Tensor>,
        target: usize,
        host: &TensorHost<'_>,
        plan: &Arc<TensorPlan>,
    ) -> Result<OutputMemory, Error> {
        let leaves = plan.leaves();
        if plan.outputs() != 1 || target > leaves || inputs.len() < leaves {
            let message = "to run over a tensor, a model must have one output, and the tensor must be an input or directly after the inputs";
            return Err(Error::tensors(TensorErrorKind::OperandCount, message));
        }
        if self.written_in_place(inputs, target, host, plan)? {
            return Ok(OutputMemory::InPlace);
        }
        self.run(&inputs[..leaves], host, || Ok(plan.clone()))?;
        let Some(made) = self.bound.as_mut().and_then(|bound| bound.take_outputs().pop()) else {
            return Err(Error::tensors(TensorErrorKind::Evaluation, "an output was not computed"));
        };
        let is_shared = inputs[..leaves].iter().any(|input| input.shares_memory(&made));
        match inputs.get_mut(target) {
            Some(place) => *place = made,
            None => inputs.push(made),
        }
        Ok(if is_shared { OutputMemory::Shared } else { OutputMemory::Made })
    }

    /// Overwrites a tensor with the output; returns false, and changes nothing, if that cannot be done.
    fn written_in_place(
        &mut self,
        inputs: &mut [Tensor],
        target: usize,
        host: &TensorHost<'_>,
        plan: &TensorPlan,
    ) -> Result<bool, Error> {
        if let Some(bound) = &mut self.over
            && bound.run_over(inputs, target, host)?.is_some()
        {
            return Ok(true);
        }
        self.over = plan.bind_over(inputs, target, host)?;
        let Some(bound) = &mut self.over else { return Ok(false) };
        Ok(bound.run_over(inputs, target, host)?.is_some())
    }
}
