//! Derivatives of operators on elements, for differentiation in reverse mode. A derivative computes the cotangent of
//! each operand (the derivative of the differentiated value by this operand) as an expression of the operands, the
//! result and the result's cotangent. The record of an operator refers to its derivative. This file has the derivatives
//! that several operators share.

use crate::definition::{Expansion, NodeHandle, NodeResult};
use crate::typing::TypeFault;
use crate::{OpId, id};
use cembra_runtime::Scalar;
use cembra_value::{ScalarValue, Value};
use smallvec::SmallVec;

/// The cotangent of an operand, and the condition under which the operand has one.
#[derive(Clone, Copy, Debug)]
pub struct Cotangent {
    /// The value of the cotangent, in the type of the operator's result.
    pub value: NodeHandle,
    /// A boolean that is true where the result depends on the operand; `None` if the result depends on it everywhere. Where the boolean is false, the
    /// operand has no cotangent, and `value` may be any number.
    pub exists: Option<NodeHandle>,
}

impl From<NodeHandle> for Cotangent {
    fn from(value: NodeHandle) -> Cotangent {
        Cotangent { value, exists: None }
    }
}

/// The cotangent of each operand; `None` for an operand that does not change the result, or changes it only in jumps.
pub type Cotangents = SmallVec<[Option<Cotangent>; 3]>;

/// The derivative of an operator: a function that computes the cotangents of the operands from that of the result.
pub type Derivative = fn(&mut DerivativeCall<'_>) -> Result<Cotangents, TypeFault>;

/// An application of an operator that is differentiated, and the graph that the cotangents are added to.
pub struct DerivativeCall<'g> {
    /// The graph to which the nodes of the cotangents are added.
    pub graph: &'g mut dyn Expansion,
    /// The operands of the application, in the types that the operator accepts.
    pub operands: &'g [NodeHandle],
    /// The result of the application that is differentiated.
    pub result: NodeHandle,
    /// The cotangent of the result: the derivative of the differentiated value by the result.
    pub cotangent: NodeHandle,
}

impl std::fmt::Debug for DerivativeCall<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Derived").field("operands", &self.operands).finish_non_exhaustive()
    }
}

impl DerivativeCall<'_> {
    pub(crate) fn apply(&mut self, op: OpId, operands: &[NodeHandle]) -> NodeResult {
        self.graph.apply(op, operands)
    }

    /// Adds a literal node to the graph: `number`, in the type of the result.
    pub(crate) fn number(&mut self, number: f64) -> NodeHandle {
        let value = match self.graph.qtype(self.result).scalar() {
            Some(Scalar::Float32) => ScalarValue::Float32(number as f32),
            _ => ScalarValue::Float64(number),
        };
        self.graph.literal(Value::Scalar(value))
    }

    /// The value of `operand` if it is a literal float; `None` for any other operand.
    pub(crate) fn literal(&self, operand: NodeHandle) -> Option<f64> {
        match self.graph.value(operand)? {
            Value::Scalar(ScalarValue::Float64(number) | ScalarValue::WeakFloat(number)) => Some(number),
            Value::Scalar(ScalarValue::Float32(number)) => Some(number.into()),
            _ => None,
        }
    }

    /// Adds a node to the graph for the product of the result's cotangent and `factor`, and returns the node.
    pub(crate) fn times(&mut self, factor: NodeHandle) -> NodeResult {
        let cotangent = self.cotangent;
        self.apply(id::MULTIPLY, &[cotangent, factor])
    }

    /// Adds a node to the graph for the quotient of the result's cotangent and `divisor`, and returns the node.
    pub(crate) fn over(&mut self, divisor: NodeHandle) -> NodeResult {
        let cotangent = self.cotangent;
        self.apply(id::DIVIDE, &[cotangent, divisor])
    }

    pub(crate) fn minus(&mut self, x: NodeHandle) -> NodeResult {
        self.apply(id::NEG, &[x])
    }

    /// Adds a node to the graph that is 0 where `limit` is 0, and `factor` elsewhere. The node replaces `factor` in a
    /// product with `limit`: where `limit` is 0, the product must be 0 even if `factor` is infinite.
    pub(crate) fn or_zero(&mut self, limit: NodeHandle, factor: NodeHandle) -> NodeResult {
        let zero = self.number(0.0);
        let vanishes = self.apply(id::BOOL_EQUAL, &[limit, zero])?;
        self.apply(id::TENSOR_WHERE, &[vanishes, zero, factor])
    }

    /// Adds a node to the graph for `x` with +0 in place of -0. A function whose domain begins at 0 then has the same
    /// slope at -0 as at +0.
    pub(crate) fn without_minus_zero(&mut self, x: NodeHandle) -> NodeResult {
        let zero = self.number(0.0);
        self.apply(id::ADD, &[x, zero])
    }

    /// Returns the result's cotangent as the cotangent of an operand that the result depends on only where `condition` is true.
    pub(crate) fn only_where(&self, condition: NodeHandle) -> Cotangent {
        Cotangent { value: self.cotangent, exists: Some(condition) }
    }
}

