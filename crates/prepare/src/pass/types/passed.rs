//! Operands that exist only at compile time, for operators on functions and sequences: a function of the program, an operator, a sequence.

use cembra_expr::NodeId;
use cembra_ops::{OpId, Sequence};
use std::rc::Rc;

/// The id of an environment: the arguments of one call, and the enclosing environment.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct EnvironmentId(pub(super) u32);

impl EnvironmentId {
    /// The root environment, outside of all functions, which binds no parameters.
    pub(super) const ROOT: EnvironmentId = EnvironmentId(0);
}

/// An operand that exists at compile time only: a function, an operator or a sequence.
#[derive(Clone)]
pub(super) enum CompileTimeOperand {
    /// An anonymous function of the program, and the environment that has the values of its captured names.
    Lambda { node: NodeId, environment: EnvironmentId },
    /// An operator that is passed as a function.
    Operator(OpId),
    /// A sequence whose elements are typed nodes.
    Sequence(Rc<Sequence>),
}
