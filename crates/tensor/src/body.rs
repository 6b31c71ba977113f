//! Elementwise expressions, called bodies: the computation of one element by scalar operators, such as `x * 2.0 + y`.
//! An evaluator runs a body for many elements. The body of a single elementwise node of a graph (a map) has one
//! operator. The body of a region, which is several maps that are evaluated together, has several.

use crate::maps::{ElementOperator, OperandType};
use crate::{Data, DataMut, Tensor};
use cembra_runtime::Scalar;
use cembra_value::Error;
use smallvec::SmallVec;

/// The index of a value in a body (an elementwise expression): the inputs are numbered first, then the steps.
pub type Operand = u32;

/// A step of a body (an elementwise expression): a constant or an operator.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum BodyStep {
    /// A constant: its type, and its bits as frames store them.
    Constant(Scalar, u64),
    /// A scalar operator, applied to earlier values of the body and to the operator's string literals. The types of the
    /// values are exactly those that the operator takes.
    Apply(ElementOperator, SmallVec<[Operand; 3]>),
}

/// A body: an elementwise expression by itself, without references to a graph. Equal bodies compute the same results.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Body {
    /// The types of the body's inputs, in order.
    pub inputs: Vec<Scalar>,
    /// The steps of the body, operands before their users.
    pub steps: Vec<BodyStep>,
    /// The values that the body returns, with their types.
    pub outputs: Vec<(Operand, Scalar)>,
}

impl Body {
    /// Returns the body (elementwise expression) that applies one operator. Literal operands become constants of the
    /// body, the other operands become its inputs.
    pub(crate) fn of_operator(op: &ElementOperator, operands: &[OperandType], result: Scalar) -> Body {
        let inputs: Vec<Scalar> =
            operands.iter().filter(|(_, bits)| bits.is_none()).map(|(scalar, _)| *scalar).collect();
        let mut steps = Vec::new();
        let mut input = 0..;
        let places = operands.iter().map(|(scalar, bits)| match bits {
            Some(bits) => {
                steps.push(BodyStep::Constant(*scalar, *bits));
                (inputs.len() + steps.len() - 1) as Operand
            }
            None => input.next().unwrap_or(0),
        });
        let places = places.collect();
        steps.push(BodyStep::Apply(op.clone(), places));
        let outputs = vec![((inputs.len() + steps.len() - 1) as Operand, result)];
        Body { inputs, steps, outputs }
    }
}

/// The number of graph nodes that are visited between two calls of [`Elements::go_on`], which checks for cancellation.
pub(crate) const LOOKED_AT: usize = 256;

/// An evaluator of bodies (elementwise expressions). The reference evaluator of graphs calls such an evaluator, and the rewriter folds constants with
/// one.
pub trait Elements: Sync {
    /// Evaluates a body (an elementwise expression) on the elements of `operands`, which have the types of its inputs
    /// and are broadcast to `extents`. Overwrites `outputs`, which have the types of the body's outputs, with the
    /// elements of each output, in row-major order.
    ///
    /// # Errors
    /// If the body cannot be compiled, `outputs` do not fit, or an operator fails on an element.
    fn map_into(
        &self,
        body: &Body,
        operands: &[Tensor],
        extents: &[usize],
        outputs: &mut [DataMut<'_>],
    ) -> Result<(), Error>;

    /// Evaluates a body as [`map_into`](Elements::map_into) does, and returns the elements of each output.
    ///
    /// # Errors
    /// The errors of [`map_into`](Elements::map_into).
    fn map(&self, body: &Body, operands: &[Tensor], extents: &[usize]) -> Result<Vec<Data>, Error> {
        let rows = extents.iter().product();
        let zeros = body.outputs.iter().map(|(_, scalar)| Data::zeros(*scalar, rows));
        let mut outputs = zeros.collect::<Result<Vec<Data>, Error>>()?;
        let mut all: Vec<DataMut<'_>> = outputs.iter_mut().map(Data::all_mut).collect();
        self.map_into(body, operands, extents, &mut all)?;
        Ok(outputs)
    }

    /// Returns the most bytes that one tensor may have in this evaluation.
    fn most_bytes(&self) -> u64;

    /// Returns an error if the evaluation or the rewriting must stop, for example because it was cancelled. It is called before each step, and
    /// repeatedly during a long step.
    ///
    /// # Errors
    /// If the evaluation or the rewriting must stop.
    fn go_on(&self) -> Result<(), Error> {
        Ok(())
    }
}