/// Returns the cotangents of all operands as the list that derivatives return.
pub(crate) fn all<C: Into<Cotangent>, const N: usize>(made: [C; N]) -> Result<Cotangents, TypeFault> {
    Ok(made.into_iter().map(|made| Some(made.into())).collect())
}

/// The cotangents for a result that is the operand at position `at`: this operand gets the result's cotangent, other
/// operands get none.
fn is_operand(d: &DerivativeCall<'_>, at: usize) -> Cotangents {
    (0..d.operands.len()).map(|operand| (operand == at).then_some(Cotangent::from(d.cotangent))).collect()
}

/// The derivative of an operator whose result is the first operand, whatever the other operands are.
pub(crate) const FIRST: Derivative = |d| Ok(is_operand(d, 0));

/// The derivative of an operator whose result is the second operand, whatever the other operands are.
pub(crate) const SECOND: Derivative = |d| Ok(is_operand(d, 1));

/// The derivative of a remainder: 1 for the dividend, and minus the rounded quotient for the divisor.
pub(crate) const REMAINDER: Derivative = |d| {
    let [x, y] = [d.operands[0], d.operands[1]];
    // `x / y` may be rounded to the next whole number; `x` less the remainder is a multiple of the divisor, but for rounding.
    let taken = d.apply(id::SUBTRACT, &[x, d.result])?;
    let quotient = d.apply(id::DIVIDE, &[taken, y])?;
    let quotient = d.apply(id::TENSOR_ROUND, &[quotient])?;
    // With an infinite divisor of the other sign the remainder is the divisor; it may also be rounded to the divisor.
    let (is_divisor, minus_one) = (d.apply(id::BOOL_EQUAL, &[d.result, y])?, d.number(-1.0));
    let quotient = d.apply(id::TENSOR_WHERE, &[is_divisor, minus_one, quotient])?;
    let lost = d.times(quotient)?;
    all([d.cotangent, d.minus(lost)?])
};

/// The derivative of an operator that is piecewise constant, so that no operand changes the result smoothly.
pub(crate) const FLAT: Derivative = |d| Ok(d.operands.iter().map(|_| None).collect());

/// The derivative of a selection. The first operand is a boolean that selects one of the next two operands, and the selected operand gets the
/// result's cotangent.
pub(crate) fn chosen(d: &mut DerivativeCall<'_>) -> Result<Cotangents, TypeFault> {
    let condition = d.operands[0];
    let opposite = d.apply(id::LOGICAL_NOT, &[condition])?;
    Ok([None, Some(d.only_where(condition)), Some(d.only_where(opposite))].into_iter().collect())
}

/// The derivative of a maximum or minimum: the selected operand gets the result's cotangent. If both operands are equal, each gets half of the
/// cotangent. `is_chosen` is the comparison that holds between the selected operand and the other one: `>=` for a maximum, `<=` for a minimum.
pub(crate) fn extreme(d: &mut DerivativeCall<'_>, is_chosen: OpId) -> Result<Cotangents, TypeFault> {
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
