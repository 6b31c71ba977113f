//! Extensions: rewrites that a user of the library adds to preparation, run after the optimiser on the lowered graph. What
//! an operator computes is no matter of theirs: new operators are registered.

use crate::{Id, Kind, TypedGraph};
use cembra_expr::NodeId;
use cembra_ops::Registry;
use cembra_runtime::QType;
use cembra_value::{Code, Diagnostic, Error, Value};

/// A node transformation.
pub trait Extension: Send + Sync + std::fmt::Debug {
    /// What to put in place of a node whose operands are final; `None` keeps it.
    ///
    /// It is asked for every node, operands first, once each: what it makes is not transformed again. A replacement of
    /// another type than the node's is not taken, nor is a node of another compilation. When all nodes were asked for, the
    /// graph is typed again and the states of loops are looked for outside of them: a graph that is not sound is the error
    /// [`Code::Extension`](cembra_value::Code::Extension).
    fn transform(&self, rewriter: &mut Rewriter<'_>, node: Id) -> Option<Id>;
}

/// A node being transformed, and the graph around it.
///
/// Nodes are those of the compilation at hand. What it is asked of a node that it does not have, it does not know.
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
        self.known(node).and_then(|node| self.graph.op(node)).map(|op| self.registry.get(op).name)
    }

    /// The operands of a node.
    #[must_use]
    pub fn operands(&self, node: Id) -> &[Id] {
        self.known(node).map_or(&[], |node| self.graph.operands(node))
    }

    /// The operands of a node that is this operator.
    #[must_use]
    pub fn matches(&self, node: Id, operator: &str) -> Option<&[Id]> {
        (self.operator(node) == Some(operator)).then(|| self.operands(node))
    }

    /// The type of a node; none if there is no such node.
    #[must_use]
    pub fn qtype(&self, node: Id) -> Option<&QType> {
        self.known(node).map(|node| self.graph.qtype(node))
    }

    /// The node, if it is one of this graph.
    fn known(&self, node: Id) -> Option<Id> {
        Some(node).filter(|node| self.graph.contains(*node))
    }

    /// The value of a literal.
    #[must_use]
    pub fn value(&self, node: Id) -> Option<&Value> {
        self.known(node).and_then(|node| self.graph.value(node))
    }

    /// The name of an input.
    #[must_use]
    pub fn input(&self, node: Id) -> Option<&str> {
        match self.graph.kind(self.known(node)?) {
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
    pub fn apply(&mut self, operator: &str, operands: &[Id]) -> Result<Id, Error> {
        let refused = |message: String| Error::from(Diagnostic::new(Code::TypeMismatch, message));
        let found = self.registry.find(operator).filter(|op| !self.registry.get(*op).overloads().is_empty());
        let op = found.ok_or_else(|| refused(format!("there is no operator `{operator}` with kernels")))?;
        if operands.iter().any(|operand| self.known(*operand).is_none()) {
            return Err(refused("an operand is a node of another compilation".to_owned()));
        }
        self.graph.bind(self.registry, op, operands, self.origin).map_err(refused)
    }
}
