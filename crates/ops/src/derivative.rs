//! Derivatives of operators on elements: how much an operand changes a result, as an expression of operands, result and what is known of
//! the result's own effect. A record names its derivative; what is here are the forms that several share.

use crate::definition::{Expansion, NodeHandle, NodeResult};
use crate::typing::TypeFault;
use crate::{OpId, id};
use cembra_runtime::Scalar;
use cembra_value::{ScalarValue, Value};
use smallvec::SmallVec;

/// The cotangent that an operand gets.
#[derive(Clone, Copy, Debug)]
pub struct Cotangent {
    /// The value, of the type of the result.
    pub value: NodeHandle,
    /// The truth value that says where the result depends on the operand; `None` if it does everywhere. Where it does not, the operand has no
    /// cotangent, and `value` may be any number there.
    pub exists: Option<NodeHandle>,
}

impl From<NodeHandle> for Cotangent {
    fn from(value: NodeHandle) -> Cotangent {
        Cotangent { value, exists: None }
    }
}

/// The cotangent of each operand; `None` for operands that do not change the result smoothly, or not at all.
pub type Cotangents = SmallVec<[Option<Cotangent>; 3]>;

/// The derivative of an operator: what it makes of the cotangent of its result.
pub type Derivative = fn(&mut Derived<'_>) -> Result<Cotangents, TypeFault>;

/// An application of an operator whose derivative is wanted, and where it is built.
pub struct Derived<'g> {
    /// The graph.
    pub graph: &'g mut dyn Expansion,
    /// The operands, of the types that the operator takes.
    pub operands: &'g [NodeHandle],
    /// The result.
    pub result: NodeHandle,
    /// How much the result changes what is differentiated.
    pub cotangent: NodeHandle,
}

impl std::fmt::Debug for Derived<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Derived").field("operands", &self.operands).finish_non_exhaustive()
    }
}

impl Derived<'_> {
    pub(crate) fn apply(&mut self, op: OpId, operands: &[NodeHandle]) -> NodeResult {
        self.graph.apply(op, operands)
    }

    /// A number of the type of the result.
    pub(crate) fn number(&mut self, number: f64) -> NodeHandle {
        let value = match self.graph.qtype(self.result).scalar() {
            Some(Scalar::Float32) => ScalarValue::Float32(number as f32),
            _ => ScalarValue::Float64(number),
        };
        self.graph.literal(Value::Scalar(value))
    }

    /// The number that an operand is, if it is a literal.
    pub(crate) fn literal(&self, operand: NodeHandle) -> Option<f64> {
        match self.graph.value(operand)? {
            Value::Scalar(ScalarValue::Float64(number) | ScalarValue::WeakFloat(number)) => Some(number),
            Value::Scalar(ScalarValue::Float32(number)) => Some(number.into()),
            _ => None,
        }
    }

    /// The cotangent times a factor.
    pub(crate) fn times(&mut self, factor: NodeHandle) -> NodeResult {
        let cotangent = self.cotangent;
        self.apply(id::MULTIPLY, &[cotangent, factor])
    }

    /// The cotangent divided by something.
    pub(crate) fn over(&mut self, divisor: NodeHandle) -> NodeResult {
        let cotangent = self.cotangent;
        self.apply(id::DIVIDE, &[cotangent, divisor])
    }

    pub(crate) fn minus(&mut self, x: NodeHandle) -> NodeResult {
        self.apply(id::NEG, &[x])
    }

    /// `factor`, or 0 where `limit` is 0: the limit of a product of a number that goes to 0 with one that grows more slowly.
    pub(crate) fn or_zero(&mut self, limit: NodeHandle, factor: NodeHandle) -> NodeResult {
        let zero = self.number(0.0);
        let vanishes = self.apply(id::BOOL_EQUAL, &[limit, zero])?;
        self.apply(id::TENSOR_WHERE, &[vanishes, zero, factor])
    }

    /// `x` with +0 in the place of -0. Functions that begin at 0 have the slope there that they have on the right.
    pub(crate) fn without_minus_zero(&mut self, x: NodeHandle) -> NodeResult {
        let zero = self.number(0.0);
        self.apply(id::ADD, &[x, zero])
    }

    /// The cotangent, which exists where a truth value is true.
    pub(crate) fn only_where(&self, condition: NodeHandle) -> Cotangent {
        Cotangent { value: self.cotangent, exists: Some(condition) }
    }
}

/// The cotangents of all operands.
pub(crate) fn all<C: Into<Cotangent>, const N: usize>(made: [C; N]) -> Result<Cotangents, TypeFault> {
    Ok(made.into_iter().map(|made| Some(made.into())).collect())
}

/// The result is the operand at a position, whatever the others are.
fn is_operand(d: &Derived<'_>, at: usize) -> Cotangents {
    (0..d.operands.len()).map(|operand| (operand == at).then_some(Cotangent::from(d.cotangent))).collect()
}

/// The result is the first operand, whatever the others are.
pub(crate) const FIRST: Derivative = |d| Ok(is_operand(d, 0));

/// The result is the second operand, whatever the others are.
pub(crate) const SECOND: Derivative = |d| Ok(is_operand(d, 1));

/// What a division leaves: it changes as the dividend does, and loses as many divisors as the quotient has.
pub(crate) const REMAINDER: Derivative = |d| {
    let [x, y] = [d.operands[0], d.operands[1]];
    // `x / y` may be rounded to the next whole number; what was taken away is a multiple of the divisor but for rounding.
    let taken = d.apply(id::SUBTRACT, &[x, d.result])?;
    let quotient = d.apply(id::DIVIDE, &[taken, y])?;
    let quotient = d.apply(id::TENSOR_ROUND, &[quotient])?;
    // With an infinite divisor of the other sign the remainder is that divisor, and so it is where it was rounded to it.
    let (is_divisor, minus_one) = (d.apply(id::BOOL_EQUAL, &[d.result, y])?, d.number(-1.0));
    let quotient = d.apply(id::TENSOR_WHERE, &[is_divisor, minus_one, quotient])?;
    let lost = d.times(quotient)?;
    all([d.cotangent, d.minus(lost)?])
};

/// No operand changes the result smoothly: its steps are flat.
pub(crate) const FLAT: Derivative = |d| Ok(d.operands.iter().map(|_| None).collect());

/// One of two by a truth value, which comes first: the one that is chosen gets the cotangent.
pub(crate) fn chosen(d: &mut Derived<'_>) -> Result<Cotangents, TypeFault> {
    let condition = d.operands[0];
    let opposite = d.apply(id::LOGICAL_NOT, &[condition])?;
    Ok([None, Some(d.only_where(condition)), Some(d.only_where(opposite))].into_iter().collect())
}

/// The larger, or smaller, of two: the one that is chosen gets the cotangent, of equal ones each a half. `is_chosen` is the comparison of the
/// chosen one with the other, and holds for equal ones.
pub(crate) fn extreme(d: &mut Derived<'_>, is_chosen: OpId) -> Result<Cotangents, TypeFault> {
    let [x, y] = [d.operands[0], d.operands[1]];
    let half = d.number(0.5);
    let half = d.times(half)?;
    let tie = d.apply(id::BOOL_EQUAL, &[x, y])?;
    let cotangent = d.cotangent;
    let value = d.apply(id::TENSOR_WHERE, &[tie, half, cotangent])?;
    let of_x = d.apply(is_chosen, &[x, y])?;
    let of_y = d.apply(is_chosen, &[y, x])?;
    all([of_x, of_y].map(|exists| Cotangent { value, exists: Some(exists) }))
}
