//! Runs of a plan by one who makes many of them, with memory of his own, which is kept from each to the next. What is run, and where it comes
//! from when the inputs lie otherwise than before, a plan or a model says.

use cembra_tensor::{Elements, Error, KeptPlan, Tensor};
use std::fmt::Debug;

/// What has a plan for inputs: one that was planned, or a model that plans.
pub(crate) trait Binds: Sync + Debug {
    /// What evaluates expressions of elements.
    fn elements(&self) -> &dyn Elements;

    /// The plan for such inputs, bound to how they lie, with memory of its own, which is kept.
    fn kept(&self, inputs: &[Tensor]) -> Result<KeptPlan, Error>;

    /// The error of a run, with its place in a text where there is one.
    fn placed(&self, error: Error) -> Error {
        error
    }
}

/// Runs of a plan, one after the other, with memory of their own: see [`Planned::session`](crate::tensor::Planned::session) and
/// [`TensorExecutor::session`](crate::tensor::TensorExecutor::session).
#[derive(Debug)]
pub struct TensorSession<'p> {
    of: &'p dyn Binds,
    bound: Option<KeptPlan>,
}

impl<'p> TensorSession<'p> {
    pub(crate) const fn new(of: &'p dyn Binds) -> TensorSession<'p> {
        TensorSession { of, bound: None }
    }

    /// The outputs, on tensors for the leaves of the graph that was planned, or for the inputs of the model. Whoever keeps one beyond the next
    /// run has a clone of it.
    ///
    /// # Errors
    /// As for [`Planned::run`](crate::tensor::Planned::run), or [`TensorExecutor::run`](crate::tensor::TensorExecutor::run).
    #[inline]
    pub fn run(&mut self, inputs: &[Tensor]) -> Result<&[Tensor], Error> {
        let ran = self.bound.as_mut().is_some_and(|bound| bound.run_line(inputs));
        if !ran {
            self.run_steps(inputs)?;
        }
        Ok(self.bound.as_ref().map_or(&[], KeptPlan::outputs))
    }

    #[inline(never)]
    fn run_steps(&mut self, inputs: &[Tensor]) -> Result<(), Error> {
        let TensorSession { of, bound } = self;
        let ran = bound
            .as_mut()
            .map_or(Ok(false), |bound| bound.run(inputs, of.elements()))
            .map_err(|error| of.placed(error))?;
        if !ran {
            // The first run, or the inputs lie otherwise than in the one before.
            bound.insert(of.kept(inputs)?).run(inputs, of.elements()).map_err(|error| of.placed(error))?;
        }
        Ok(())
    }
}
