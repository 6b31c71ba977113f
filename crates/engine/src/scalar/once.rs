//! Plans of scalars that run once during the run of another model, within that run's limits. In a model with arrays, such plans compute the values
//! that are not arrays. Other plans compute single elements of tensor expressions.

use crate::options::choice::Backend;
use crate::options::compile_options::TimedOptions;
use crate::options::metrics::{Event, EventReporter};
use crate::scalar::frame_model::FrameModel;
use crate::stages::bodies::plan_of_body;
use crate::stages::faults::in_elements;
use cembra_expr::Program;
use cembra_plan::Plan;
use cembra_runtime::{Cancellation, Context, Frame, Scalar};
use cembra_tensor::{Body, TensorErrorKind};
use cembra_value::Error;
use cembra_value::Limits;
use cembra_value::{ScalarValue, Value};
use std::sync::Arc;

/// A plan of scalars that runs once during the run of another model. Callers pass one value per input, and the limits of the run.
#[derive(Debug)]
pub(crate) struct OncePlan {
    model: FrameModel,
    limits: Limits,
}

/// The memory that successive runs of a [`OncePlan`] use.
#[derive(Debug)]
pub(crate) struct OnceMemory {
    frame: Frame,
    context: Context,
    inputs: Vec<Value>,
}

impl OnceMemory {
    pub(crate) fn memory_bytes(&self) -> usize {
        size_of::<OnceMemory>() + self.frame.size() + self.context.arena_bytes()
    }
}

impl OncePlan {
    /// Makes a plan that the interpreter runs: compiling a few operators takes longer than thousands of interpreted runs.
    pub(crate) fn interpreted(program: &Program, plan: &Plan, options: &TimedOptions) -> OncePlan {
        let model = FrameModel::interpreted(program, plan, options);
        OncePlan { model, limits: *options.budget().limits() }
    }

    /// Compiles a plan for `backend`.
    fn compiled(program: &Program, plan: &Plan, backend: Backend, options: &TimedOptions) -> Result<OncePlan, Error> {
        let watch = EventReporter::new(options.metrics.as_ref(), options.name.clone());
        let (model, reason) = FrameModel::new(program, plan, None, backend, options, &watch)?;
        if let Some(reason) = &reason {
            watch.record(&Event::Fallback { reason });
        }
        Ok(OncePlan { model, limits: *options.budget().limits() })
    }

    pub(crate) fn memory(&self) -> OnceMemory {
        OnceMemory { frame: self.model.frame(), context: self.limits.context(), inputs: Vec::new() }
    }

    /// Evaluates the plan on `inputs`, which must have exactly the types of the plan's inputs, within `limits`. Appends the outputs to `results`.
    ///
    /// # Errors
    /// If the values do not fit the inputs, a step fails, or the run was cancelled.
    pub(crate) fn run(
        &self,
        memory: &mut OnceMemory,
        inputs: impl Iterator<Item = Value>,
        token: Option<&Cancellation>,
        limits: &Limits,
        results: &mut Vec<Value>,
    ) -> Result<(), Error> {
        let misfit = || Error::values("the values do not match the inputs of a plan for scalars");
        let slots = self.model.slots.as_ref().ok_or_else(misfit)?;
        let OnceMemory { frame, context, inputs: values } = memory;
        values.clear();
        values.extend(inputs);
        let frame = frame.ptr();
        context.set_cancellation(token.cloned());
        limits.hold_in(context);
        self.model.begin(context);
        // SAFETY: FRAME-SLOT: the frame was made from the plan's template; STRING-VIEW: the values outlive the call, and nothing reads the
        // frame's inputs after it.
        let written = unsafe { slots.write(values, frame) };
        if written < values.len() || written < slots.inputs.iter().map(|run| run.len()).sum() {
            return Err(misfit());
        }
        // SAFETY: CALL: the function is of the plan, bound in its frame, which was made from the plan's template.
        let status = unsafe { self.model.runnable.function().call(frame, frame, frame, context) };
        self.model.end(status, context)?;
        // SAFETY: FRAME-SLOT: the call wrote the outputs to their slots; STRING-VIEW: what a text views is still alive.
        unsafe { slots.read(frame, results) };
        Ok(())
    }

    /// Returns the bytes of memory that the plan takes besides its own struct.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.model.memory_bytes()
    }
}

/// An element expression of tensors, compiled to be evaluated on one element of each input.
#[derive(Debug)]
pub(crate) struct ElementPlan {
    plan: OncePlan,
    /// For each input of the plan, the index of this input in the body, and its type.
    inputs: Box<[(usize, Scalar)]>,
}

/// The state for evaluating an [`ElementPlan`] (a compiled element expression) on one element at a time. A clone has memory of its own.
#[derive(Debug)]
pub(crate) struct SingleElement {
    plan: Arc<ElementPlan>,
    memory: OnceMemory,
    results: Vec<Value>,
}

impl From<Arc<ElementPlan>> for SingleElement {
    fn from(plan: Arc<ElementPlan>) -> Self {
        SingleElement { memory: plan.plan.memory(), plan, results: Vec::new() }
    }
}

impl Clone for SingleElement {
    fn clone(&self) -> Self {
        self.plan.clone().into()
    }
}

impl ElementPlan {
    /// Compiles the element expression `body`. If the model has the backend `Backend::Tiered`, the expression
    /// is compiled with `Backend::Auto`.
    pub(crate) fn of(body: &Body, options: &TimedOptions) -> Result<ElementPlan, Error> {
        let (program, plan) = plan_of_body(body, options)?;
        let leaves = plan.inputs().iter().map(|input| input.leaf as usize);
        let inputs = leaves.filter_map(|leaf| Some((leaf, *body.inputs.get(leaf)?))).collect();
        // The tiers of a body are never queried, so a tiered model's bodies have a single one.
        let backend = if options.backend == Backend::Tiered { Backend::Auto } else { options.backend };
        Ok(ElementPlan { plan: OncePlan::compiled(&program, &plan, backend, options)?, inputs })
    }
}

#[cold]
fn misfit(message: &str) -> Error {
    Error::tensors(TensorErrorKind::Evaluation, message)
}

impl SingleElement {
    /// Evaluates the element expression and returns its first output. Inputs and output are bits of scalars, as in a frame (the memory of an
    /// evaluation).
    ///
    /// # Errors
    /// If the expression reads an input that `inputs` does not have, or the evaluation fails.
    pub(crate) fn evaluate(&mut self, inputs: &[u64]) -> Result<u64, Error> {
        let ElementPlan { plan, inputs: leaves } = &*self.plan;
        if leaves.iter().any(|(leaf, _)| *leaf >= inputs.len()) {
            return Err(misfit("there are too few elements for an expression"));
        }
        let values = leaves
            .iter()
            .map(|(leaf, scalar)| ScalarValue::from_bits(*scalar, inputs[*leaf]).map_or(Value::Nothing, Value::Scalar));
        self.results.clear();
        let ran = plan.run(&mut self.memory, values, None, &plan.limits, &mut self.results);
        ran.map_err(|error: Error| in_elements(&error))?;
        match self.results.first() {
            Some(Value::Scalar(made)) => Ok(made.bits()),
            _ => Err(misfit("an expression has no value")),
        }
    }
}
