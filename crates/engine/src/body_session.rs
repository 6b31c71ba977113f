//! An expression of elements on one element of each input: a session that runs its plan on values.

use crate::bodies::plan_of_body;
use crate::compile_options::Started;
use crate::error::Error;
use crate::executor::{Executable, Executor, Session};
use cembra_runtime::{FaultKind, Scalar};
use cembra_tensor::{Body, ErrorKind, Single};
use cembra_value::{ScalarValue, Value};
use std::sync::Arc;

/// An error of a model as one of tensors.
pub(crate) fn in_elements(error: &Error) -> cembra_tensor::Error {
    let kind = match error.fault_kind() {
        Some(FaultKind::Cancelled) => ErrorKind::Cancelled,
        Some(FaultKind::Deadline) => ErrorKind::Deadline,
        None if error.code() == "limit" => ErrorKind::Limit,
        _ => ErrorKind::Evaluation,
    };
    cembra_tensor::Error::new(kind, error.message_of_element())
}

/// A body that is compiled for single elements.
#[derive(Clone, Debug)]
pub(crate) struct BodyExecutor {
    executor: Executor,
    /// Which input of the body each input of the executor is, and its type.
    inputs: Arc<[(usize, Scalar)]>,
}

impl BodyExecutor {
    pub(crate) fn of(body: &Body, options: &Started) -> Result<BodyExecutor, Error> {
        let (program, plan) = plan_of_body(body, options)?;
        let leaves = plan.inputs().iter().map(|input| input.leaf as usize);
        let inputs = leaves.filter_map(|leaf| Some((leaf, *body.inputs.get(leaf)?))).collect();
        Ok(BodyExecutor { executor: Executable::new(program, plan, None, options)?.into(), inputs })
    }

    pub(crate) fn single(&self) -> Box<dyn Single> {
        let (session, inputs) = (self.executor.session(), self.inputs.clone());
        Box::new(BodySession { session, inputs, values: Vec::new(), results: Vec::new() })
    }
}

/// A session of a body.
#[derive(Debug)]
struct BodySession {
    session: Session,
    inputs: Arc<[(usize, Scalar)]>,
    values: Vec<Value>,
    results: Vec<Value>,
}

#[cold]
fn misfit(message: &str) -> cembra_tensor::Error {
    cembra_tensor::Error::new(ErrorKind::Evaluation, message)
}

impl Single for BodySession {
    fn evaluate(&mut self, inputs: &[u64]) -> Result<u64, cembra_tensor::Error> {
        self.values.clear();
        for (at, scalar) in &*self.inputs {
            let bits = inputs.get(*at).ok_or_else(|| misfit("too few elements for an expression"))?;
            self.values.push(ScalarValue::from_bits(*scalar, *bits).map_or(Value::Nothing, Value::Scalar));
        }
        let made = self.session.evaluate_into(&self.values, &mut self.results);
        made.map_err(|error: Error| in_elements(&error))?;
        match self.results.first() {
            Some(Value::Scalar(made)) => Ok(made.bits()),
            _ => Err(misfit("an expression without a value")),
        }
    }

    fn fork(&self) -> Box<dyn Single> {
        let (session, inputs) = (self.session.clone(), self.inputs.clone());
        Box::new(BodySession { session, inputs, values: Vec::new(), results: Vec::new() })
    }
}
