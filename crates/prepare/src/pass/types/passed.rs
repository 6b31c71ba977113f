//! Compile-time operands of operators on functions and sequences: a function of the program, an operator, a sequence.

use cembra_expr::NodeId;
use cembra_ops::{OpId, Sequence};
use std::rc::Rc;

/// An environment: the arguments of one call, and the enclosing environment.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct EnvironmentId(pub(super) u32);

impl EnvironmentId {
    /// The environment outside of all functions.
    pub(super) const ROOT: EnvironmentId = EnvironmentId(0);
}

/// An operand that exists at compile time only.
#[derive(Clone)]
pub(super) enum Passed {
    /// A function of the program, and the environment of its captured names.
    Lambda { node: NodeId, environment: EnvironmentId },
    /// An operator.
    Operator(OpId),
    /// A sequence.
    Sequence(Rc<Sequence>),
}
