//! The reach of a declared type: the conversions that the type causes inside the expression whose type it declares. In `output y: f64 = cents / 100`
//! both operands become f64 before the division, so that nothing is rounded to an f32 first. The parser marks such operands with the operator
//! `core._declared_operand`, which is removed when types are inferred. The printer uses the same rules to omit a mark that the parser would add
//! again.

use crate::infix::{DECLARED_OPERAND, Operation, WHERE};
use crate::{Graph, Node, NodeId};
use cembra_runtime::{QType, Scalar};
use cembra_value::{ScalarValue, Value};

/// The conversion that a declared type causes: the number type that the operands of the declared value are converted to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum OperandConversion {
    /// The declared type is f64, so operands of the declared value that are numbers become f64.
    Wide,
    /// The declared type is i64, so operands of the declared value that are i32 become i64.
    Long,
}

impl OperandConversion {
    /// Returns the conversion that the declared type `qtype` causes for operands of the declared expression; `None` if the type converts no operands.
    pub(crate) fn of(qtype: &QType) -> Option<Self> {
        match qtype {
            QType::Scalar(Scalar::Float64) | QType::Optional(Scalar::Float64) | QType::Array(_, Scalar::Float64) => {
                Some(OperandConversion::Wide)
            }
            QType::Scalar(Scalar::Int64) | QType::Optional(Scalar::Int64) | QType::Array(_, Scalar::Int64) => {
                Some(OperandConversion::Long)
            }
            _ => None,
        }
    }

    /// The scalar type that operands of the declared value are converted to.
    pub(crate) fn scalar(self) -> Scalar {
        match self {
            OperandConversion::Wide => Scalar::Float64,
            OperandConversion::Long => Scalar::Int64,
        }
    }

    /// Returns true if a declared type that applies to the result of `operator` also applies to the operands of `operator`, as it does for `a + b`.
    /// The type i64 does not apply to the operands of `a / b`, because a quotient of two integers is a float.
    pub(crate) fn passes(self, operator: &str) -> bool {
        const PASSING: [Operation; 5] =
            [Operation::Add, Operation::Subtract, Operation::Multiply, Operation::Negate, Operation::Default];
        operator == WHERE
            || PASSING.iter().any(|operation| operation.name() == operator)
            || self == OperandConversion::Wide && operator == Operation::Divide.name()
    }

    /// Returns true if `operand`, to which a declared type applies, must be marked with the operator `core._declared_operand`. The declared type must
    /// not apply to the operands of `operand`. The mark may turn out to have no effect when types are inferred: for example, a literal next to a date
    /// keeps its type.
    pub(crate) fn marks(self, graph: &Graph, operand: NodeId) -> bool {
        match graph.node(operand) {
            Node::Literal(Value::Scalar(value)) => self.changes(value),
            Node::Literal(Value::Nothing | Value::Type(_) | Value::Unspecified) => false,
            Node::Operator(name, _) => **graph.name(name) != *DECLARED_OPERAND,
            _ => true,
        }
    }

    /// Returns true if the declared type may convert the literal `value`.
    fn changes(self, value: &ScalarValue) -> bool {
        matches!(
            (self, value.scalar()),
            (OperandConversion::Wide, Scalar::Int32 | Scalar::Int64 | Scalar::Float32 | Scalar::WeakFloat)
                | (OperandConversion::Long, Scalar::Int32)
        )
    }
}

/// Returns the operands of `operator` that a declared type applies to: the branches of a conditional, all operands of any other operator. The caller
/// must know that the type applies to operands of `operator` at all.
pub(crate) fn passed<'o, T>(operator: &str, operands: &'o [T]) -> &'o [T] {
    operands.get(usize::from(operator == WHERE)..).unwrap_or_default()
}

/// Returns the operands of `operator` that a declared type applies to; empty if declared types never apply to the operands of this operator. For the
/// conditional `core._where`, the branches are returned, without the condition.
#[must_use]
pub fn reached_operands<'o, T>(operator: &str, operands: &'o [T]) -> &'o [T] {
    if OperandConversion::Wide.passes(operator) { passed(operator, operands) } else { &[] }
}
