//! The reach of a declared type: its effect on the operands of the declared value. In `output y: f64 = cents / 100` both operands become f64 before
//! the division, so that nothing is rounded to an f32 first. The parser marks such operands with the operator `core._declared_operand`, which is
//! removed when types are inferred. The printer uses the same rules to omit a mark that the parser would add again.

use crate::infix::{DECLARED_OPERAND, Operation, WHERE};
use crate::{Graph, Node, NodeId};
use cembra_runtime::{QType, Scalar};
use cembra_value::{ScalarValue, Value};

/// The reach of a declared type: the number type that it gives to the operands of the declared value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum OperandConversion {
    /// The declared type is f64, so operands of the declared value that are numbers become f64.
    Wide,
    /// The declared type is i64, so operands of the declared value that are i32 become i64.
    Long,
}

impl OperandConversion {
    /// Returns the effect of the declared type `qtype` on the operands of the declared value; `None` if the type has no effect on operands.
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

    /// Returns true if a declared type that applies to the result of `operator` also applies to its operands. The type i64 does not apply to the
    /// operands of `/`, because `/` makes a float of two integers.
    pub(crate) fn passes(self, operator: &str) -> bool {
        const PASSING: [Operation; 5] =
            [Operation::Add, Operation::Subtract, Operation::Multiply, Operation::Negate, Operation::Default];
        operator == WHERE
            || PASSING.iter().any(|operation| operation.name() == operator)
            || self == OperandConversion::Wide && operator == Operation::Divide.name()
    }

    /// Returns true if `operand` must be marked with the operator `core._declared_operand`. The caller knows that the declared type does not apply
    /// to the operands of `operand`. Whether the mark has an effect is decided when types are inferred: for example, a literal next to a date keeps
    /// its type.
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

/// Returns the operands of `operator` that a declared type applies to, for an operator that `passes` the type to its operands: the branches of a
/// conditional, all operands of any other operator.
pub(crate) fn passed<'o, T>(operator: &str, operands: &'o [T]) -> &'o [T] {
    operands.get(usize::from(operator == WHERE)..).unwrap_or_default()
}

/// Returns the operands of `operator` that a declared type applies to; empty if declared types never apply to its operands. For `core._where` they
/// are the branches.
#[must_use]
pub fn reached_operands<'o, T>(operator: &str, operands: &'o [T]) -> &'o [T] {
    if OperandConversion::Wide.passes(operator) { passed(operator, operands) } else { &[] }
}
