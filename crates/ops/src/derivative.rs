//! Derivatives of operators on elements: how much an operand changes a result, as an expression of operands, result and what is known of
//! the result's own effect. A record names its derivative; what is here are the forms that several share.

use crate::definition::{Expansion, NodeHandle, NodeResult};
use crate::typing::TypeFault;
use crate::{OpId, id};
use cembra_runtime::Scalar;
use cembra_value::{ScalarValue, Value};
use smallvec::SmallVec;

/// For each operand the cotangent that it gets, of the type of the result; none for operands that do not change the result smoothly, or not at all.
pub type Cotangents = SmallVec<[Option<NodeHandle>; 3]>;

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

    /// The cotangent where a truth value is true, else zero. It is chosen, not multiplied: an infinite cotangent is no NaN elsewhere.
    pub(crate) fn only_where(&mut self, condition: NodeHandle) -> NodeResult {
        let (cotangent, zero) = (self.cotangent, self.number(0.0));
        self.apply(id::TENSOR_WHERE, &[condition, cotangent, zero])
    }
}

/// The cotangents of all operands.
pub(crate) fn all<const N: usize>(made: [NodeHandle; N]) -> Result<Cotangents, TypeFault> {
    Ok(made.into_iter().map(Some).collect())
}

/// The result is the operand at a position, whatever the others are.
fn is_operand(d: &Derived<'_>, at: usize) -> Cotangents {
    (0..d.operands.len()).map(|operand| (operand == at).then_some(d.cotangent)).collect()
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
    let lost = d.times(quotient)?;
    all([d.cotangent, d.minus(lost)?])
};

/// No operand changes the result smoothly: its steps are flat.
pub(crate) const FLAT: Derivative = |d| Ok(d.operands.iter().map(|_| None).collect());

/// One of two by a truth value, which comes first: the one that is chosen gets the cotangent.
pub(crate) fn chosen(d: &mut Derived<'_>) -> Result<Cotangents, TypeFault> {
    let condition = d.operands[0];
    let of_x = d.only_where(condition)?;
    let opposite = d.apply(id::LOGICAL_NOT, &[condition])?;
    let of_y = d.only_where(opposite)?;
    Ok([None, Some(of_x), Some(of_y)].into_iter().collect())
}

/// The larger, or smaller, of two: the one that is chosen gets the cotangent, of equal ones each a half.
pub(crate) fn extreme(d: &mut Derived<'_>, better: OpId) -> Result<Cotangents, TypeFault> {
    let [x, y] = [d.operands[0], d.operands[1]];
    let (half, zero) = (d.number(0.5), d.number(0.0));
    let half = d.times(half)?;
    let tie = d.apply(id::BOOL_EQUAL, &[x, y])?;
    let otherwise = d.apply(id::TENSOR_WHERE, &[tie, half, zero])?;
    let mut made = Cotangents::new();
    for [own, other] in [[x, y], [y, x]] {
        let wins = d.apply(better, &[own, other])?;
        let cotangent = d.cotangent;
        made.push(Some(d.apply(id::TENSOR_WHERE, &[wins, cotangent, otherwise])?));
    }
    Ok(made)
}
