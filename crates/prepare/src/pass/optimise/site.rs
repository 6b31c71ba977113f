//! The interface that rules of the optimiser use: the graph with the node that a rule may replace, functions that match
//! nodes, and functions that build the replacement. New nodes have the origin (the place in the program) of the
//! replaced node; nodes that are reused keep their origin.

use super::{Optimiser, rules_of};
use crate::pass::fold::fold;
use crate::{Id, TypedGraph};
use cembra_expr::NodeId;
use cembra_ops::{OpId, id};
use cembra_runtime::{QType, Scalar};
use cembra_value::{ScalarValue, Value};
use smallvec::SmallVec;

/// The largest depth of rules that are applied to nodes which other rules make. In practice the depth is much smaller.
const LONGEST_CHAIN: u32 = 64;

/// The graph in which an optimiser rule is applied to a node. The node's operands already have the types that its
/// overload takes.
pub(super) struct Site<'g> {
    graph: &'g mut TypedGraph,
    run: &'g mut Optimiser,
    origin: NodeId,
    /// The number of rules that are being applied: each of them makes the node that the next rule is applied to.
    depth: u32,
}

impl<'g> Site<'g> {
    pub(super) fn new(graph: &'g mut TypedGraph, run: &'g mut Optimiser, origin: NodeId) -> Self {
        Site { graph, run, origin, depth: 0 }
    }

    /// Simplifies the node `node`, whose operands are already simplified. Returns its replacement.
    pub(super) fn simplify(&mut self, node: Id) -> Id {
        let node = fold(self.graph, self.run.registry, node);
        let Some(op) = self.graph.op(node) else { return node };
        if self.depth >= LONGEST_CHAIN {
            return node;
        }
        let operands: SmallVec<[Id; 4]> = self.graph.operands(node).into();
        for (at, rewrite) in rules_of(self.run.registry, op) {
            if !self.run.enabled[at] {
                continue;
            }
            let Some(made) = (rewrite.apply)(self, &operands) else { continue };
            let same_type = self.graph.qtype(made) == self.graph.qtype(node);
            debug_assert!(same_type, "{}", rewrite.name);
            if same_type && !(rewrite.skips && self.needs_failing_constant(node)) {
                return made;
            }
        }
        node
    }

    /// Adds a node to the graph that applies the operator `op` to operands of types that it accepts, and simplifies the
    /// new node.
    pub(super) fn apply(&mut self, op: OpId, operands: &[Id]) -> Option<Id> {
        self.depth += 1;
        let made = self.bound(op, operands).map(|node| self.simplify(node));
        self.depth -= 1;
        made
    }

    /// Adds a node for an operator to the graph as [`apply`](Site::apply) does, but with the origin of the node `node`.
    pub(super) fn apply_as(&mut self, node: Id, op: OpId, operands: &[Id]) -> Option<Id> {
        let origin = std::mem::replace(&mut self.origin, self.graph.origin(node));
        let made = self.apply(op, operands);
        self.origin = origin;
        made
    }

    /// Adds a node for the operator `op` to the graph, with casts of its operands, and simplifies the casts. `None` if
    /// the operator does not take these types.
    fn bound(&mut self, op: OpId, operands: &[Id]) -> Option<Id> {
        let node = self.graph.bind(self.run.registry, op, operands, self.origin).ok()?;
        if self.graph.operands(node) == operands {
            return Some(node);
        }
        let cast: SmallVec<[Id; 4]> = self.graph.operands(node).into();
        let simple: SmallVec<[Id; 4]> = cast.into_iter().map(|operand| self.simplify(operand)).collect();
        let (kind, qtype) = (self.graph.kind(node), self.graph.qtype(node).clone());
        Some(self.graph.add(kind, &simple, &qtype, self.origin))
    }

    pub(super) fn literal(&mut self, value: Value) -> Id {
        self.graph.literal(value, self.origin)
    }

    pub(super) fn qtype(&self, node: Id) -> &QType {
        self.graph.qtype(node)
    }

    pub(super) fn value(&self, node: Id) -> Option<&Value> {
        self.graph.value(node)
    }

    /// The operator of the node and its operands, if there are exactly two operands; else `None`.
    pub(super) fn binary(&self, node: Id) -> Option<(OpId, [Id; 2])> {
        Some((self.graph.op(node)?, self.graph.operands(node).try_into().ok()?))
    }

    /// The operands of the node, if its operator is `op` and it has `N` operands; else `None`.
    pub(super) fn operands<const N: usize>(&self, node: Id, op: OpId) -> Option<[Id; N]> {
        self.graph.as_op(node, op)?.try_into().ok()
    }

    /// The nodes of all fields, if the node makes a tuple; else `None`.
    pub(super) fn fields(&self, node: Id) -> Option<&[Id]> {
        self.graph.made_fields(node)
    }

    /// The operand of the node if its operator is `core.to_optional`; else the node itself.
    pub(super) fn plain(&self, node: Id) -> Id {
        self.operands(node, id::TO_OPTIONAL).map_or(node, |[inner]| inner)
    }

    /// Returns true if the type of the node is an optional.
    pub(super) fn is_optional(&self, node: Id) -> bool {
        self.qtype(node).is_optional()
    }

    pub(super) fn is_literal(&self, node: Id) -> bool {
        self.value(node).is_some()
    }

    /// Returns true if the node is a missing literal.
    pub(super) fn is_missing(&self, node: Id) -> bool {
        matches!(self.value(node), Some(Value::Missing(_)))
    }

    /// Returns true if the value of the node is known to be present: by its type, as a literal, or because
    /// `core.to_optional` makes it.
    pub(super) fn is_present(&self, node: Id) -> bool {
        match self.value(node) {
            Some(value) => !matches!(value, Value::Missing(_)),
            None => !self.is_optional(self.plain(node)) && self.qtype(node).scalar().is_some(),
        }
    }

    /// Returns true if the node is a literal, plain or optional, whose value is exactly `number`.
    pub(super) fn is_number(&self, node: Id, number: f64) -> bool {
        match self.value(node).and_then(Value::as_scalar) {
            Some(ScalarValue::Int32(v)) => f64::from(*v) == number,
            Some(ScalarValue::Int64(v)) => *v == number as i64,
            Some(ScalarValue::Float32(v)) => f64::from(*v).to_bits() == number.to_bits(),
            Some(ScalarValue::Float64(v) | ScalarValue::WeakFloat(v)) => v.to_bits() == number.to_bits(),
            _ => false,
        }
    }

    /// The value of the node if it is a present boolean literal; `None` for other nodes.
    pub(super) fn boolean(&self, node: Id) -> Option<bool> {
        match self.value(node)?.as_scalar()? {
            ScalarValue::Boolean(value) => Some(*value),
            _ => None,
        }
    }

    /// Returns true if the type of the node is `scalar`, plain or optional.
    pub(super) fn is_of(&self, node: Id, scalar: Scalar) -> bool {
        self.qtype(node).scalar() == Some(scalar)
    }

    pub(super) fn is_float(&self, node: Id) -> bool {
        self.qtype(node).scalar().is_some_and(Scalar::is_float)
    }

    /// Returns true if computing this node would evaluate an operator on literals that fails.
    fn needs_failing_constant(&mut self, node: Id) -> bool {
        let Optimiser { failing, registry, budget, .. } = &mut *self.run;
        failing.is_needed_by(self.graph, registry, budget, node)
    }
}
