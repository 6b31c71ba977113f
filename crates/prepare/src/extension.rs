//! Extensions: rewrites of single nodes that a user of the library adds to the preparation of models. They run after the optimiser, on a graph
//! without composite operators. Extensions do not define new operators; a user registers new operators with the registry.

use crate::{Id, Kind, TypedGraph};
use cembra_expr::NodeId;
use cembra_ops::Registry;
use cembra_runtime::QType;
use cembra_value::{Code, Diagnostic, Error, Value};

/// A user's rewrite of single nodes, which preparation applies to the typed graph after the optimiser.
pub trait Extension: Send + Sync + std::fmt::Debug {
    /// Returns the replacement for the node `node`, whose operands are final; `None` keeps the node.
    ///
    /// `transform` is called once per node, operands first, and its results are not transformed again. A replacement is ignored if it has another
    /// type than the node, or belongs to another compilation. After the last node, the types of all nodes are inferred again, and states of loops
    /// must not be used outside of their loops. If a check fails, preparation ends with the error [`Code::Extension`](cembra_value::Code::Extension).
    fn transform(&self, rewriter: &mut Rewriter<'_>, node: Id) -> Option<Id>;
}

/// A node that is being transformed, and the graph around it, for an [`Extension`].
///
/// The methods take nodes of the current compilation. For a node that the graph does not have they return `None` or an empty list.
///
/// The graph has no composite operators, and casts are explicit: a `core.where` appears under its own name, and an `x + 1`
/// of floats is `math.add` of `x` and a float literal.
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

    /// The canonical name of the node's operator; `None` for inputs and literals.
    #[must_use]
    pub fn operator(&self, node: Id) -> Option<&'static str> {
        self.known(node).and_then(|node| self.graph.op(node)).map(|op| self.registry.get(op).name)
    }

    /// The operands of the node; empty if the node has none or is not in the graph.
    #[must_use]
    pub fn operands(&self, node: Id) -> &[Id] {
        self.known(node).map_or(&[], |node| self.graph.operands(node))
    }

    /// The operands of the node, if its operator is `operator`; else `None`.
    #[must_use]
    pub fn matches(&self, node: Id, operator: &str) -> Option<&[Id]> {
        (self.operator(node) == Some(operator)).then(|| self.operands(node))
    }

    /// The type of the node; `None` if the node is not in the graph.
    #[must_use]
    pub fn qtype(&self, node: Id) -> Option<&QType> {
        self.known(node).map(|node| self.graph.qtype(node))
    }

    /// The node `node` if it is in this graph; else `None`.
    fn known(&self, node: Id) -> Option<Id> {
        Some(node).filter(|node| self.graph.contains(*node))
    }

    /// The value of the node if it is a literal; `None` for other nodes.
    #[must_use]
    pub fn value(&self, node: Id) -> Option<&Value> {
        self.known(node).and_then(|node| self.graph.value(node))
    }

    /// The name of the node if it is an input; `None` for other nodes.
    #[must_use]
    pub fn input(&self, node: Id) -> Option<&str> {
        match self.graph.kind(self.known(node)?) {
            Kind::Leaf(leaf) => Some(self.graph.leaf_name(leaf)),
            _ => None,
        }
    }

    /// Adds a literal node with the value `value` to the graph.
    pub fn literal(&mut self, value: Value) -> Id {
        self.graph.literal(value, self.origin)
    }

    /// Adds a node that applies `operator` to `operands`, with the implicit casts of the language. A fault of the new node is reported at the span of
    /// the transformed node.
    ///
    /// # Errors
    /// If there is no such operator, if the operator is composite, or if it does not take these operands.
    pub fn apply(&mut self, operator: &str, operands: &[Id]) -> Result<Id, Error> {
        let refused = |message: String| Error::from(Diagnostic::new(Code::TypeMismatch, message));
        let found = self.registry.find(operator).filter(|op| !self.registry.get(*op).overloads().is_empty());
        let op = found.ok_or_else(|| {
            refused(format!(
                "an extension cannot apply `{operator}`: there is no such operator, or it is made of others"
            ))
        })?;
        if operands.iter().any(|operand| self.known(*operand).is_none()) {
            return Err(refused("an operand is a node of another compilation".to_owned()));
        }
        self.graph.bind(self.registry, op, operands, self.origin).map_err(refused)
    }
}
