//! The library's own ways over arrays, as subjects: what a user calls, on values that are made before.

use super::workload::{ArrayWorkload, Inputs};
use crate::Error;
use crate::subject::{INTERPRETER, Way};
use cembra::{Executor, Model, ScalarValue, Session, Value};

/// Native code, as much of a model in one pass as the library can.
pub const CEMBRA: &str = "cembra";

/// The ways, each with the most rows that it is given: the reference goes operator by operator.
pub(super) const WAYS: [(&str, Way, usize); 2] =
    [(CEMBRA, Way::NATIVE, usize::MAX), (INTERPRETER, Way::INTERPRETER, 10_000)];

/// A subject on inputs.
pub trait Bound {
    /// Evaluates the model: what is measured.
    ///
    /// # Errors
    /// The evaluation fails.
    fn run(&mut self) -> Result<(), Error>;

    /// How many elements each output of the last run has; a scalar is one.
    fn sizes(&self) -> Vec<usize>;

    /// An element of an output of the last run, widened; none if it is missing.
    fn element(&self, output: usize, at: usize) -> Option<f64>;
}

/// The executor of a workload's model.
///
/// # Errors
/// The workload does not compile this way.
pub fn executor(workload: &ArrayWorkload, way: Way) -> Result<Executor, Error> {
    let made = Model::parse(workload.source).and_then(|model| model.compile(&way.options()));
    made.map_err(|source| model_error(workload, source))
}

fn model_error(workload: &ArrayWorkload, source: cembra::Error) -> Error {
    Error::Model { workload: workload.name, source: Box::new(source) }
}

/// A session on values, evaluated once for each list of them.
pub(crate) struct Evaluation<'w> {
    workload: &'w ArrayWorkload,
    session: Session,
    inputs: Vec<Vec<Value>>,
    outputs: Vec<Value>,
}

impl<'w> Evaluation<'w> {
    /// The model on each of these inputs.
    pub(crate) fn of(workload: &'w ArrayWorkload, way: Way, inputs: &[Inputs]) -> Result<Self, Error> {
        let executor = executor(workload, way)?;
        let one = |inputs: &Inputs| {
            let of = |name: &str| inputs.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
            executor.inputs().iter().map(|input| of(&input.name)).collect()
        };
        let wanted: Option<Vec<Vec<Value>>> = inputs.iter().map(one).collect();
        let inputs = wanted.ok_or(Error::Inputs { workload: workload.name })?;
        Ok(Evaluation { workload, session: executor.session(), inputs, outputs: Vec::new() })
    }
}

impl Bound for Evaluation<'_> {
    fn run(&mut self) -> Result<(), Error> {
        for inputs in &self.inputs {
            let made = self.session.evaluate_into(inputs, &mut self.outputs);
            made.map_err(|source| model_error(self.workload, source))?;
        }
        Ok(())
    }

    fn sizes(&self) -> Vec<usize> {
        let size = |value: &Value| if let Value::Array(_, array) = value { array.len() } else { 1 };
        self.outputs.iter().map(size).collect()
    }

    fn element(&self, output: usize, at: usize) -> Option<f64> {
        match &self.outputs[output] {
            Value::Array(_, array) => array.get(at).and_then(|element| number(&element)),
            value => value.as_scalar().and_then(number),
        }
    }
}

/// A number, widened.
fn number(value: &ScalarValue) -> Option<f64> {
    match value {
        ScalarValue::Float32(value) => Some((*value).into()),
        ScalarValue::Float64(value) => Some(*value),
        ScalarValue::Int64(value) => Some(*value as f64),
        _ => None,
    }
}
