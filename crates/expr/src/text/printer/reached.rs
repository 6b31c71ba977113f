//! Prints operands that a declared type converts, as in `output y: f64 = cents / 100`. In the graph, such an operand has a mark: the operator
//! `core._declared_operand`. The mark is not printed if parsing the text adds it again. If parsing would add different marks, the declared type is
//! written as a call.

use super::{Form, Piece, Printer};
use crate::infix::{DECLARED_OPERAND, Level};
use crate::reach::{OperandConversion, passed};
use crate::{Node, NodeId};
use cembra_runtime::{QType, Scalar};
use cembra_value::Value;

impl<'g> Printer<'g> {
    /// Writes an operator to whose operands a declared type applies.
    pub(super) fn write_passed(&mut self, id: NodeId, level: Level, reach: OperandConversion) {
        let all = self.graph.operands(id).len();
        let passed = self.passed_by(id, reach).map_or(0, <[NodeId]>::len);
        let before = self.pending.len();
        self.write_body(id, level);
        // The operator's operands are on the stack of pieces now, the first one last.
        let operands = self.pending[before..].iter_mut().rev().filter(|piece| matches!(piece, Piece::Operand(..)));
        for piece in operands.skip(all - passed) {
            if let Piece::Operand(of, level) = *piece {
                *piece = Piece::Reached(of, level, reach);
            }
        }
    }

    /// Returns true if parsing `value` under the declared type gives the marks that the operands of `value` have, no more and no fewer.
    pub(super) fn is_as_reached(&self, value: NodeId, reach: OperandConversion) -> bool {
        let mut left = vec![value];
        while let Some(id) = left.pop() {
            if let Some(operands) = self.passed_by(id, reach) {
                let is_settled =
                    |operand: &NodeId| self.passed_by(*operand, reach).is_some() || !reach.marks(self.graph, *operand);
                if !operands.iter().all(is_settled) {
                    return false;
                }
                left.extend(operands);
            }
        }
        true
    }

    /// Returns the operands of the node `id` that a declared type applies to; `None` if the type does not apply to the operands of this node. A
    /// declared type never applies to the operands of a node that is printed as a name.
    pub(super) fn passed_by(&self, id: NodeId, reach: OperandConversion) -> Option<&'g [NodeId]> {
        let Node::Operator(name, operands) = self.graph.node(id) else { return None };
        let name = self.graph.name(name);
        let is_named = self.lets.get(id.index()).copied().flatten().is_some();
        let is_call = is_named || self.wrapping.contains(&id) || !Form::of(name).takes(operands.len());
        (!is_call && reach.passes(name)).then(|| passed(name, operands))
    }

    /// Returns the operand of the mark `id` if the mark need not be printed, because parsing the operand without the mark adds it again; `None`
    /// otherwise.
    pub(super) fn unmarked(&self, id: NodeId, reach: OperandConversion) -> Option<NodeId> {
        let (of, scalar) = self.marked(id)?;
        let is_named = self.lets.get(id.index()).copied().flatten().is_some();
        let is_marked = !is_named && scalar == reach.scalar() && self.passed_by(of, reach).is_none();
        (is_marked && reach.marks(self.graph, of)).then_some(of)
    }

    /// Returns the operand of the mark `id` (an operator `core._declared_operand`), and the number type that the operand is converted to; `None` for
    /// other nodes.
    pub(super) fn marked(&self, id: NodeId) -> Option<(NodeId, Scalar)> {
        let Node::Operator(name, &[of, qtype]) = self.graph.node(id) else { return None };
        let Node::Literal(Value::Type(QType::Scalar(scalar))) = self.graph.node(qtype) else { return None };
        (**self.graph.name(name) == *DECLARED_OPERAND).then_some((of, *scalar))
    }

    /// Returns true if the node is a mark (`core._declared_operand`) on an input or a parameter. Such a node needs no `let` of its own.
    pub(super) fn is_marked_leaf(&self, id: NodeId) -> bool {
        let is_leaf = |(of, _)| matches!(self.graph.node(of), Node::Leaf(_) | Node::Placeholder(_));
        self.marked(id).is_some_and(is_leaf)
    }
}
