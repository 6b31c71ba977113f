//! Expressions of elements: what the maps of a graph do to one element, for whatever evaluates it on many. One map is a body of one
//! step, a region of maps that are evaluated together is a body of several.

use crate::maps::{ElementOperator, OperandType};
use crate::{Data, DataMut, Tensor};
use cembra_runtime::Scalar;
use cembra_value::Error;
use smallvec::SmallVec;

/// Where a step of a body has an operand from: the inputs come first, then the steps.
pub type Operand = u32;

/// A step of a body.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum BodyStep {
    /// A constant: its type, and its bits in the layout of frames.
    Constant(Scalar, u64),
    /// A scalar operator on what came before, which is of exactly the types that it takes, and on the texts that it has.
    Apply(ElementOperator, SmallVec<[Operand; 3]>),
}

/// An expression of elements, complete in itself: equal bodies mean the same.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Body {
    /// The types of the inputs.
    pub inputs: Vec<Scalar>,
    /// The steps in their order.
    pub steps: Vec<BodyStep>,
    /// What comes out, and its type.
    pub outputs: Vec<(Operand, Scalar)>,
}

impl Body {
    /// One operator on operands of these types. Literals are part of the body, the others are its inputs.
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

/// How many nodes of a graph are visited between two looks at whether to go on.
pub(crate) const LOOKED_AT: usize = 256;

/// What evaluates expressions of elements, for the reference and for constants that are folded while a graph is rewritten.
pub trait Elements: Sync {
    /// Evaluates a body on the elements of tensors of the types of its inputs, each broadcast to the extents of the result, and writes the
    /// elements of each output, the last axis the fastest, over what is in memory of their type.
    ///
    /// # Errors
    /// The body cannot be compiled, the memory does not fit, or an element fails.
    fn map_into(
        &self,
        body: &Body,
        operands: &[Tensor],
        extents: &[usize],
        outputs: &mut [DataMut<'_>],
    ) -> Result<(), Error>;

    /// Evaluates a body likewise: the elements of each output.
    ///
    /// # Errors
    /// As for [`map_into`](Elements::map_into).
    fn map(&self, body: &Body, operands: &[Tensor], extents: &[usize]) -> Result<Vec<Data>, Error> {
        let rows = extents.iter().product();
        let zeros = body.outputs.iter().map(|(_, scalar)| Data::zeros(*scalar, rows));
        let mut outputs = zeros.collect::<Result<Vec<Data>, Error>>()?;
        let mut all: Vec<DataMut<'_>> = outputs.iter_mut().map(Data::all_mut).collect();
        self.map_into(body, operands, extents, &mut all)?;
        Ok(outputs)
    }

    /// The most bytes that a tensor may have.
    fn most_bytes(&self) -> u64;

    /// An error if the evaluation, or the rewriting, is to end. It is asked before each step, and while a long one goes on.
    ///
    /// # Errors
    /// It is to end.
    fn go_on(&self) -> Result<(), Error> {
        Ok(())
    }
}
