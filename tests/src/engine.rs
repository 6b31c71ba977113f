//! What conformance needs of an evaluator: to prepare a program of one output, and to evaluate rows.

use crate::decode::ErrorKind;
use cembra_expr::Program;
use cembra_runtime::QType;
use cembra_value::Value;

/// Why preparing or evaluating failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// The kind, if it is one that the golden data know.
    pub kind: Option<ErrorKind>,
    /// What the evaluator says.
    pub message: String,
}

/// A prepared program.
pub trait Subject {
    /// The type of its output.
    fn output(&self) -> &QType;

    /// The output for the values of the program's inputs, in their order.
    ///
    /// # Errors
    /// The evaluation fails.
    fn evaluate(&mut self, inputs: &[Value]) -> Result<Value, Failure>;
}

/// A way to evaluate programs, of several files at once.
pub trait Engine: Sync {
    /// What reports call it.
    fn name(&self) -> &'static str;

    /// The type of the program's output, without compiling it.
    ///
    /// # Errors
    /// The types do not fit.
    fn output_type(&self, program: &Program) -> Result<QType, Failure>;

    /// Prepares the program; all of its inputs have types.
    ///
    /// # Errors
    /// The types do not fit, or this engine cannot run the program.
    fn prepare(&self, program: &Program) -> Result<Box<dyn Subject>, Failure>;
}
