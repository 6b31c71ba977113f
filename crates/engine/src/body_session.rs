//! An expression of elements on one element of each input: a frame in which its plan runs on values.

use crate::bodies::plan_of_body;
use crate::compile_options::Started;
use crate::executor::Executable;
use cembra_runtime::{Context, FaultKind, Frame, Scalar};
use cembra_tensor::{Body, TensorErrorKind};
use cembra_value::Error;
use cembra_value::{ScalarValue, Value};
use std::sync::Arc;

/// An error of a model as one of tensors.
pub(crate) fn in_elements(error: &Error) -> Error {
    let kind = match error.fault_kind() {
        Some(FaultKind::Cancelled) => TensorErrorKind::Cancelled,
        Some(FaultKind::Deadline) => TensorErrorKind::Deadline,
        None if error.code() == "limit" => TensorErrorKind::Limit,
        _ => TensorErrorKind::Evaluation,
    };
    let made = Error::tensors(kind, error.message_of_element());
    match error.fault_kind() {
        Some(fault) => made.of_fault(fault, error.operator()),
        None => made,
    }
}

/// A body that is compiled for single elements.
#[derive(Clone, Debug)]
pub(crate) struct BodyExecutor {
    executable: Arc<Executable>,
    /// Which input of the body each input of the plan is, and its type.
    inputs: Arc<[(usize, Scalar)]>,
}

impl BodyExecutor {
    pub(crate) fn of(body: &Body, options: &Started) -> Result<BodyExecutor, Error> {
        let (program, plan) = plan_of_body(body, options)?;
        let leaves = plan.inputs().iter().map(|input| input.leaf as usize);
        let inputs = leaves.filter_map(|leaf| Some((leaf, *body.inputs.get(leaf)?))).collect();
        Ok(BodyExecutor { executable: Executable::new(program, plan, None, options)?.started(), inputs })
    }

    pub(crate) fn session(&self) -> BodySession {
        let (executable, inputs) = (self.executable.clone(), self.inputs.clone());
        let (frame, context) = (executable.frame(), executable.context());
        BodySession { executable, inputs, frame, context, values: Vec::new(), results: Vec::new() }
    }
}

/// A body that is evaluated on one element of each input, with a frame of its own.
#[derive(Debug)]
pub(crate) struct BodySession {
    executable: Arc<Executable>,
    inputs: Arc<[(usize, Scalar)]>,
    frame: Frame,
    context: Context,
    values: Vec<Value>,
    results: Vec<Value>,
}

#[cold]
fn misfit(message: &str) -> Error {
    Error::tensors(TensorErrorKind::Evaluation, message)
}

impl BodySession {
    /// The first output, by its bits in the layout of frames, of the bits of the inputs.
    ///
    /// # Errors
    /// `inputs` has another number than the body has inputs, or the element fails.
    pub(crate) fn evaluate(&mut self, inputs: &[u64]) -> Result<u64, Error> {
        self.values.clear();
        for (at, scalar) in &*self.inputs {
            let bits = inputs.get(*at).ok_or_else(|| misfit("too few elements for an expression"))?;
            self.values.push(ScalarValue::from_bits(*scalar, *bits).map_or(Value::Nothing, Value::Scalar));
        }
        let ran = self.executable.run_values(&self.values, &mut self.frame, &mut self.context);
        ran.map_err(|error: Error| in_elements(&error))?;
        self.results.clear();
        self.executable.read_outputs(&mut self.frame, &mut self.results);
        match self.results.first() {
            Some(Value::Scalar(made)) => Ok(made.bits()),
            _ => Err(misfit("an expression without a value")),
        }
    }

    /// The same with another frame.
    pub(crate) fn fork(&self) -> BodySession {
        BodyExecutor { executable: self.executable.clone(), inputs: self.inputs.clone() }.session()
    }
}
