//! What a rule sees: the graph around the node it may replace, ways to match it, and ways to build the replacement. New
//! nodes carry the origin of the node that is replaced; what is kept of it keeps its own.

use super::{Optimiser, rules_of};
use crate::pass::fold::fold;
use crate::{Id, TypedGraph};
use cembra_expr::NodeId;
use cembra_ops::{OpId, id};
use cembra_runtime::{QType, Scalar};
use cembra_value::{ScalarValue, Value};
use smallvec::SmallVec;

/// A chain of rules is short, and this keeps it so.
const LONGEST_CHAIN: u32 = 64;

/// Where a rule is applied. Types are settled: operands already have the types of the overload they are bound to.
pub(super) struct Site<'g> {
    graph: &'g mut TypedGraph,
    run: &'g mut Optimiser,
    origin: NodeId,
    /// How many rules led here.
    depth: u32,
}

impl<'g> Site<'g> {
    pub(super) fn new(graph: &'g mut TypedGraph, run: &'g mut Optimiser, origin: NodeId) -> Self {
        Site { graph, run, origin, depth: 0 }
    }

    /// The simplest form of a node whose operands are simple.
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

    /// An operator on operands it takes, simplified.
    pub(super) fn apply(&mut self, op: OpId, operands: &[Id]) -> Option<Id> {
        self.depth += 1;
        let made = self.bound(op, operands).map(|node| self.simplify(node));
        self.depth -= 1;
        made
    }

    /// The same, with the origin of another node.
    pub(super) fn apply_as(&mut self, node: Id, op: OpId, operands: &[Id]) -> Option<Id> {
        let origin = std::mem::replace(&mut self.origin, self.graph.origin(node));
        let made = self.apply(op, operands);
        self.origin = origin;
        made
    }

    /// The operator with its operands cast, the casts simplified.
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

    /// The operator of a node and its two operands.
    pub(super) fn binary(&self, node: Id) -> Option<(OpId, [Id; 2])> {
        Some((self.graph.op(node)?, self.graph.operands(node).try_into().ok()?))
    }

    /// The operands, if the node is this operator with so many.
    pub(super) fn operands<const N: usize>(&self, node: Id, op: OpId) -> Option<[Id; N]> {
        self.graph.as_op(node, op)?.try_into().ok()
    }

    /// All fields of a tuple that is made on the spot.
    pub(super) fn fields(&self, node: Id) -> Option<&[Id]> {
        self.graph.made_fields(node)
    }

    /// The operand of `core.to_optional`, or any other node itself.
    pub(super) fn plain(&self, node: Id) -> Id {
        self.operands(node, id::TO_OPTIONAL).map_or(node, |[inner]| inner)
    }

    pub(super) fn is_optional(&self, node: Id) -> bool {
        self.qtype(node).is_optional()
    }

    pub(super) fn is_literal(&self, node: Id) -> bool {
        self.value(node).is_some()
    }

    pub(super) fn is_missing(&self, node: Id) -> bool {
        matches!(self.value(node), Some(Value::Missing(_)))
    }

    /// True if the value of this node is there: by type, as a literal that is, or made optional on the spot.
    pub(super) fn is_present(&self, node: Id) -> bool {
        match self.value(node) {
            Some(value) => !matches!(value, Value::Missing(_)),
            None => !self.is_optional(self.plain(node)) && self.qtype(node).scalar().is_some(),
        }
    }

    /// True for a literal, bare or present, of exactly this number.
    pub(super) fn is_number(&self, node: Id, number: f64) -> bool {
        match self.value(node).and_then(Value::as_scalar) {
            Some(ScalarValue::Int32(v)) => f64::from(*v) == number,
            Some(ScalarValue::Int64(v)) => *v == number as i64,
            Some(ScalarValue::Float32(v)) => f64::from(*v).to_bits() == number.to_bits(),
            Some(ScalarValue::Float64(v) | ScalarValue::WeakFloat(v)) => v.to_bits() == number.to_bits(),
            _ => false,
        }
    }

    /// The boolean, if the node is a literal one that is present.
    pub(super) fn boolean(&self, node: Id) -> Option<bool> {
        match self.value(node)?.as_scalar()? {
            ScalarValue::Boolean(value) => Some(*value),
            _ => None,
        }
    }

    pub(super) fn is_of(&self, node: Id, scalar: Scalar) -> bool {
        self.qtype(node).scalar() == Some(scalar)
    }

    pub(super) fn is_float(&self, node: Id) -> bool {
        self.qtype(node).scalar().is_some_and(Scalar::is_float)
    }

    /// True if computing this node would evaluate an operator on literals that fails.
    fn needs_failing_constant(&mut self, node: Id) -> bool {
        let Optimiser { failing, registry, budget, .. } = &mut *self.run;
        failing.is_needed_by(self.graph, registry, budget, node)
    }
}
