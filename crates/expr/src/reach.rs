//! What a declared type reaches. In `output y: f64 = cents / 100` both operands become f64 before they are divided, so that nothing is
//! rounded to an f32 first. The parser marks such operands, with an operator of their own that is taken apart where types are found;
//! the printer says by the same rules whether a marked operand would be marked again when its text is read.

use crate::infix::{DECLARED_OPERAND, Operation, WHERE};
use crate::{Graph, Node, NodeId};
use cembra_runtime::{QType, Scalar};
use cembra_value::{ScalarValue, Value};

/// The numbers that a declared type makes of the operands below it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reach {
    /// Numbers become f64.
    Wide,
    /// An i32 becomes an i64.
    Long,
}

impl Reach {
    /// What a declared type makes of the operands below it, if it reaches any.
    pub(crate) fn of(qtype: &QType) -> Option<Self> {
        match qtype {
            QType::Scalar(Scalar::Float64) | QType::Optional(Scalar::Float64) | QType::Array(_, Scalar::Float64) => {
                Some(Reach::Wide)
            }
            QType::Scalar(Scalar::Int64) | QType::Optional(Scalar::Int64) | QType::Array(_, Scalar::Int64) => {
                Some(Reach::Long)
            }
            _ => None,
        }
    }

    /// The type of the numbers.
    pub(crate) fn scalar(self) -> Scalar {
        match self {
            Reach::Wide => Scalar::Float64,
            Reach::Long => Scalar::Int64,
        }
    }

    /// True if the type goes through an operator to its operands. Of two integers `/` makes a float.
    pub(crate) fn passes(self, operator: &str) -> bool {
        const PASSING: [Operation; 5] =
            [Operation::Add, Operation::Subtract, Operation::Multiply, Operation::Negate, Operation::Default];
        operator == WHERE
            || PASSING.iter().any(|operation| operation.name() == operator)
            || self == Reach::Wide && operator == Operation::Divide.name()
    }

    /// True if an operand through which the type does not go is marked. What becomes of it is found with the types: a literal, too,
    /// stays what it is beside a date.
    pub(crate) fn marks(self, graph: &Graph, operand: NodeId) -> bool {
        match graph.node(operand) {
            Node::Literal(Value::Scalar(value)) => self.changes(value),
            Node::Literal(Value::Nothing | Value::Type(_) | Value::Unspecified) => false,
            Node::Operator(name, _) => **graph.name(name) != *DECLARED_OPERAND,
            _ => true,
        }
    }

    /// True if a literal may become another one.
    fn changes(self, value: &ScalarValue) -> bool {
        matches!(
            (self, value.scalar()),
            (Reach::Wide, Scalar::Int32 | Scalar::Int64 | Scalar::Float32 | Scalar::WeakFloat)
                | (Reach::Long, Scalar::Int32)
        )
    }
}

/// The operands of an operator that a type goes through; the condition of a choice is none of them.
pub(crate) fn passed<'o, T>(operator: &str, operands: &'o [T]) -> &'o [T] {
    operands.get(usize::from(operator == WHERE)..).unwrap_or_default()
}

/// The operands of an operator that a declared type goes through, which are those that it may reach; none of other operators. Of
/// `core._where` they are the branches.
#[must_use]
pub fn reached_operands<'o, T>(operator: &str, operands: &'o [T]) -> &'o [T] {
    if Reach::Wide.passes(operator) { passed(operator, operands) } else { &[] }
}
