//! Operands that exist only at compile time, for operators on functions and sequences: a function of the program, an operator, a sequence.

use cembra_expr::NodeId;
use cembra_ops::{OpId, Sequence};
use std::rc::Rc;

/// The id of an environment: the arguments of one call, and the enclosing environment.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct EnvironmentId(pub(super) u32);

impl EnvironmentId {
    /// The root environment, outside of all functions.
    pub(super) const ROOT: EnvironmentId = EnvironmentId(0);
}

/// An operand that exists at compile time only.
#[derive(Clone)]
pub(super) enum Passed {
    /// An anonymous function of the program, and the environment of its captured names.
    Lambda { node: NodeId, environment: EnvironmentId },
    /// An operator as a function value.
    Operator(OpId),
    /// A sequence of typed nodes.
    Sequence(Rc<Sequence>),
}
