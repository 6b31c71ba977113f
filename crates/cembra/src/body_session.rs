//! An expression of elements on one element of each input: a session of its model, run on values.

use crate::error::Error;
use crate::executor::{Executor, Session};
use cembra_runtime::{FaultKind, Scalar};
use cembra_tensor::{Body, ErrorKind, Single};
use cembra_value::{ScalarValue, Value};

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

/// A session of a body's model.
#[derive(Debug)]
struct BodySession {
    session: Session,
    /// Which input of the body each input of the model is, and its type.
    inputs: Vec<(usize, Scalar)>,
    values: Vec<Value>,
    results: Vec<Value>,
}

/// A body's model, to be run on single elements.
pub(crate) fn single(body: &Body, executor: &Executor) -> Result<Box<dyn Single>, cembra_tensor::Error> {
    let mut inputs = Vec::with_capacity(executor.inputs().len());
    for field in executor.inputs() {
        let at = field.name.strip_prefix('x').and_then(|number| number.parse::<usize>().ok());
        let input = at.and_then(|at| Some((at, *body.inputs.get(at)?)));
        inputs.push(input.ok_or_else(|| misfit("an input that the expression does not have"))?);
    }
    Ok(Box::new(BodySession { session: executor.session(), inputs, values: Vec::new(), results: Vec::new() }))
}

#[cold]
fn misfit(message: &str) -> cembra_tensor::Error {
    cembra_tensor::Error::new(ErrorKind::Evaluation, message)
}

impl Single for BodySession {
    fn evaluate(&mut self, inputs: &[u64]) -> Result<u64, cembra_tensor::Error> {
        self.values.clear();
        for (at, scalar) in &self.inputs {
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
