//! The graph of a model with loops while it is built. A node is added together with its type, so that later nodes can
//! be resolved.

use super::LoopFailure;
use cembra_expr::NodeId;
use cembra_ops::{OpId, Registry, id};
use cembra_prepare::{Id, Kind, TypedGraph};
use cembra_runtime::QType;
use cembra_value::Value;
use std::sync::Arc;

/// A graph that is being built, and the expression node that new nodes are attributed to in errors.
pub(super) struct Nodes {
    pub(super) graph: TypedGraph,
    pub(super) registry: &'static Registry,
    pub(super) origin: NodeId,
}

impl Nodes {
    pub(super) fn new(registry: &'static Registry) -> Nodes {
        Nodes { graph: TypedGraph::new(Arc::default(), 64), registry, origin: NodeId::from_index(0) }
    }

    pub(super) fn literal(&mut self, value: Value) -> Id {
        self.graph.literal(value, self.origin)
    }

    /// Adds a literal node of type INT64 to the graph.
    pub(super) fn number(&mut self, number: i64) -> Id {
        self.literal(Value::from(number))
    }

    pub(super) fn qtype(&self, node: Id) -> QType {
        self.graph.qtype(node).clone()
    }

    pub(super) fn add(&mut self, kind: Kind, operands: &[Id], qtype: &QType) -> Id {
        self.graph.add(kind, operands, qtype, self.origin)
    }

    /// Adds a node to the graph that applies an operator. The operator's overload follows from the types of the
    /// operands.
    pub(super) fn apply(&mut self, op: OpId, operands: &[Id]) -> Result<Id, LoopFailure> {
        let made = self.graph.apply(self.registry, op, operands, self.origin);
        made.map_err(|_| LoopFailure::new(Some(self.origin), "the operator does not accept the types of the elements"))
    }

    /// Adds nodes to the graph that read the first `count` fields of a tuple.
    pub(super) fn parts(&mut self, tuple: Id, count: usize) -> Result<Vec<Id>, LoopFailure> {
        let part = |at: usize| {
            let at = self.number(at as i64);
            self.apply(id::GET_NTH, &[tuple, at])
        };
        (0..count).map(part).collect()
    }
}
