//! What operators on functions and sequences are given that is no node: a function of the text, an operator, a sequence.

use cembra_expr::NodeId;
use cembra_ops::{OpId, Sequence};
use std::rc::Rc;

/// The arguments of one call, and where else to look for names.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct EnvironmentId(pub(super) u32);

impl EnvironmentId {
    /// Outside of all functions.
    pub(super) const ROOT: EnvironmentId = EnvironmentId(0);
}

/// What only operators on functions and sequences take.
#[derive(Clone)]
pub(super) enum Passed {
    /// A function of the text, and where its captured names have values.
    Lambda { node: NodeId, environment: EnvironmentId },
    /// An operator.
    Operator(OpId),
    /// A sequence.
    Sequence(Rc<Sequence>),
}
