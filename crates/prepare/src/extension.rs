//! Extensions: rewrites that a user of the library adds to preparation, run after the optimiser on the lowered graph. What
//! an operator computes is no matter of theirs: new operators are registered.

use crate::pass::bind;
use crate::{Id, Kind, TypedGraph};
use cembra_expr::{NodeId, Value};
use cembra_ops::{Registry, TypeFault};
use cembra_runtime::QType;

/// A node transformation.
pub trait Extension: Send + Sync + std::fmt::Debug {
    /// What to put in place of a node whose operands are final; `None` keeps it.
    ///
    /// It is asked for every node, operands first, once each: what it makes is not transformed again. A replacement of
    /// another type than the node's is not taken.
    fn transform(&self, rewriter: &mut Rewriter<'_>, node: Id) -> Option<Id>;
}

/// A node being transformed, and the graph around it.
///
/// Composite operators are gone from the graph and casts are written out: a `core.where` is there under its own name, an
/// `x + 1` of floats is `math.add` of `x` and a float literal.
#[derive(Debug)]
pub struct Rewriter<'g> {
    graph: &'g mut TypedGraph,
    registry: &'static Registry,
    origin: NodeId,
}

impl<'g> Rewriter<'g> {
    pub(crate) fn new(graph: &'g mut TypedGraph, registry: &'static Registry, node: Id) -> Self {
        let origin = graph.origin(node);
        Rewriter { graph, registry, origin }
    }

    /// The canonical name of a node's operator; `None` for inputs and literals.
    #[must_use]
    pub fn operator(&self, node: Id) -> Option<&'static str> {
        self.graph.op(node).map(|op| self.registry.get(op).name)
    }

    /// The operands of a node.
    #[must_use]
    pub fn operands(&self, node: Id) -> &[Id] {
        self.graph.operands(node)
    }

    /// The operands of a node that is this operator.
    #[must_use]
    pub fn matches(&self, node: Id, operator: &str) -> Option<&[Id]> {
        (self.operator(node) == Some(operator)).then(|| self.operands(node))
    }

    /// The type of a node.
    #[must_use]
    pub fn qtype(&self, node: Id) -> &QType {
        self.graph.qtype(node)
    }

    /// The value of a literal.
    #[must_use]
    pub fn value(&self, node: Id) -> Option<&Value> {
        self.graph.value(node)
    }

    /// The name of an input.
    #[must_use]
    pub fn input(&self, node: Id) -> Option<&str> {
        match self.graph.kind(node) {
            Kind::Leaf(leaf) => Some(self.graph.leaf_name(leaf)),
            _ => None,
        }
    }

    /// A literal.
    pub fn literal(&mut self, value: Value) -> Id {
        self.graph.literal(value, self.origin)
    }

    /// An operator applied to operands, which are cast as the language casts them. Its faults are reported at the place of
    /// the node that is transformed.
    ///
    /// # Errors
    /// There is no such operator, it is one that stands for an expression of others, or it does not take these operands.
    pub fn apply(&mut self, operator: &str, operands: &[Id]) -> Result<Id, TypeFault> {
        let refused = |message: String| TypeFault::mismatch(message, None);
        let found = self.registry.find(operator).filter(|op| !self.registry.get(*op).overloads().is_empty());
        let op = found.ok_or_else(|| refused(format!("there is no operator `{operator}` with kernels")))?;
        bind(self.graph, self.registry, op, operands, self.origin).map_err(refused)
    }
}
