//! Runs of a plan by one who makes many of them, with memory of his own, which is kept from each to the next. What is run, and where it comes
//! from when the inputs lie otherwise than before, a plan or a model says.

use crate::run_options::RunOptions;
use cembra_runtime::Cancellation;
use cembra_tensor::{Elements, Error, KeptPlan, Tensor};
use std::fmt::Debug;

/// How runs of a session go.
#[derive(Debug)]
pub struct SessionOptions {
    pub(crate) options: RunOptions,
    /// What ends them.
    pub(crate) token: Option<Cancellation>,
}

/// What is run by an evaluator.
pub type Runs<'r> = dyn FnMut(&dyn Elements) -> Result<(), Error> + 'r;

/// What has a plan for inputs: one that was planned, or a model that plans.
pub trait Binds: Sync + Debug {
    /// Calls `run` with the evaluator of element expressions, limited by the options of the session if it has any.
    fn on(&self, options: Option<&SessionOptions>, run: &mut Runs<'_>) -> Result<(), Error>;

    /// The plan for such inputs, bound to how they lie, with memory of its own, which is kept.
    fn kept(&self, inputs: &[Tensor], elements: &dyn Elements) -> Result<KeptPlan, Error>;

    /// The error of a run, with its place in a text where there is one.
    fn placed(&self, error: Error) -> Error {
        error
    }
}

/// Runs of a plan, one after the other, with memory of their own: see [`Planned::session`](crate::Planned::session) and
/// `TensorExecutor::session`.
#[derive(Debug)]
pub struct TensorSession<'p> {
    of: &'p dyn Binds,
    bound: Option<KeptPlan>,
    options: Option<SessionOptions>,
}

impl<'p> TensorSession<'p> {
    /// A session of a plan, or of a model that plans.
    #[must_use]
    pub const fn new(of: &'p dyn Binds) -> TensorSession<'p> {
        TensorSession { of, bound: None, options: None }
    }

    /// What ends the runs from here on, their threads and limits: what the options say, in the place of what was said before. A time limit
    /// counts from when the options were made.
    ///
    /// ```
    /// use cembra::tensor::{ErrorKind, Evaluator, Tensor, TensorModel};
    /// use cembra::{Limits, Options, RunOptions};
    ///
    /// let model = TensorModel::parse("input x: tensor[f64, 1]; output twice = 2.0 * x")?;
    /// let evaluator = Evaluator::new(&Options::default());
    /// let executor = model.executor(&evaluator);
    /// let (mut session, x) = (executor.session(), [Tensor::new(&[100], vec![1.5; 100])?]);
    /// assert_eq!(session.run(&x)?[0].to_vec::<f64>()?, [3.0; 100]);
    /// session.set_run_options(&RunOptions::new().limits(Limits { array_bytes: 799, ..Limits::default() }));
    /// assert_eq!(session.run(&x).unwrap_err().kind(), ErrorKind::Limit);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set_run_options(&mut self, options: &RunOptions) {
        self.options = Some(SessionOptions { options: options.clone(), token: options.token() });
    }

    /// The outputs, on tensors for the leaves of the graph that was planned, or for the inputs of the model. Whoever keeps one beyond the next
    /// run has a clone of it.
    ///
    /// # Errors
    /// As for [`Planned::run`](crate::Planned::run), or `TensorExecutor::run`.
    #[inline]
    pub fn run(&mut self, inputs: &[Tensor]) -> Result<&[Tensor], Error> {
        let ran = self.options.is_none() && self.bound.as_mut().is_some_and(|bound| bound.run_line(inputs));
        if !ran {
            self.run_steps(inputs)?;
        }
        Ok(self.bound.as_ref().map_or(&[], KeptPlan::outputs))
    }

    #[inline(never)]
    fn run_steps(&mut self, inputs: &[Tensor]) -> Result<(), Error> {
        let TensorSession { of, bound, options } = self;
        of.on(options.as_ref(), &mut |elements| {
            let ran = bound.as_mut().map_or(Ok(false), |bound| bound.run(inputs, elements));
            if !ran.map_err(|error| of.placed(error))? {
                // The first run, or the inputs lie otherwise than in the one before, or it may have less than that.
                bound.insert(of.kept(inputs, elements)?).run(inputs, elements).map_err(|error| of.placed(error))?;
            }
            Ok(())
        })
    }
}
